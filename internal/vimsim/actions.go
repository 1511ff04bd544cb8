package vimsim

import (
	"context"
	"errors"
	"time"
)

// stackFault applies a fault on a whole stack; it returns the failure, if any.
func (c *Cloud) stackFault(ctx context.Context, s *stack, verb string) error {
	c.mu.Lock()
	f := c.engineFault("stack", verb, s.name)
	c.mu.Unlock()
	if f == nil {
		return nil
	}
	switch f.Effect {
	case EffectSlow:
		return c.sleep(ctx, time.Duration(f.Delay))
	case EffectHang:
		if f.Delay > 0 {
			return c.sleep(ctx, time.Duration(f.Delay))
		}
		select {
		case <-f.gone:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.New(orText(f.Reason, "An injected fault."))
}

// startCreate runs the creation of a new top-level stack; mu is held.
func (c *Cloud) startCreate(s *stack) {
	c.begin(s, actCreate, nil, func(ctx context.Context) error {
		if err := c.stackFault(ctx, s, "create"); err != nil {
			return err
		}
		return c.converge(ctx, s, actCreate)
	}, func(err error) {
		c.finish(s, actCreate, err, nil)
	})
}

// finish records the end of an action; a failed one is rolled back if asked.
func (c *Cloud) finish(s *stack, action string, err error, undo func()) {
	if err == nil {
		c.setStack(s, action, stComplete, "Stack "+action+" completed successfully")
		return
	}
	if s.status != stFailed {
		c.setStack(s, action, stFailed, stackReason(action, err))
	}
	if s.disableRollback || action != actCreate && undo == nil {
		return
	}
	c.startRollback(s, undo)
}

// startRollback goes back to the definition that undo restores, or deletes
// everything if undo is nil; mu is held.
func (c *Cloud) startRollback(s *stack, undo func()) {
	c.begin(s, actRollback, undo, func(ctx context.Context) error {
		if undo != nil {
			return c.converge(ctx, s, actUpdate)
		}
		return c.destroy(ctx, s)
	}, func(err error) {
		if err != nil {
			c.setStack(s, actRollback, stFailed, stackReason(actDelete, err))
			return
		}
		c.setStack(s, actRollback, stComplete, "Stack ROLLBACK completed successfully")
	})
}

// startUpdate runs an update to a new definition; mu is held.
func (c *Cloud) startUpdate(s *stack, next *stack) {
	before := *s
	apply := func(from *stack) func() {
		return func() {
			s.tmpl, s.files, s.params, s.values, s.env = from.tmpl, from.files, from.params, from.values, from.env
		}
	}
	// Clients tell updates apart by a time of whole seconds.
	if now := c.clk.Now().Truncate(time.Second); now.After(s.updated) {
		s.updated = now
	} else {
		s.updated = s.updated.Add(time.Second)
	}
	s.undo = apply(&before)
	s.tags, s.timeout, s.disableRollback = next.tags, next.timeout, next.disableRollback
	c.begin(s, actUpdate, apply(next), func(ctx context.Context) error {
		if err := c.stackFault(ctx, s, "update"); err != nil {
			return err
		}
		return c.converge(ctx, s, actUpdate)
	}, func(err error) {
		c.finish(s, actUpdate, err, s.undo)
	})
}

// startDelete deletes a stack; mu is held.
func (c *Cloud) startDelete(s *stack) {
	c.begin(s, actDelete, nil, func(ctx context.Context) error {
		if err := c.stackFault(ctx, s, "delete"); err != nil {
			return err
		}
		return c.destroy(ctx, s)
	}, func(err error) {
		if err != nil {
			c.setStack(s, actDelete, stFailed, stackReason(actDelete, err))
			return
		}
		c.setStack(s, actDelete, stComplete, "Stack DELETE completed successfully")
		// Heat drops it from its lists, and frees its name, a little later.
		lag, known := c.latency["purge"]
		if !known {
			lag = c.latency["*"]
		}
		if lag <= 0 {
			c.forget(s)
			return
		}
		c.goFunc(func() {
			if c.sleep(c.ctx, lag) == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.heat.byID[s.id] == s && s.deleted.IsZero() {
					c.forget(s)
				}
			}
		})
	})
}
