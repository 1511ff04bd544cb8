package openstack

import (
	"context"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// removal returns the steps that remove all that an instance has in the VIM.
func (d *Driver) removal(prefix string) []lcm.Step {
	return []lcm.Step{
		{Name: prefix + "stack-delete", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.stackDelete},
		{Name: prefix + "stack-delete-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: prefix + "stack-delete", Run: d.stackDeleteWait},
		{Name: prefix + "images-delete", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.imagesDelete},
	}
}

// stackDelete is the step that has Heat delete the instance's stack: the one recorded, else one of its name and tag.
func (d *Driver) stackDelete(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	name := stackName(x.Instance.ID)
	var found *stack
	if s.StackID != "" {
		found, err = c.stack(ctx, name, s.StackID)
	} else if found, err = c.findStack(ctx, name); found != nil && !ours(found, x.Instance.ID) {
		x.Log.Warn("a stack of the instance's name is not the instance's and stays", "stack", found.ID, "name", name)
		found = nil
	}
	if err != nil {
		return lcm.Progress{}, err
	}
	stuck := w.StackID // the stack whose deletion an earlier try has waited for in vain
	w.StackID, w.Before, w.Anew = "", "", nil
	if found != nil && found.Status != "DELETE_COMPLETE" {
		w.StackID = found.ID
		if found.Status != "DELETE_IN_PROGRESS" || found.ID == stuck {
			w.Before = found.state()
			if err := c.deleteStack(ctx, name, found.ID); err != nil {
				return lcm.Progress{}, err
			}
		}
	}
	return lcm.Done(), saveWork(x, w)
}

// mostDeletes is how often one try asks Heat again to delete a stack of which something was in use: Heat itself tries again a
// few times, but not for as long as slow servers may take to let go of networks that nothing says they depend on.
const mostDeletes = 3

// stackDeleteWait is the step that waits until the stack is gone.
func (d *Driver) stackDeleteWait(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil || w.StackID == "" {
		return lcm.Done(), err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	const prefix = "VNF Delete"
	s, err := c.stack(ctx, stackName(x.Instance.ID), w.StackID)
	if err != nil {
		return lcm.Progress{}, err
	}
	if s == nil || s.Status == "DELETE_COMPLETE" {
		return lcm.Done(), nil
	}
	waited, asked := x.Now().Sub(x.Begun), x.Begun
	if len(w.Anew) > 0 {
		asked = w.Anew[len(w.Anew)-1]
	}
	// Only a failed delete ends the wait; any other state is one that Heat has not left yet.
	if s.Status == "DELETE_FAILED" && (s.state() != w.Before || x.Now().Sub(asked) >= d.cfg.Settle) {
		if len(w.Anew) >= mostDeletes || !strings.Contains(s.Reason, "Conflict:") && !strings.Contains(s.Reason, "InUseClient:") {
			return lcm.Progress{}, c.stackError(ctx, prefix, s)
		}
		w.Before, w.Anew = s.state(), append(w.Anew, x.Now())
		if err := c.deleteStack(ctx, s.Name, s.ID); err != nil {
			return lcm.Progress{}, err
		}
		x.Log.Warn("what was in use is deleted anew", "stack", s.ID, "reason", cut(s.Reason))
		return lcm.Wait(d.cfg.PollMax, "stack %s (%s) is deleted anew", s.Name, s.ID), saveWork(x, w)
	}
	if waited >= d.cfg.StackTimeout {
		return lcm.Progress{}, c.overdue(prefix, d.cfg.StackTimeout, s)
	}
	return lcm.Wait(d.pause(x), "stack %s (%s) is %s", s.Name, s.ID, s.Status), nil
}
