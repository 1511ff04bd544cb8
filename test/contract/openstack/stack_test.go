package openstack_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// stack is a stack that a case has made.
type stack struct {
	c        *target
	name, id string
}

// hot makes a request's members of a template without its first line.
func hot(template string, more ...any) doc {
	d := doc{"template": "heat_template_version: 2016-10-14\n" + template, "timeout_mins": 10, "disable_rollback": true}
	for n := 0; n+1 < len(more); n += 2 {
		d[more[n].(string)] = more[n+1]
	}
	return d
}

// with is a copy of a request with some members set.
func with(d doc, more ...any) doc {
	d = maps.Clone(d)
	for n := 0; n+1 < len(more); n += 2 {
		d[more[n].(string)] = more[n+1]
	}
	return d
}

// create has Heat create a stack, which the case's end deletes. It waits for nothing.
func (c *target) create(t *testing.T, request doc) *stack {
	t.Helper()
	s := &stack{c: c, name: text(request, "stack_name")}
	if s.name == "" {
		s.name = "contract_" + unique()
	}
	made := c.heat.do(t, http.MethodPost, "stacks", with(request, "stack_name", s.name)).is(t, http.StatusCreated)
	s.id = text(made.doc, "stack", "id")
	if s.id == "" {
		t.Fatalf("the answer to creating a stack has no id: %s", made.text)
	}
	t.Cleanup(func() { s.remove(t) })
	return s
}

// made is a stack that is complete.
func (c *target) made(t *testing.T, request doc) *stack {
	t.Helper()
	s := c.create(t, request)
	s.await(t, "CREATE_COMPLETE")
	return s
}

// path is where the stack is, below Heat's endpoint.
func (s *stack) path(more ...string) string {
	return strings.Join(append([]string{"stacks", s.name, s.id}, more...), "/")
}

// show reads the stack.
func (s *stack) show(t *testing.T) doc {
	t.Helper()
	d, _ := at(s.c.heat.get(t, s.path()).doc, "stack").(doc)
	return d
}

func (s *stack) status(t *testing.T) string { t.Helper(); return text(s.show(t), "stack_status") }

// await waits until the stack is in one of the states, and returns it. Another state that nothing leaves by itself is a failure
// of the case.
func (s *stack) await(t *testing.T, states ...string) doc {
	t.Helper()
	var d doc
	s.c.eventually(t, "stack "+s.name+" is "+strings.Join(states, " or "), func() bool {
		d = s.show(t)
		is := text(d, "stack_status")
		if !slices.Contains(states, is) && strings.HasSuffix(is, "_FAILED") {
			t.Fatalf("stack %s is %s (%s), want %v; %s", s.name, is, text(d, "stack_status_reason"), states, s.failed(t))
		}
		return slices.Contains(states, is)
	}, func() any { return s.describe(t, d) })
	return d
}

// awaitAfter waits as await does, for the outcome of an update: what the stack was before the update does not count.
func (s *stack) awaitAfter(t *testing.T, before doc, states ...string) doc {
	t.Helper()
	s.c.eventually(t, "stack "+s.name+" leaves "+text(before, "stack_status"), func() bool {
		d := s.show(t)
		return text(d, "stack_status") != text(before, "stack_status") || text(d, "updated_time") != text(before, "updated_time") ||
			text(d, "stack_status_reason") != text(before, "stack_status_reason")
	}, func() any { return before })
	return s.await(t, states...)
}

func (s *stack) describe(t *testing.T, d doc) string {
	return text(d, "stack_status") + " (" + text(d, "stack_status_reason") + ") " + s.failed(t)
}

// failed words the resources that are not complete.
func (s *stack) failed(t *testing.T) string {
	var out []string
	for _, r := range list(s.c.heat.do(t, http.MethodGet, s.path("resources?nested_depth=5"), nil).doc, "resources") {
		if !strings.HasSuffix(text(r, "resource_status"), "_COMPLETE") {
			out = append(out, text(r, "resource_name")+" is "+text(r, "resource_status")+" ("+text(r, "resource_status_reason")+")")
		}
	}
	return strings.Join(out, "; ")
}

