package vimsim

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

const heatBase = "/orchestration/v1/{project}"

var stackNameRE = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,254}$`)

// heatErr gives an engine or template error its status.
func heatErr(err error) error {
	h, isHot := err.(*hot.Error) //nolint:errorlint // hot returns it unwrapped
	if !isHot {
		return err
	}
	code := 400
	switch h.Kind {
	case "CircularDependencyException":
		code = 500
	case "NotFound", "EntityNotFound":
		code = 404
	}
	return fail(code, h.Kind, h.Remote())
}

func (c *Cloud) routeHeat(r chi.Router) {
	// project checks the project in the path; handlers run without mu.
	project := func(f handlerFunc) http.HandlerFunc {
		return c.handle(heatShape, false, func(r *request) (reply, error) {
			if r.arg("project") != r.s.project.id {
				return reply{}, fail(403, "Forbidden", "You are not authorized to use this project.")
			}
			rep, err := f(r)
			if err != nil {
				err = heatErr(err)
			}
			return rep, err
		})
	}
	locked := func(f handlerFunc) http.HandlerFunc {
		return project(func(r *request) (reply, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return f(r)
		})
	}
	r.Get("/orchestration", c.handle(heatShape, true, func(r *request) (reply, error) {
		return status(300, doc{"versions": []doc{{"id": "v1.0", "status": "CURRENT", "links": []doc{{"rel": "self", "href": r.root + "/orchestration/v1/"}}}}})
	}))
	r.Get(heatBase+"/build_info", locked(func(*request) (reply, error) {
		return ok(doc{"api": doc{"revision": "unknown"}, "engine": doc{"revision": "unknown"}})
	}))
	r.Get(heatBase+"/stacks", locked(c.listStacks))
	r.Post(heatBase+"/stacks", project(c.createStack))
	r.Post(heatBase+"/validate", project(c.validateTemplate))
	r.Get(heatBase+"/resource_types", locked(func(*request) (reply, error) {
		l := []string{}
		for n := range registry {
			l = append(l, n)
		}
		slices.Sort(l)
		return ok(doc{"resource_types": l})
	}))
	r.Get(heatBase+"/resource_types/{type}", locked(showType))

	r.HandleFunc(heatBase+"/stacks/{name}", locked(c.redirect))
	for _, sub := range []string{"resources", "events", "template", "actions", "environment", "files", "outputs"} {
		r.HandleFunc(heatBase+"/stacks/{name}/"+sub, locked(c.redirect))
		r.HandleFunc(heatBase+"/stacks/{name}/"+sub+"/*", locked(c.redirect))
	}
	one := heatBase + "/stacks/{name}/{id}"
	on := func(f func(r *request, s *stack) (reply, error)) http.HandlerFunc {
		return locked(func(r *request) (reply, error) {
			s, err := c.stackOf(r)
			if err != nil {
				return reply{}, err
			}
			return f(r, s)
		})
	}
	r.Get(one, on(func(r *request, s *stack) (reply, error) { return ok(doc{"stack": c.stackDoc(r, s)}) }))
	r.Put(one, project(func(r *request) (reply, error) { return c.updateStack(r, false) }))
	r.Patch(one, project(func(r *request) (reply, error) { return c.updateStack(r, true) }))
	r.Delete(one, on(func(_ *request, s *stack) (reply, error) {
		if s.action == actDelete && s.status == stComplete {
			return reply{}, notFound(s.name)
		}
		if s.action != actDelete || s.status == stFailed {
			c.startDelete(s)
		}
		return status(204, nil)
	}))
	r.Get(one+"/template", on(func(_ *request, s *stack) (reply, error) { return ok(s.tmpl.Raw) }))
	r.Get(one+"/files", on(func(_ *request, s *stack) (reply, error) {
		if s.files == nil {
			return ok(doc{})
		}
		return ok(s.files)
	}))
	r.Get(one+"/environment", on(func(_ *request, s *stack) (reply, error) {
		return ok(with(doc{"parameters": orElse(any(s.params), doc{}), "parameter_defaults": doc{}, "encrypted_param_names": []any{}, "event_sinks": []any{}, "resource_registry": doc{"resources": doc{}}}, flat(s.env)...))
	}))
	r.Get(one+"/outputs", on(func(_ *request, s *stack) (reply, error) {
		l := []doc{}
		for _, o := range c.outputs(s) {
			l = append(l, doc{"output_key": o["output_key"], "description": o["description"]})
		}
		return ok(doc{"outputs": l})
	}))
	r.Get(one+"/outputs/{key}", on(func(r *request, s *stack) (reply, error) {
		for _, o := range c.outputs(s) {
			if o["output_key"] == r.arg("key") {
				return ok(doc{"output": o})
			}
		}
		return reply{}, fail(404, "NotFound", "Specified output key "+r.arg("key")+" not found.")
	}))
	r.Post(one+"/actions", project(c.stackAction))
	r.Get(one+"/events", on(func(r *request, s *stack) (reply, error) { return c.listEvents(r, s, "") }))
	r.Get(one+"/resources", on(c.listResources))
	res := one + "/resources/{resource}"
	onRes := func(f func(r *request, s *stack, x *resource) (reply, error)) http.HandlerFunc {
		return on(func(r *request, s *stack) (reply, error) {
			x, err := c.resourceOf(r, s)
			if err != nil {
				return reply{}, err
			}
			return f(r, s, x)
		})
	}
	r.Get(res, onRes(func(r *request, s *stack, x *resource) (reply, error) {
		return ok(doc{"resource": c.resourceDoc(r, x, true)})
	}))
	r.Patch(res, project(c.markUnhealthy))
	r.Get(res+"/metadata", onRes(func(_ *request, _ *stack, x *resource) (reply, error) { return ok(doc{"metadata": x.metadata}) }))
	r.Post(res+"/signal", onRes(func(_ *request, s *stack, x *resource) (reply, error) {
		if err := c.signal(s, x); err != nil {
			return reply{}, err
		}
		return reply{status: 200, raw: []byte("null")}, nil
	}))
	r.Get(res+"/events", onRes(func(r *request, s *stack, x *resource) (reply, error) { return c.listEvents(r, s, x.name) }))
	r.Get(res+"/events/{event}", onRes(func(r *request, s *stack, x *resource) (reply, error) {
		for _, e := range s.events {
			if e.id == r.arg("event") && e.name == x.name {
				return ok(doc{"event": with(eventDoc(r, e), "resource_type", e.typ, "resource_properties", orElse(any(x.props), doc{}))})
			}
		}
		return reply{}, fail(404, "", "No event "+r.arg("event")+" found")
	}))
}

func notFound(name string) error {
	return fail(404, "EntityNotFound", "The Stack ("+name+") could not be found.")
}

// lookup finds a stack by id (deleted ones too) or by name. mu is held.
func (c *Cloud) lookup(project, nameOrID string) *stack {
	if s := c.heat.byID[nameOrID]; s != nil && s.project == project {
		return s
	}
	return c.heat.byName[nameKey(project, nameOrID)]
}

func (c *Cloud) stackOf(r *request) (*stack, error) {
	s := c.heat.byID[r.arg("id")]
	if s == nil || s.project != r.s.project.id || s.name != r.arg("name") {
		return nil, notFound(r.arg("name"))
	}
	return s, nil
}

// redirect answers a URL that has only a stack's name or only its id.
func (c *Cloud) redirect(r *request) (reply, error) {
	name := r.arg("name")
	s := c.lookup(r.s.project.id, name)
	if s == nil {
		return reply{}, notFound(name)
	}
	_, rest, _ := strings.Cut(r.URL.EscapedPath(), "/stacks/")
	_, rest, more := strings.Cut(rest, "/")
	loc := stackURL(r.root, s)
	if more {
		loc += "/" + rest
	}
	if r.URL.RawQuery != "" {
		loc += "?" + r.URL.RawQuery
	}
	return reply{status: 302, header: http.Header{"Location": {loc}}, body: doc{
		"message": "The resource was found at <a href=\"" + loc + "\">" + loc + "</a>;<br />\nyou should be redirected automatically.\n\n",
		"code":    "302 Found", "title": "Found",
	}}, nil
}

func stackURL(root string, s *stack) string {
	return root + "/orchestration/v1/" + s.project + "/stacks/" + s.name + "/" + s.id
}

const heatTime = "2006-01-02T15:04:05Z"

func (c *Cloud) stackSummary(r *request, s *stack) doc {
	d := doc{
		"id": s.id, "stack_name": s.name, "project": s.project, "description": s.tmpl.Description, "stack_status": s.state(), "stack_status_reason": s.reason,
		"creation_time": s.created.UTC().Format(heatTime), "updated_time": nil, "deletion_time": nil, "stack_owner": s.userName,
		"parent": nil, "stack_user_project_id": s.project, "tags": nil, "links": []doc{{"href": stackURL(r.root, s), "rel": "self"}},
	}
	if !s.updated.IsZero() {
		d["updated_time"] = s.updated.UTC().Format(heatTime)
	}
	if !s.deleted.IsZero() {
		d["deletion_time"] = s.deleted.UTC().Format(heatTime)
	}
	if s.parent != nil {
		d["parent"] = s.parent.id
	}
	if len(s.tags) > 0 {
		d["tags"] = s.tags
	}
	return d
}

func (c *Cloud) stackDoc(r *request, s *stack) doc {
	params := doc{}
	for n, v := range s.values {
		if p := s.tmpl.Params[n]; p != nil {
			params[n] = p.Show(v)
		} else {
			params[n] = hot.String(v)
		}
	}
	d := with(c.stackSummary(r, s), "parameters", params, "template_description", s.tmpl.Description, "capabilities", []any{},
		"notification_topics", []any{}, "disable_rollback", s.disableRollback, "timeout_mins", nil)
	if s.timeout > 0 {
		d["timeout_mins"] = s.timeout
	}
	if s.deleted.IsZero() {
		d["outputs"] = c.outputs(s)
	}
	return d
}

func (c *Cloud) outputs(s *stack) []doc {
	out := []doc{}
	res := c.resolver(s)
	names := make([]string, 0, len(s.tmpl.Outputs))
	for n := range s.tmpl.Outputs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		o := s.tmpl.Outputs[n]
		if on, err := res.Condition(o.Condition); err == nil && !on {
			continue
		}
		d := doc{"output_key": n, "description": o.Description}
		v, err := res.Resolve(o.Value)
		if err != nil {
			d["output_error"] = err.Error()
		}
		d["output_value"] = v
		out = append(out, d)
	}
	return out
}

func (c *Cloud) listStacks(r *request) (reply, error) {
	q := r.URL.Query()
	nested := isTrue(q.Get("show_nested"))
	var l []*stack
	for _, s := range c.heat.byID {
		has := func(key, val string) bool { return q.Get(key) == "" || slices.Contains(q[key], val) }
		switch {
		case s.project != r.s.project.id && !r.s.admin(), !s.deleted.IsZero() && !isTrue(q.Get("show_deleted")), s.parent != nil && !nested && q.Get("owner_id") == "":
			continue
		case !has("name", s.name) || !has("stack_name", s.name) || !has("id", s.id):
			continue
		case q.Get("owner_id") != "" && (s.parent == nil || s.parent.id != q.Get("owner_id")):
			continue
		case !(has("status", s.status) || has("status", s.state())) || !has("action", s.action):
			continue
		}
		if !hasTags(s, q.Get("tags"), true) || q.Get("tags_any") != "" && !hasTags(s, q.Get("tags_any"), false) {
			continue
		}
		l = append(l, s)
	}
	slices.SortFunc(l, stackOrder(q.Get("sort_keys"), q.Get("sort_dir")))
	docs := make([]doc, len(l))
	for i, s := range l {
		docs[i] = c.stackSummary(r, s)
	}
	total := len(docs)
	docs, more, err := page(docs, q, "id")
	if err != nil {
		return reply{}, err
	}
	body := doc{"stacks": docs}
	if isTrue(q.Get("with_count")) {
		body["count"] = total
	}
	if more {
		q.Set("marker", str(docs[len(docs)-1], "id"))
		body["links"] = []doc{{"rel": "next", "href": r.root + r.URL.Path + "?" + q.Encode()}}
	}
	return ok(body)
}

func stackOrder(key, dir string) func(a, b *stack) int {
	return func(a, b *stack) int {
		n := 0
		switch key {
		case "name", "stack_name":
			n = cmp.Compare(a.name, b.name)
		case "status", "stack_status":
			n = cmp.Compare(a.state(), b.state())
		case "updated_at", "updated_time":
			n = a.updated.Compare(b.updated)
		}
		if n == 0 {
			n = cmp.Compare(a.seq, b.seq)
		}
		// Heat's default is the newest first.
		if dir != "asc" {
			n = -n
		}
		return n
	}
}

func hasTags(s *stack, list string, all bool) bool {
	if list == "" {
		return true
	}
	for _, t := range strings.Split(list, ",") {
		if slices.Contains(s.tags, t) != all {
			return !all
		}
	}
	return all
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "t", "on":
		return true
	}
	return false
}

func showType(r *request) (reply, error) {
	t := registry[r.arg("type")]
	if t == nil {
		return reply{}, fail(404, "EntityNotFound", "The Resource Type ("+r.arg("type")+") could not be found.")
	}
	attrs, ps := doc{"show": doc{"description": "Detailed information about resource.", "type": "map"}}, doc{}
	for _, a := range t.attrs {
		attrs[a] = doc{"description": "", "type": "string"}
	}
	for n, p := range t.props {
		ps[n] = doc{"type": "string", "required": p.required, "update_allowed": p.update, "immutable": false, "description": ""}
	}
	return ok(doc{"resource_type": t.name, "attributes": attrs, "properties": ps, "support_status": doc{"status": "SUPPORTED", "message": nil, "version": nil, "previous_status": nil}, "description": ""})
}

// resourceOf finds a resource by its name.
func (c *Cloud) resourceOf(r *request, s *stack) (*resource, error) {
	name := r.arg("resource")
	if x := s.res[name]; x != nil {
		return x, nil
	}
	return nil, fail(404, "ResourceNotFound", "The Resource ("+name+") could not be found in Stack "+s.name+".")
}

// anyResourceOf finds a resource by its name or its physical id.
func (c *Cloud) anyResourceOf(r *request, s *stack) (*resource, error) {
	for _, x := range s.res {
		if x.phys == r.arg("resource") && x.phys != "" {
			return x, nil
		}
	}
	return c.resourceOf(r, s)
}

func (c *Cloud) resourceDoc(r *request, x *resource, detail bool) doc {
	s := x.stack
	users := []string{}
	for n, o := range s.res {
		if slices.Contains(o.needs, x.name) {
			users = append(users, n)
		}
	}
	slices.Sort(users)
	self := stackURL(r.root, s)
	links := []doc{{"href": self + "/resources/" + x.name, "rel": "self"}, {"href": self, "rel": "stack"}}
	if x.nested != nil {
		links = append(links, doc{"href": stackURL(r.root, x.nested), "rel": "nested"})
	}
	d := doc{
		"resource_name": x.name, "logical_resource_id": x.name, "physical_resource_id": x.phys, "resource_type": x.typ,
		"resource_status": x.state(), "resource_status_reason": x.reason, "required_by": users, "links": links,
		"creation_time": x.created.UTC().Format(heatTime), "updated_time": x.updated.UTC().Format(heatTime),
	}
	if s.parentRes != "" {
		d["parent_resource"] = s.parentRes
	}
	if detail {
		d["description"] = x.def.Description
		attrs := doc{}
		if x.phys != "" {
			if v, err := c.attribute(x, "", nil); err == nil {
				if m, isMap := v.(map[string]any); isMap {
					attrs = m
				}
			}
		}
		d["attributes"] = attrs
	}
	return d
}

func (c *Cloud) listResources(r *request, s *stack) (reply, error) {
	q := r.URL.Query()
	for k := range q {
		switch k {
		case "type", "status", "name", "action", "id", "physical_resource_id", "nested_depth", "with_detail":
		default:
			return reply{}, fail(400, "HTTPBadRequest", "Invalid filter parameters ['"+k+"']")
		}
	}
	out := []doc{}
	var walk func(*stack, int64)
	walk = func(s *stack, depth int64) {
		var l []*resource
		for _, x := range s.res {
			l = append(l, x)
		}
		slices.SortFunc(l, func(a, b *resource) int { return cmp.Compare(a.seq, b.seq) })
		for _, x := range l {
			has := func(key, val string) bool { return q.Get(key) == "" || slices.Contains(q[key], val) }
			if has("type", x.typ) && has("name", x.name) && has("action", x.action) && (has("status", x.status) || has("status", x.state())) && has("physical_resource_id", x.phys) {
				out = append(out, c.resourceDoc(r, x, isTrue(q.Get("with_detail"))))
			}
		}
		if depth <= 0 {
			return
		}
		for _, x := range l {
			if x.nested != nil {
				walk(x.nested, depth-1)
			}
		}
	}
	walk(s, min(toInt(q.Get("nested_depth")), 5))
	return ok(doc{"resources": out})
}

func (c *Cloud) markUnhealthy(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	for k := range q {
		if k != "mark_unhealthy" && k != "resource_status_reason" {
			return reply{}, fail(400, "HTTPBadRequest", "Invalid keys in resource mark unhealthy {'"+k+"'}")
		}
	}
	bad, isBool := q["mark_unhealthy"].(bool)
	if !isBool {
		if q["mark_unhealthy"] == nil {
			return reply{}, fail(400, "HTTPBadRequest", "Missing mandatory (mark_unhealthy) key from mark unhealthy request")
		}
		bad = isTrue(hot.String(q["mark_unhealthy"]))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stackOf(r)
	if err != nil {
		return reply{}, err
	}
	x, err := c.anyResourceOf(r, s)
	if err != nil {
		return reply{}, err
	}
	if x.status == stRunning {
		return reply{}, fail(409, "ActionInProgress", "Stack "+s.name+" already has an action ("+s.action+") in progress.")
	}
	reason := orText(str(q, "resource_status_reason"), "state changed by resource_mark_unhealthy api")
	switch {
	case bad && x.action != actDelete:
		c.setResource(x, actCheck, stFailed, reason)
	case !bad && x.action == actCheck && x.status == stFailed:
		c.setResource(x, actCheck, stComplete, reason)
	}
	return reply{status: 200, raw: []byte("null")}, nil
}

func eventDoc(r *request, e *event) doc {
	self := stackURL(r.root, e.stack)
	return doc{
		"id": e.id, "event_time": e.time.UTC().Format(heatTime), "resource_name": e.name, "logical_resource_id": e.name, "physical_resource_id": e.phys,
		"resource_status": e.status, "resource_status_reason": e.reason,
		"links": []doc{
			{"href": self + "/resources/" + e.name + "/events/" + e.id, "rel": "self"}, {"href": self + "/resources/" + e.name, "rel": "resource"},
			{"href": self, "rel": "stack"}, {"href": stackURL(r.root, e.stack.root()), "rel": "root_stack"},
		},
	}
}

func (c *Cloud) listEvents(r *request, s *stack, name string) (reply, error) {
	q := r.URL.Query()
	var all []*event
	var walk func(*stack, int64)
	walk = func(s *stack, depth int64) {
		for _, e := range s.events {
			if (name == "" || e.name == name) && (q.Get("resource_name") == "" || e.name == q.Get("resource_name")) &&
				(q.Get("resource_status") == "" || strings.HasSuffix(e.status, q.Get("resource_status"))) {
				all = append(all, e)
			}
		}
		if depth > 0 {
			for _, x := range s.res {
				if x.nested != nil {
					walk(x.nested, depth-1)
				}
			}
		}
	}
	walk(s, toInt(q.Get("nested_depth")))
	slices.SortFunc(all, func(a, b *event) int { return cmp.Compare(a.seq, b.seq) })
	if q.Get("sort_dir") == "desc" {
		slices.Reverse(all)
	}
	if len(all) == 0 && name != "" {
		return reply{}, fail(404, "HTTPNotFound", "No events found for resource "+name)
	}
	docs := make([]doc, len(all))
	for i, e := range all {
		docs[i] = eventDoc(r, e)
	}
	docs, _, err := page(docs, q, "id")
	if err != nil {
		return reply{}, err
	}
	return ok(doc{"events": docs})
}
