package vimsim

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

var (
	errSuperseded = errors.New("user triggered cancel")
	errTimedOut   = errors.New("Timed out")
)

// begin starts an action on a stack in the background. prepare runs with mu
// held once no other action runs on the stack, work after it without mu.
// Callers hold mu.
func (c *Cloud) begin(s *stack, action string, prepare func(), work func(context.Context) error, finish func(error)) {
	ctx, op, prev := c.claimOp(c.ctx, s, action)
	c.setStack(s, action, stRunning, "Stack "+action+" started")
	if prev == nil && prepare != nil {
		prepare()
	}
	c.goFunc(func() {
		defer close(op.done)
		if prev != nil {
			<-prev.done
			c.mu.Lock()
			if prepare != nil {
				prepare()
			}
			c.mu.Unlock()
		}
		err := c.timed(ctx, op, s, work)
		c.mu.Lock()
		defer c.mu.Unlock()
		cause := context.Cause(ctx)
		op.cancel(nil)
		if op.isHalted() || errors.Is(cause, errSuperseded) || errors.Is(cause, ErrClosed) {
			return
		}
		finish(err)
	})
}

// timed runs work under the stack's timeout.
func (c *Cloud) timed(ctx context.Context, op *operation, s *stack, work func(context.Context) error) error {
	c.mu.Lock()
	limit := c.limit(s)
	c.mu.Unlock()
	if limit <= 0 {
		return work(ctx)
	}
	stop := make(chan struct{})
	watched := make(chan struct{})
	timer := c.clk.After(limit)
	go func() {
		defer close(watched)
		select {
		case <-timer:
			op.cancel(errTimedOut)
		case <-stop:
		}
	}()
	err := work(ctx)
	close(stop)
	<-watched
	if errors.Is(context.Cause(ctx), errTimedOut) {
		return errTimedOut
	}
	return err
}