// update replaces the stack by a request and waits for its outcome.
func (s *stack) update(t *testing.T, request doc, states ...string) doc {
	t.Helper()
	before := s.show(t)
	s.c.heat.do(t, http.MethodPut, s.path(), with(request, "stack_name", s.name)).is(t, http.StatusAccepted)
	if len(states) == 0 {
		states = []string{"UPDATE_COMPLETE"}
	}
	return s.awaitAfter(t, before, states...)
}

// delete has Heat delete the stack and waits until it is gone.
func (s *stack) delete(t *testing.T) {
	t.Helper()
	s.c.heat.do(t, http.MethodDelete, s.path(), nil).is(t, http.StatusNoContent)
	s.await(t, "DELETE_COMPLETE")
}

// remove cleans up, whatever the stack's state.
func (s *stack) remove(t *testing.T) {
	t.Helper()
	tries, last := 0, ""
	s.c.eventually(t, "stack "+s.name+" is deleted", func() bool {
		r := s.c.heat.do(t, http.MethodGet, s.path(), nil)
		last = r.text
		switch is := text(r.doc, "stack", "stack_status"); {
		case r.status == http.StatusNotFound || is == "DELETE_COMPLETE":
			return true
		case is == "DELETE_IN_PROGRESS":
		case tries < 5:
			tries++
			s.c.heat.do(t, http.MethodDelete, s.path(), nil)
		}
		return false
	}, func() any { return last })
}

// resources lists the stack's resources, and those nested in it, in Heat's order.
func (s *stack) resources(t *testing.T) []doc {
	t.Helper()
	return list(s.c.heat.get(t, s.path("resources?nested_depth=5")).doc, "resources")
}

// resource returns the resource of that name at the stack's top.
func (s *stack) resource(t *testing.T, name string) doc {
	t.Helper()
	d, _ := at(s.c.heat.get(t, s.path("resources", name)).doc, "resource").(doc)
	return d
}

// physical is the id of what a resource is in its service.
func (s *stack) physical(t *testing.T, name string) string {
	t.Helper()
	return text(s.resource(t, name), "physical_resource_id")
}

// ofType keeps the resources of a type.
func ofType(l []doc, kind string) []doc {
	return slices.DeleteFunc(slices.Clone(l), func(r doc) bool { return text(r, "resource_type") != kind })
}

// physicals are the ids of resources, in order.
func physicals(l []doc) []string {
	out := make([]string, 0, len(l))
	for _, r := range l {
		out = append(out, text(r, "physical_resource_id"))
	}
	return out
}

// link is where a resource's link of that kind leads: the name and id of a stack.
func link(r doc, rel string) (name, id string) {
	for _, l := range list(r, "links") {
		if text(l, "rel") == rel {
			_, rest, _ := strings.Cut(text(l, "href"), "/stacks/")
			parts := strings.Split(rest, "/")
			if len(parts) >= 2 {
				return parts[0], parts[1]
			}
		}
	}
	return "", ""
}

// nested is the stack that a resource holds.
func (s *stack) nested(t *testing.T, resource string) *stack {
	t.Helper()
	name, id := link(s.resource(t, resource), "nested")
	if id == "" {
		t.Fatalf("resource %s has no nested stack", resource)
	}
	return &stack{c: s.c, name: name, id: id}
}

// mark has Heat's next update make a resource again.
func (s *stack) mark(t *testing.T, resource string) *answer {
	t.Helper()
	return s.c.heat.do(t, http.MethodPatch, s.path("resources", resource), doc{"mark_unhealthy": true, "resource_status_reason": "contract"})
}

// signal signals a resource.
func (s *stack) signal(t *testing.T, resource string) *answer {
	t.Helper()
	return s.c.heat.do(t, http.MethodPost, s.path("resources", resource, "signal"), nil)
}
