package vimsim

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// definition is what POST, PUT and PATCH of a stack say. mu is held.
func (c *Cloud) definition(q doc, s *stack) error {
	switch t := q["template"].(type) {
	case string:
		tm, err := c.parse(t)
		if err != nil {
			return err
		}
		s.tmpl = tm
	case map[string]any:
		tm, err := hot.Parse(t)
		if err != nil {
			return err
		}
		s.tmpl = tm
	case nil:
		if q["template_url"] != nil {
			return fail(400, "HTTPBadRequest", "Could not retrieve template: template_url is not supported by the simulator")
		}
		if s.tmpl == nil {
			return fail(400, "HTTPBadRequest", "No template specified")
		}
	default:
		return fail(400, "HTTPBadRequest", "The template is not a JSON object or YAML mapping.")
	}
	if f, isMap := q["files"].(map[string]any); isMap {
		s.files = maps.Clone(s.files)
		if s.files == nil {
			s.files = map[string]string{}
		}
		for k, v := range f {
			s.files[k] = hot.String(v)
		}
	}
	if e := q["environment"]; e != nil {
		if text, isText := e.(string); isText {
			v, err := hot.Decode([]byte(text))
			if err != nil {
				return fail(400, "HTTPBadRequest", "Environment not in valid format: "+err.Error())
			}
			e = v
		}
		s.env, _ = e.(map[string]any)
		s.params = merged(s.params, sub(s.env, "parameters"))
		for k, v := range sub(s.env, "parameter_defaults") {
			if _, given := s.params[k]; !given && s.tmpl.Params[k] != nil {
				s.params = merged(s.params, doc{k: v})
			}
		}
	}
	if p, isMap := q["parameters"].(map[string]any); isMap {
		s.params = merged(s.params, p)
	}
	if t, isText := q["tags"].(string); isText {
		s.tags = nil
		for _, x := range strings.Split(t, ",") {
			if len([]rune(x)) > 80 {
				return fail(400, "HTTPBadRequest", `Invalid tag, "`+x+`" is longer than 80 characters`)
			}
			if x != "" {
				s.tags = append(s.tags, x)
			}
		}
	}
	if v, given := q["timeout_mins"]; given && v != nil {
		if s.timeout = toInt(v); s.timeout <= 0 {
			return fail(400, "ValueError", fmt.Sprintf("Invalid timeout value %v", v))
		}
	}
	if v, isBool := q["disable_rollback"].(bool); isBool {
		s.disableRollback = v
	}
	return nil
}

