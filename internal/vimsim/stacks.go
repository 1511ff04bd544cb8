package vimsim

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// heat holds the orchestration service's objects.
type heat struct {
	next    int64
	byID    map[string]*stack        // deleted ones included
	byName  map[string]*stack        // live ones by project and name
	deleted []*stack                 // deleted top-level stacks, oldest first
	parsed  map[string]*hot.Template // templates by their text
}

func newHeat() heat {
	return heat{byID: map[string]*stack{}, byName: map[string]*stack{}, parsed: map[string]*hot.Template{}}
}

// Stack and resource actions and states.
const (
	actCreate   = "CREATE"
	actUpdate   = "UPDATE"
	actDelete   = "DELETE"
	actCheck    = "CHECK"
	actSuspend  = "SUSPEND"
	actResume   = "RESUME"
	actRollback = "ROLLBACK"
	actInit     = "INIT"

	stRunning  = "IN_PROGRESS"
	stComplete = "COMPLETE"
	stFailed   = "FAILED"
)

// stack is one Heat stack; all fields are guarded by Cloud.mu.
type stack struct {
	seq             int64
	id, name        string
	project         string
	user, userName  string
	parent          *stack
	parentRes       string
	tmpl            *hot.Template
	files           map[string]string
	env             doc
	params          map[string]any // as the user gave them
	values          map[string]any // typed, defaults and pseudo parameters included
	res             map[string]*resource
	dead            []*resource // replaced, waiting to be deleted
	action, status  string
	reason          string
	created         time.Time
	updated         time.Time // zero before the first update
	deleted         time.Time
	tags            []string
	timeout         int64
	disableRollback bool
	events          []*event
	op              *operation
	undo            func() // puts back the definition from before the update
}

// operation is a running action on a stack. One that is halted begins nothing more, and what it is in the middle of comes to
// its own end; one that is cancelled is torn out of what it does.
type operation struct {
	cancel context.CancelCauseFunc
	halted chan struct{}
	done   chan struct{}
}

// halt has the operation begin nothing more; callers hold mu.
func (o *operation) halt() {
	if !o.isHalted() {
		close(o.halted)
	}
}

func (o *operation) isHalted() bool {
	select {
	case <-o.halted:
		return true
	default:
		return false
	}
}

type operationKey struct{}

// ended is why nothing more may be begun in an operation, nil while it goes on.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o, _ := ctx.Value(operationKey{}).(*operation); o != nil && o.isHalted() {
		return errSuperseded
	}
	return nil
}

// resource is one resource of a stack; guarded by Cloud.mu.
type resource struct {
	seq              int64
	uuid             string
	name, typ        string
	stack            *stack
	def              *hot.Resource
	action, status   string
	reason           string
	phys             string
	created, updated time.Time
	props            doc
	data             map[string]any // what the type remembers
	metadata         doc
	nested           *stack
	needs            []string // names it was built on
}

type event struct {
	seq            int64
	id             string
	time           time.Time
	stack          *stack
	name, typ      string
	phys           string
	status, reason string
}

func (s *stack) root() *stack {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

func (s *stack) state() string    { return s.action + "_" + s.status }
func (r *resource) state() string { return r.action + "_" + r.status }

// shortID is Heat's 12-character random name.
func shortID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:])[:12])
}

// physicalName is what Heat calls a nameless resource.
func (r *resource) physicalName() string {
	if n, isText := r.data["name"].(string); isText {
		return n
	}
	n := r.stack.name + "-" + r.name + "-" + shortID()
	r.data["name"] = n
	return n
}

// reduced shortens a name as Heat does: the first two characters and the end.
func reduced(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return name[:2] + "-" + name[len(name)-(limit-3):]
}

func nameKey(project, name string) string { return project + "/" + name }

// newStack registers a stack; callers hold mu.
func (c *Cloud) newStack(s *stack) *stack {
	c.heat.next++
	s.seq, s.created = c.heat.next, c.clk.Now()
	if s.id == "" {
		s.id = newID()
	}
	s.res = map[string]*resource{}
	s.action, s.status = actInit, stComplete
	c.heat.byID[s.id] = s
	c.heat.byName[nameKey(s.project, s.name)] = s
	return s
}

func pseudo(s *stack) map[string]any {
	return map[string]any{"OS::stack_name": s.name, "OS::stack_id": s.id, "OS::project_id": s.project}
}

// setStack moves a stack to a state and records the event.
func (c *Cloud) setStack(s *stack, action, status, reason string) {
	s.action, s.status, s.reason = action, status, reason
	c.event(s, s.name, "OS::Heat::Stack", s.id, action+"_"+status, reason)
}