// claimOp makes a new operation the stack's current one. The one before is
// halted, as Heat does, or cancelled by a deletion; it is returned if it may
// still run. Callers hold mu.
func (c *Cloud) claimOp(parent context.Context, s *stack, action string) (context.Context, *operation, *operation) {
	prev := s.op
	if prev != nil {
		prev.halt()
		if action == actDelete {
			prev.cancel(errSuperseded)
		}
		select {
		case <-prev.done:
			prev = nil
		default:
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	s.op = &operation{cancel: cancel, halted: make(chan struct{}), done: make(chan struct{})}
	return context.WithValue(ctx, operationKey{}, s.op), s.op, prev
}

// nestedOp runs an action on a nested stack and waits for it; mu is not held.
func (c *Cloud) nestedOp(ctx context.Context, s *stack, action string, prepare func(), work func(context.Context) error) error {
	c.mu.Lock()
	ctx, op, prev := c.claimOp(ctx, s, action)
	c.mu.Unlock()
	defer close(op.done)
	defer op.cancel(nil)
	if prev != nil {
		<-prev.done
	}
	c.mu.Lock()
	if prepare != nil {
		prepare()
	}
	c.setStack(s, action, stRunning, "Stack "+action+" started")
	c.mu.Unlock()
	err := work(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.isHalted() && ctx.Err() == nil {
		return &failure{msg: "Stack " + action + " cancelled"}
	}
	if err != nil {
		c.setStack(s, action, stFailed, stackReason(action, err))
		// Heat finds the place in what a nested stack says only where both are at the same action.
		var f *failure
		if errors.As(err, &f) && f.action != "" && f.action != action {
			return &failure{msg: s.reason}
		}
		return err
	}
	if action == actUpdate {
		s.updated = c.clk.Now()
	}
	c.setStack(s, action, stComplete, "Stack "+action+" completed successfully")
	return nil
}

func stackReason(action string, err error) string {
	var f *failure
	if errors.As(err, &f) && len(f.path) > 0 {
		return "Resource " + orText(f.action, action) + " failed: " + f.Error()
	}
	return err.Error()
}

// parallel calls work for every key as soon as all it needs are done, side by
// side where possible. After a failure nothing new starts; failed is called
// once, at once, and the first error is returned when all running work ended.
func parallel(ctx context.Context, needs map[string][]string, failed func(error), work func(string) error) error {
	left := make(map[string]int, len(needs))
	users := make(map[string][]string, len(needs))
	for k, ds := range needs {
		for _, d := range ds {
			if _, known := needs[d]; known && d != k {
				left[k]++
				users[d] = append(users[d], k)
			}
		}
	}
	type result struct {
		key string
		err error
	}
	results := make(chan result, len(needs))
	running := 0
	start := func(k string) {
		running++
		go func() { results <- result{k, work(k)} }()
	}
	for _, k := range slices.Sorted(maps.Keys(needs)) {
		if left[k] == 0 {
			start(k)
		}
	}
	var first error
	for running > 0 {
		r := <-results
		running--
		if r.err != nil {
			if first == nil {
				first = r.err
				if failed != nil {
					failed(first)
				}
			}
			continue
		}
		if first != nil || ended(ctx) != nil {
			continue
		}
		for _, u := range users[r.key] {
			if left[u]--; left[u] == 0 {
				start(u)
			}
		}
	}
	if first == nil {
		return ended(ctx)
	}
	return first
}

// converge makes a stack's resources what its template says: creates, updates
// or replaces, then deletes what is left over.
func (c *Cloud) converge(ctx context.Context, s *stack, action string) error {
	c.mu.Lock()
	needs, err := c.graph(s)
	for name := range needs { // they are all there from the beginning
		if s.res[name] == nil {
			s.res[name] = c.newResource(s, s.tmpl.Resources[name], doc{})
		}
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	early := func(err error) {
		// As Heat's convergence: the stack fails at once while siblings go on.
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.parent == nil && s.status == stRunning && s.disableRollback && ended(ctx) == nil {
			c.setStack(s, action, stFailed, stackReason(action, err))
		}
	}
	if err := parallel(ctx, needs, early, func(name string) error { return c.convergeOne(ctx, s, name, action) }); err != nil {
		return err
	}
	c.mu.Lock()
	gone := slices.Clone(s.dead)
	for _, n := range slices.Sorted(maps.Keys(s.res)) {
		if _, keep := needs[n]; !keep {
			gone = append(gone, s.res[n])
		}
	}
	c.mu.Unlock()
	return c.removeAll(ctx, gone)
}

// graph lists the enabled resources of a stack's template with their needs.
func (c *Cloud) graph(s *stack) (map[string][]string, error) {
	res := c.resolver(s)
	needs := map[string][]string{}
	for name, d := range s.tmpl.Resources {
		on, err := res.Condition(d.Condition)
		if err != nil {
			return nil, err
		}
		if on {
			needs[name] = c.needsOf(s, d)
		}
	}
	return needs, nil
}

// needsOf lists what a resource is built on: what it refers to, and for ports
// and servers, like in Heat, the subnets of the networks that they refer to,
// which give them their addresses. So for groups and other nested stacks: Heat
// does not say so of them, but makes a subnet long before the first port of a
// nested stack.
func (c *Cloud) needsOf(s *stack, d *hot.Resource) []string {
	needs := d.Deps()
	switch t, err := c.typeOf(d.Type, s.files); {
	case d.Type == "OS::Neutron::Port", d.Type == "OS::Nova::Server", err == nil && t.nests:
	default:
		return needs
	}
	var nets []string
	for _, n := range needs {
		if r := s.tmpl.Resources[n]; r != nil && r.Type == "OS::Neutron::Net" {
			nets = append(nets, n)
		}
	}
	if len(nets) == 0 {
		return needs
	}
	for name, sub := range s.tmpl.Resources {
		if sub.Type != "OS::Neutron::Subnet" || slices.Contains(needs, name) {
			continue
		}
		on := slices.ContainsFunc(sub.Deps(), func(n string) bool { return slices.Contains(nets, n) })
		if on && !dependsOn(s.tmpl, sub, d.Name, map[string]bool{}) {
			needs = append(needs, name)
		}
	}
	return needs
}

func dependsOn(t *hot.Template, r *hot.Resource, name string, seen map[string]bool) bool {
	for _, n := range r.Deps() {
		if n == name {
			return true
		}
		if !seen[n] && t.Resources[n] != nil {
			seen[n] = true
			if dependsOn(t, t.Resources[n], name, seen) {
				return true
			}
		}
	}
	return false
}

// change is what an update does to one resource.
type change int

const (
	changeNothing change = iota
	changeInPlace
	changeReplace
)

func (c *Cloud) convergeOne(ctx context.Context, s *stack, name, action string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ended(ctx); err != nil {
		return err
	}
	def := s.tmpl.Resources[name]
	t, err := c.typeOf(def.Type, s.files)
	if err != nil {
		return asFailure(name, err)
	}
	old, fresh := s.res[name], (*resource)(nil)
	if old != nil && old.action == actInit && old.typ == def.Type {
		// It has not been begun yet.
		old.def, old.needs = def, c.needsOf(s, def)
		fresh, old = old, nil
	}
	props, err := c.resolver(s).Properties(def.Properties)
	if err == nil {
		err = c.checkProps(t, s, name, props, nil)
		if err != nil {
			var h *hot.Error
			if errors.As(err, &h) {
				h.Label, h.Path = "Property error", append([]string{"Properties"}, h.Path[3:]...)
			}
		}
	}
	if err != nil {
		f := asFailure(name, err)
		if old == nil {
			if old = fresh; old == nil {
				old = c.newResource(s, def, props)
				s.res[name] = old
			}
			f.action = actCreate
			c.setResource(old, actCreate, stFailed, f.Error())
		} else {
			f.action = actUpdate
			c.setResource(old, actUpdate, stFailed, f.Error())
		}
		return f
	}
	if old != nil {
		switch c.changeOf(t, old, def, props) {
		case changeNothing:
			old.def, old.needs = def, c.needsOf(s, def)
			return nil
		case changeInPlace:
			return c.doUpdate(ctx, t, old, def, props)
		}
		if tt, err := c.typeOf(old.typ, nil); err == nil && tt.release != nil && old.phys != "" {
			tt.release(c, old)
		}
		s.dead = append(s.dead, old)
	}
	r := fresh
	if r == nil {
		r = c.newResource(s, def, props)
		s.res[name] = r
	}
	if r.props = props; def.Metadata != nil {
		if m, err := c.resolver(s).Properties(def.Metadata); err == nil {
			r.metadata = m
		}
	}
	return c.doCreate(ctx, t, r)
}

func (c *Cloud) newResource(s *stack, def *hot.Resource, props doc) *resource {
	c.heat.next++
	now := c.clk.Now()
	r := &resource{
		seq: c.heat.next, uuid: newID(), name: def.Name, typ: def.Type, stack: s, def: def, props: props, created: now, updated: now,
		data: map[string]any{}, metadata: doc{}, needs: c.needsOf(s, def), action: actInit, status: stComplete,
	}
	if def.Metadata != nil {
		if m, err := c.resolver(s).Properties(def.Metadata); err == nil {
			r.metadata = m
		}
	}
	return r
}

// changeOf decides what an update does to a resource.
func (c *Cloud) changeOf(t *rtype, r *resource, def *hot.Resource, props doc) change {
	if def.Type != r.typ && (registry[def.Type] != nil || registry[r.typ] != nil) { // one template file for another is an update
		return changeReplace
	}
	switch {
	case r.action == actInit || r.action == actDelete:
		return changeReplace
	case r.status == stRunning:
		// An interrupted action: what exists is brought up to date, the rest made anew.
		if r.phys == "" || !t.nests {
			return changeReplace
		}
		return changeInPlace
	case r.status == stFailed && t.nests:
		if r.action == actCheck && r.nested != nil && !(r.nested.action == actCheck && r.nested.status == stFailed) || r.nested == nil {
			return changeReplace
		}
		return changeInPlace
	case r.status == stFailed && r.action == actCheck:
		return changeReplace
	case r.status == stFailed:
		if t.keepFailed == nil || !t.keepFailed(c, r) {
			return changeReplace
		}
	}
	if t.nests {
		return changeInPlace
	}
	res := changeNothing
	if r.status == stFailed {
		res = changeInPlace
	}
	for _, k := range diff(r.props, props) {
		if p, known := t.props[k]; !known || !p.update || t.update == nil {
			return changeReplace
		}
		res = changeInPlace
	}
	if res == changeInPlace && t.replaceIf != nil && t.replaceIf(c, r, props) {
		return changeReplace
	}
	return res
}

// diff names the properties that differ; null is as good as absent.
func diff(a, b doc) []string {
	var out []string
	for k, v := range a {
		if !reflect.DeepEqual(v, b[k]) {
			out = append(out, k)
		}
	}
	for k, v := range b {
		if _, both := a[k]; !both && v != nil {
			out = append(out, k)
		}
	}
	return out
}

// exec is what a resource type gets to work with.
type exec struct {
	c      *Cloud
	ctx    context.Context //nolint:containedctx // lives as long as one action
	t      *rtype
	r      *resource
	old    doc // properties before an update
	inject *Fault
	delay  time.Duration
}

// unlocked runs f without mu.
func (e *exec) unlocked(f func() error) error {
	e.c.mu.Unlock()
	defer e.c.mu.Lock()
	return f()
}

// wait lets the type's latency pass, and that of a slow or hang fault.
func (e *exec) wait() error {
	d := e.delay
	hang := false
	if e.inject != nil {
		switch e.inject.Effect {
		case EffectSlow:
			d += time.Duration(e.inject.Delay)
		case EffectHang:
			d += time.Duration(e.inject.Delay)
			hang = e.inject.Delay == 0
		}
	}
	if d <= 0 && !hang {
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		return nil
	}
	return e.unlocked(func() error {
		if hang {
			select {
			case <-e.inject.gone:
				return nil
			case <-e.ctx.Done():
				return context.Cause(e.ctx)
			}
		}
		return e.c.sleep(e.ctx, d)
	})
}

// injected is the failure that a fault asks for, or nil.
func (e *exec) injected() error {
	if e.inject == nil {
		return nil
	}
	switch e.inject.Effect {
	case EffectFail:
		return &failure{class: "ResourceInError", msg: `Went to status ERROR due to "` + orText(e.inject.Reason, "An injected fault.") + `"`}
	case EffectQuota:
		return e.t.quota(e.inject.Reason)
	}
	return nil
}

// act runs one action on a resource with its latency and faults. mu is held.
func (c *Cloud) act(ctx context.Context, t *rtype, r *resource, action string, old doc, f func(*exec) error) error {
	c.setResource(r, action, stRunning, "state changed")
	e := &exec{c: c, ctx: ctx, t: t, r: r, old: old}
	d, named := c.latency[t.name]
	if !named && !t.nests && t.service != "" {
		d = c.latency["*"]
	}
	e.delay = d
	verb := map[string]string{actCreate: "create", actUpdate: "update", actDelete: "delete", actCheck: "get"}[action]
	given, _ := r.props["name"].(string)
	e.inject = c.engineFault(t.name, verb, r.name, given, r.stack.name, r.stack.root().name)
	var err error
	if !t.selfWait || action != actCreate {
		if err = e.wait(); err == nil {
			err = e.injected()
		}
	}
	if err == nil {
		err = f(e)
	}
	if err == nil {
		c.setResource(r, action, stComplete, "state changed")
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		if !errors.Is(cause, ErrClosed) {
			c.setResource(r, action, stFailed, action+" aborted ("+cause.Error()+")")
		}
		return cause
	}
	fl := asFailure(r.name, err)
	fl.action = action
	c.setResource(r, action, stFailed, fl.Error())
	return fl
}

// doCreate creates a resource. What has gone to ERROR is deleted and made again
// some times; the stack is told of the first failure, the resource of the last.
func (c *Cloud) doCreate(ctx context.Context, t *rtype, r *resource) error {
	first := c.createOnce(ctx, t, r)
	for range c.cfg.Retries {
		if !inError(first) || t.remove == nil || ended(ctx) != nil {
			break
		}
		if err := c.act(ctx, t, r, actDelete, nil, func(e *exec) error { return t.remove(e, r) }); err != nil {
			break
		}
		r.phys = ""
		if err := c.createOnce(ctx, t, r); !inError(err) {
			return err
		}
	}
	return first
}

func inError(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.class == "ResourceInError" && len(f.path) == 2
}

func (c *Cloud) createOnce(ctx context.Context, t *rtype, r *resource) error {
	return c.act(ctx, t, r, actCreate, nil, func(e *exec) error {
		if t.create == nil {
			r.phys = newID()
			return nil
		}
		return t.create(e, r, r.props)
	})
}

func (c *Cloud) doUpdate(ctx context.Context, t *rtype, r *resource, def *hot.Resource, props doc) error {
	old := r.props
	err := c.act(ctx, t, r, actUpdate, old, func(e *exec) error {
		if t.update == nil {
			return nil
		}
		return t.update(e, r, props)
	})
	if err == nil {
		r.props, r.typ, r.def, r.needs = props, def.Type, def, c.needsOf(r.stack, def)
	}
	return err
}

// removeAll deletes resources of a stack, users before what they use. What is
// refused as being in use is tried again, as Heat does, while others go.
func (c *Cloud) removeAll(ctx context.Context, list []*resource) error {
	for {
		later, err := c.removeOnce(ctx, list)
		if err != nil || len(later) == 0 {
			return err
		}
		if len(later) == len(list) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return conflictOf(later)
		}
		list = later
	}
}

func conflictOf(list []*resource) error {
	r := list[0]
	f, _ := r.data["conflict"].(*failure)
	if f == nil {
		f = &failure{class: "Conflict", path: []string{"resources", r.name}, msg: "It is still in use."}
	}
	return f
}

func isConflict(err error) bool {
	var f *failure
	return errors.As(err, &f) && (strings.HasSuffix(f.class, "InUseClient") || f.class == "Conflict")
}

// removeOnce deletes what can be deleted and returns what is still in use.
func (c *Cloud) removeOnce(ctx context.Context, list []*resource) ([]*resource, error) {
	var later []*resource
	byName := map[string][]string{}
	byID := map[string]*resource{}
	c.mu.Lock()
	for _, r := range list {
		byID[r.uuid] = r
		byName[r.name] = append(byName[r.name], r.uuid)
	}
	needs := map[string][]string{}
	for _, r := range list {
		if needs[r.uuid] == nil {
			needs[r.uuid] = []string{}
		}
		for _, n := range r.needs {
			for _, used := range byName[n] {
				needs[used] = append(needs[used], r.uuid)
			}
		}
	}
	c.mu.Unlock()
	err := parallel(ctx, needs, nil, func(id string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		r := byID[id]
		err := c.doDelete(ctx, r)
		if isConflict(err) {
			var f *failure
			errors.As(err, &f)
			r.data["conflict"] = f
			later = append(later, r)
			return nil
		}
		return err
	})
	return later, err
}

func (c *Cloud) doDelete(ctx context.Context, r *resource) error {
	s := r.stack
	t, err := c.typeOf(r.typ, s.files)
	if err != nil {
		t = &rtype{name: r.typ, nests: r.nested != nil}
		if r.nested != nil {
			t = c.templateType(r.typ, nil)
		}
	}
	err = c.act(ctx, t, r, actDelete, nil, func(e *exec) error {
		if t.remove == nil || r.def.DeletionPolicy == "retain" || r.phys == "" {
			return nil
		}
		return t.remove(e, r)
	})
	if err != nil {
		return err
	}
	if s.res[r.name] == r {
		delete(s.res, r.name)
	}
	s.dead = slices.DeleteFunc(s.dead, func(x *resource) bool { return x == r })
	return nil
}

// destroy deletes everything in a stack.
func (c *Cloud) destroy(ctx context.Context, s *stack) error {
	c.mu.Lock()
	all := slices.Clone(s.dead)
	for _, n := range slices.Sorted(maps.Keys(s.res)) {
		all = append(all, s.res[n])
	}
	c.mu.Unlock()
	return c.removeAll(ctx, all)
}