func merged(a, b map[string]any) map[string]any {
	m := make(map[string]any, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// checked types the parameters and validates the whole definition.
func (c *Cloud) checked(s *stack) error {
	vals, err := s.tmpl.Values(s.params, pseudo(s))
	if err != nil {
		return err
	}
	s.values = vals
	return c.validate(s, true, 0)
}

func (c *Cloud) createStack(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	name := str(q, "stack_name")
	if name == "" {
		return reply{}, fail(400, "HTTPBadRequest", "No stack name specified")
	}
	if !stackNameRE.MatchString(name) {
		return reply{}, fail(400, "StackValidationFailed", "Invalid stack name "+name+` must contain only alphanumeric or "_-." characters, must start with alpha and must be 255 characters or less.`)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	project := r.s.project.id
	if c.heat.byName[nameKey(project, name)] != nil {
		return reply{}, fail(409, "StackExists", "The Stack ("+name+") already exists.")
	}
	if lim := c.quota(project).Stacks; lim > 0 {
		n := 0
		for _, s := range c.heat.byName {
			if s.project == project && s.parent == nil {
				n++
			}
		}
		if n >= lim {
			return reply{}, fail(403, "RequestLimitExceeded", fmt.Sprintf("Request limit exceeded: You have reached the maximum stacks per tenant, %d. Please delete some stacks.", lim))
		}
	}
	s := &stack{id: newID(), name: name, project: project, user: r.s.user.id, userName: r.s.user.name, env: doc{}, disableRollback: true}
	if err := c.definition(q, s); err != nil {
		return reply{}, err
	}
	if err := c.checked(s); err != nil {
		return reply{}, err
	}
	c.newStack(s)
	c.startCreate(s)
	link := stackURL(r.root, s)
	return reply{status: 201, body: doc{"stack": doc{"id": s.id, "links": []doc{{"href": link, "rel": "self"}}}}, header: map[string][]string{"Location": {link}}}, nil
}

func (c *Cloud) updateStack(r *request, patch bool) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stackOf(r)
	if err != nil {
		return reply{}, err
	}
	switch {
	case !s.deleted.IsZero():
		return reply{}, notFound(s.name)
	case s.action == actSuspend:
		return reply{}, fail(400, "NotSupported", "Updating a stack when it is suspended is not supported.")
	case s.action == actDelete && s.status == stComplete:
		return reply{}, notFound(s.name)
	case s.action == actDelete:
		return reply{}, fail(400, "NotSupported", "Updating a stack when it is deleting is not supported.")
	}
	next := &stack{id: s.id, name: s.name, project: s.project, user: s.user, res: s.res, env: doc{}, timeout: s.timeout, disableRollback: s.disableRollback, parent: s.parent}
	if patch {
		next.tmpl, next.files, next.env, next.tags = s.tmpl, s.files, s.env, s.tags
		next.params = maps.Clone(s.params)
		if l, isList := q["clear_parameters"].([]any); isList {
			for _, k := range l {
				delete(next.params, hot.String(k))
			}
		}
	}
	if err := c.definition(q, next); err != nil {
		return reply{}, err
	}
	if patch {
		// Heat drops what the template does not declare on a PATCH.
		for k := range next.params {
			if next.tmpl.Params[k] == nil {
				delete(next.params, k)
			}
		}
	}
	if err := c.checked(next); err != nil {
		return reply{}, err
	}
	for n, p := range next.tmpl.Params {
		if old, had := s.values[n]; p.Immutable && had && hot.String(old) != hot.String(next.values[n]) {
			return reply{}, fail(400, "ImmutableParameterModified", "The following parameters are immutable and may not be updated: "+n)
		}
	}
	c.startUpdate(s, next)
	return status(202, nil)
}

func (c *Cloud) validateTemplate(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &stack{id: newID(), name: "validate", project: r.s.project.id, env: doc{}}
	if err := c.definition(q, s); err != nil {
		return reply{}, err
	}
	s.values = pseudo(s)
	params := doc{}
	for n, p := range s.tmpl.Params {
		v, given := s.params[n]
		if !given {
			v = p.Default
		}
		s.values[n] = v
		kind := map[string]string{"string": "String", "number": "Number", "json": "Json", "comma_delimited_list": "CommaDelimitedList", "boolean": "Boolean"}[p.Type]
		d := doc{"Type": kind, "Description": p.Description, "NoEcho": fmt.Sprint(p.Hidden), "Label": orText(p.Label, n)}
		if p.HasDefault {
			d["Default"] = p.Default
		}
		params[n] = d
	}
	if err := c.validate(s, false, 0); err != nil {
		return reply{}, err
	}
	return ok(doc{"Description": s.tmpl.Description, "Parameters": params, "Environment": doc{"parameters": doc{}, "parameter_defaults": doc{}, "resource_registry": doc{"resources": doc{}}, "event_sinks": []any{}, "encrypted_param_names": []any{}}})
}

// stackAction runs check, suspend, resume and the two cancels.
func (c *Cloud) stackAction(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	if len(q) != 1 {
		return reply{}, fail(400, "HTTPBadRequest", "Expected a single action")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stackOf(r)
	if err != nil {
		return reply{}, err
	}
	for act := range q {
		switch act {
		case "check":
			c.sweep(s, actCheck)
		case "suspend":
			c.sweep(s, actSuspend)
		case "resume":
			c.sweep(s, actResume)
		case "cancel_update", "cancel_without_rollback":
			if s.status != stRunning || s.action != actUpdate && (s.action != actCreate || act == "cancel_update") {
				return reply{}, fail(400, "NotSupported", "Cancelling update when stack is "+s.state()+" is not supported.")
			}
			if act == "cancel_update" {
				c.startRollback(s, s.undo)
				break
			}
			c.stop(s)
		default:
			return reply{}, fail(400, "HTTPBadRequest", "Invalid action "+act+" specified")
		}
	}
	return reply{status: 200, raw: []byte("null")}, nil
}

// stop ends what goes on in a stack and in those nested in it: nothing more is begun, what has been begun comes to its end.
func (c *Cloud) stop(s *stack) {
	if s.status == stRunning {
		s.op.halt()
		c.setStack(s, s.action, stFailed, "Stack "+s.action+" cancelled")
	}
	for _, x := range s.res {
		if x.nested != nil {
			c.stop(x.nested)
		}
	}
}

// sweep runs an action that touches every resource of a stack and those below.
func (c *Cloud) sweep(s *stack, action string) {
	c.begin(s, action, nil, func(ctx context.Context) error { return c.sweepOne(ctx, s, action) }, func(err error) {
		if err != nil {
			c.setStack(s, action, stFailed, stackReason(action, err))
			return
		}
		c.setStack(s, action, stComplete, "Stack "+action+" completed successfully")
	})
}

func (c *Cloud) sweepOne(ctx context.Context, s *stack, action string) error {
	c.mu.Lock()
	names := map[string][]string{}
	for n := range s.res {
		names[n] = nil
	}
	c.mu.Unlock()
	return parallel(ctx, names, nil, func(name string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		x := s.res[name]
		if x == nil {
			return nil
		}
		t, err := c.typeOf(x.typ, s.files)
		if err != nil {
			return asFailure(name, err)
		}
		return c.act(ctx, t, x, action, nil, func(e *exec) error {
			if x.nested != nil {
				return e.unlocked(func() error {
					return c.nestedOp(ctx, x.nested, action, nil, func(ctx context.Context) error { return c.sweepOne(ctx, x.nested, action) })
				})
			}
			return c.sweepServer(x, action)
		})
	})
}

func (c *Cloud) sweepServer(x *resource, action string) error {
	if x.typ != "OS::Nova::Server" {
		return nil
	}
	sv := c.nova.servers[x.phys]
	switch {
	case sv == nil:
		return &failure{class: "NotFound", msg: "Instance " + x.phys + " could not be found. (HTTP 404)"}
	case action == actSuspend:
		sv.status = "SUSPENDED"
	case action == actResume:
		sv.status = "ACTIVE"
	case sv.status != "ACTIVE":
		return &failure{class: "Error", msg: "'status': expected '['ACTIVE']', got '" + sv.status + "'"}
	}
	return nil
}