func (c *Cloud) setResource(r *resource, action, status, reason string) {
	r.action, r.status, r.reason, r.updated = action, status, reason, c.clk.Now()
	c.event(r.stack, r.name, r.typ, r.phys, action+"_"+status, reason)
}

// maxEvents bounds the events kept by one stack.
const maxEvents = 2000

func (c *Cloud) event(s *stack, name, typ, phys, status, reason string) {
	c.heat.next++
	s.events = append(s.events, &event{seq: c.heat.next, id: newID(), time: c.clk.Now(), stack: s, name: name, typ: typ, phys: phys, status: status, reason: reason})
	if len(s.events) > maxEvents {
		s.events = append([]*event(nil), s.events[len(s.events)-maxEvents/2:]...)
	}
}

// forget drops the oldest deleted stacks beyond the configured number.
func (c *Cloud) forget(s *stack) {
	key := nameKey(s.project, s.name)
	if c.heat.byName[key] == s {
		delete(c.heat.byName, key)
	}
	s.deleted = c.clk.Now()
	s.tmpl, s.files, s.dead, s.values = &hot.Template{Description: s.tmpl.Description, Params: s.tmpl.Params, Raw: s.tmpl.Raw, Resources: map[string]*hot.Resource{}}, nil, nil, map[string]any{}
	s.res = map[string]*resource{}
	if s.parent != nil {
		// Nested stacks go with their parent and are not looked at again.
		delete(c.heat.byID, s.id)
		return
	}
	c.heat.deleted = append(c.heat.deleted, s)
	for len(c.heat.deleted) > c.cfg.DeletedStacks {
		delete(c.heat.byID, c.heat.deleted[0].id)
		c.heat.deleted = c.heat.deleted[1:]
	}
}

// failure is why a resource failed, as Heat shows it: class, path, message.
type failure struct {
	class  string
	path   []string
	msg    string
	action string // of the resource that failed, once it is known
}

func (f *failure) Error() string {
	out := ""
	if f.class != "" {
		out = f.class + ": "
	}
	if len(f.path) > 0 {
		out += hot.JoinPath(f.path) + ": "
	}
	return out + f.msg
}

// asFailure turns an error met while working on a resource into a failure
// with the resource's place in front.
func asFailure(name string, err error) *failure {
	at := []string{"resources", name}
	var f *failure
	if errors.As(err, &f) {
		return &failure{class: f.class, path: append(at, f.path...), msg: f.msg}
	}
	var h *hot.Error
	if errors.As(err, &h) {
		return &failure{class: h.Kind, path: at, msg: h.Error()}
	}
	return &failure{class: "Error", path: at, msg: err.Error()}
}

// clientFailure words a refusal of Nova, Neutron or Cinder as Heat's clients do.
func clientFailure(service string, err error) error {
	var e *svcErr
	if !errors.As(err, &e) {
		return err
	}
	switch service {
	case "neutron":
		class := map[int]string{400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}[e.status]
		switch e.kind {
		case "NetworkNotFound", "PortNotFound", "StateInvalid", "NetworkInUse", "PortInUse", "IpAddressInUse", "IpAddressAlreadyAllocated", "InvalidIpForNetwork",
			"InvalidIpForSubnet", "OverQuota", "IpAddressGenerationFailure", "MacAddressInUse", "HostNotCompatibleWithFixedIps", "ExternalIpAddressExhausted":
			class = e.kind + "Client"
		}
		return &failure{class: orText(class, "NeutronClientException"), msg: e.msg + "\nNeutron server returns request_ids: ['req-" + newID() + "']"}
	case "nova", "cinder":
		class := map[int]string{400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 413: "OverLimit"}[e.status]
		if service == "cinder" && e.status == 409 {
			class = "" // Cinder's client has none for it
		}
		return &failure{class: orText(class, "ClientException"), msg: e.msg + " (HTTP " + hot.String(int64(e.status)) + ") (Request-ID: req-" + newID() + ")"}
	}
	return err
}

// resolver evaluates functions against a stack; it is used with mu held.
func (c *Cloud) resolver(s *stack) *hot.Resolver {
	return &hot.Resolver{
		Template: s.tmpl, Params: s.values, Files: s.files,
		GetResource: func(name string) (any, error) {
			if r := s.res[name]; r != nil {
				return c.reference(r), nil
			}
			return name, nil
		},
		GetAttr: func(name, attr string, path []any) (any, error) {
			r := s.res[name]
			if r == nil || r.phys == "" && r.nested == nil && r.status != stComplete {
				return nil, nil
			}
			return c.attribute(r, attr, path)
		},
	}
}

// limit is the stack's timeout; zero is none.
func (c *Cloud) limit(s *stack) time.Duration { return time.Duration(s.timeout) * c.cfg.Minute }
