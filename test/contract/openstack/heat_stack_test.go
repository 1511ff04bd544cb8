package openstack_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStackCreated: what Heat answers to a creation, and how a stack is found again.
func TestStackCreated(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		name := "contract_" + unique()
		request := hot(value, "stack_name", name, "parameters", doc{"a": "two", "b": doc{"deep": []any{"x", 1}}}, "tags", "first tag,second")
		r := c.heat.do(t, http.MethodPost, "stacks", request).is(t, http.StatusCreated)
		s := &stack{c: c, name: name, id: text(r.doc, "stack", "id")}
		t.Cleanup(func() { s.remove(t) })
		d := s.await(t, "CREATE_COMPLETE")
		same(t, "reason", text(d, "stack_status_reason"), "Stack CREATE completed successfully")
		same(t, "tags", strings.Join(words(d, "tags"), "|"), "first tag|second")
		same(t, "updated_time", at(d, "updated_time"), nil)
		same(t, "parent", at(d, "parent"), nil)
		same(t, "timeout_mins", at(d, "timeout_mins"), any(10.0))
		same(t, "disable_rollback", at(d, "disable_rollback"), any(true))
		same(t, "parameter", text(d, "parameters", "a"), "two")
		for _, o := range list(d, "outputs") {
			if text(o, "output_key") == "b" {
				same(t, "output of the map", words(o, "output_value", "deep")[0], "x")
			}
		}

		found := func(query string) []string {
			var ids []string
			for _, f := range list(c.heat.get(t, "stacks?"+query).doc, "stacks") {
				ids = append(ids, text(f, "id"))
			}
			return ids
		}
		for _, query := range []string{"name=" + name, "status=COMPLETE&name=" + name, "id=" + s.id} {
			if ids := found(query); !slices.Equal(ids, []string{s.id}) {
				t.Errorf("?%s finds %v, want %s", query, ids, s.id)
			}
		}
		if ids := found("name=" + name + "x"); len(ids) > 0 {
			t.Errorf("another name finds %v", ids)
		}
		inList := list(c.heat.get(t, "stacks?name="+name).doc, "stacks")[0]
		same(t, "tags in a list", strings.Join(words(inList, "tags"), "|"), "first tag|second")
		same(t, "state in a list", text(inList, "stack_status"), "CREATE_COMPLETE")

		// A name or an id alone leads to the stack's own address.
		for _, path := range []string{"stacks/" + name, "stacks/" + s.id, "stacks/" + name + "/resources?nested_depth=2"} {
			r := c.heat.do(t, http.MethodGet, path, nil).is(t, http.StatusFound)
			if to := r.header.Get("Location"); !strings.Contains(to, "/stacks/"+name+"/"+s.id) || strings.Contains(path, "?") && !strings.Contains(to, "nested_depth=2") {
				t.Errorf("%s leads to %s", path, to)
			}
		}
		// The name is taken, also by a stack that has other contents.
		c.heat.do(t, http.MethodPost, "stacks", hot(value, "stack_name", name)).says(t, http.StatusConflict, "The Stack ("+name+") already exists.", `"StackExists"`)

		s.delete(t)
		gone := s.show(t)
		same(t, "state of a deleted stack by id", text(gone, "stack_status"), "DELETE_COMPLETE")
		same(t, "reason of a deletion", text(gone, "stack_status_reason"), "Stack DELETE completed successfully")
		// It may still be listed for a moment, and have its name.
		c.eventually(t, "the deleted stack is not listed by its name", func() bool { return len(found("name="+name)) == 0 }, func() any { return found("name=" + name) })
		if ids := found("name=" + name + "&show_deleted=true"); !slices.Equal(ids, []string{s.id}) {
			t.Errorf("with show_deleted there are %v", ids)
		}
		c.heat.do(t, http.MethodGet, "stacks/"+name, nil).says(t, http.StatusNotFound, "The Stack ("+name+") could not be found.")
		c.heat.do(t, http.MethodDelete, s.path(), nil).is(t, http.StatusNotFound)
		c.heat.do(t, http.MethodPut, s.path(), hot(value)).is(t, http.StatusNotFound)
		// The name is free again, and the new stack is another one.
		again := c.made(t, hot(value, "stack_name", name))
		if again.id == s.id {
			t.Error("the new stack has the old one's id")
		}
		same(t, "the deleted one by id, beside the new one", s.status(t), "DELETE_COMPLETE")
		none := "0e7f1a3c-5a55-4b5e-9b8e-1f3f5d0a9a01"
		c.heat.do(t, http.MethodGet, "stacks/"+name+"/"+none, nil).says(t, http.StatusNotFound, "could not be found.")
		c.heat.do(t, http.MethodDelete, "stacks/"+name+"/"+none, nil).is(t, http.StatusNotFound)
	})
}

// TestStackRefused: requests that are refused at once, with Heat's words; no stack is made.
func TestStackRefused(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		server := func(flavor, image, network string) doc {
			return hot(plugged, "parameters", doc{"flavor": flavor, "image": image, "network": network})
		}
		for name, x := range map[string]struct {
			request doc
			says    []string
		}{
			"no template":        {doc{"timeout_mins": 10}, []string{"No template specified"}},
			"not YAML":           {doc{"template": "heat_template_version: [", "timeout_mins": 10}, []string{"Template not in valid format: Error parsing template"}},
			"no version":         {doc{"template": "resources: {}", "timeout_mins": 10}, []string{"Template format version not found."}},
			"unknown type":       {hot("resources: {x: {type: OS::Nova::Nothing}}"), []string{"The Resource Type (OS::Nova::Nothing) could not be found."}},
			"file missing":       {hot("resources: {x: {type: member.yaml}}"), []string{"member.yaml"}},
			"unknown property":   {hot("resources: {x: {type: OS::Neutron::Port, properties: {network: net0, colour: red}}}"), []string{"Property error: : resources.x.properties: : Unknown Property colour"}},
			"missing property":   {hot("resources: {x: {type: OS::Heat::AutoScalingGroup, properties: {min_size: 0, resource: {type: OS::Heat::None}}}}"), []string{"Property max_size not assigned"}},
			"unknown reference":  {hot("resources: {x: {type: OS::Heat::Value, properties: {value: {get_resource: y}}}}"), []string{`The specified reference \"y\" (in x`}},
			"unknown parameter":  {hot(value, "parameters", doc{"c": "x"}), []string{"The Parameter (c) was not defined in template."}},
			"absent parameter":   {hot("parameters: {p: {type: string}}\nresources: {}"), []string{"The Parameter (p) was not provided."}},
			"no such flavor":     {server("none.such", cirros, net0), []string{"Property error: : resources.vdu.properties.flavor: : Error validating value 'none.such': No Flavor matching {'name': 'none.such'}. (HTTP 404)"}},
			"no such image":      {server(tiny, "none-such", net0), []string{"Property error: : resources.vdu.properties.image: : Error validating value 'none-such': No images matching {'name': 'none-such'}."}},
			"no such network":    {server(tiny, cirros, "none-such"), []string{"Property error: : resources.cp.properties.network: : Error validating value 'none-such': Unable to find network with name or id 'none-such'"}},
			"sizes out of order": {hot(group(2, 1, "", "{type: OS::Heat::None}")), []string{"MinSize can not be greater than MaxSize"}},
			"size beyond":        {hot(group(0, 2, "3", "{type: OS::Heat::None}")), []string{"DesiredCapacity must be between MinSize and MaxSize"}},
			"bad name":           {hot(value, "stack_name", "1 bad"), []string{"Invalid stack name 1 bad"}},
			"long tag":           {hot(value, "tags", strings.Repeat("t", 81)), []string{"is longer than 80 characters"}},
		} {
			if x.request["stack_name"] == nil {
				x.request = with(x.request, "stack_name", "contract_"+unique())
			}
			r := c.heat.do(t, http.MethodPost, "stacks", x.request)
			t.Logf("%s: %d %s: %s", name, r.status, text(r.doc, "error", "type"), text(r.doc, "error", "message"))
			if r.status == http.StatusCreated {
				t.Errorf("%s: a stack is made", name)
				(&stack{c: c, name: text(x.request, "stack_name"), id: text(r.doc, "stack", "id")}).remove(t)
				continue
			}
			if r.status != http.StatusBadRequest {
				t.Errorf("%s: status %d", name, r.status)
			}
			for _, want := range x.says {
				if !strings.Contains(r.text, want) {
					t.Errorf("%s: does not say %q: %s", name, want, r.text)
				}
			}
			if text(r.doc, "error", "message") == "" {
				t.Errorf("%s: no error.message: %s", name, r.text)
			}
		}
		c.heat.do(t, http.MethodPost, "stacks", []any{}).is(t, http.StatusBadRequest)
	})
}

// TestStackReplaced: a PUT makes the stack what it says: parameters that it leaves out fall back to defaults, tags are
// replaced, files and the template are what it brings; a PATCH with existing keeps what it leaves out.
func TestStackReplaced(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(value, "parameters", doc{"a": "two", "b": doc{"k": 1}}, "tags", "x,y"))
		output := func(d doc, key string) any {
			for _, o := range list(d, "outputs") {
				if text(o, "output_key") == key {
					return o["output_value"]
				}
			}
			return nil
		}
		d := s.update(t, hot(value, "tags", "z", "timeout_mins", 5))
		same(t, "a parameter left out", output(d, "a"), any("one"))
		same(t, "tags", strings.Join(words(d, "tags"), "|"), "z")
		same(t, "timeout", at(d, "timeout_mins"), any(5.0))
		same(t, "reason", text(d, "stack_status_reason"), "Stack UPDATE completed successfully")
		if _, err := time.Parse("2006-01-02T15:04:05Z", text(d, "updated_time")); err != nil {
			t.Errorf("updated_time: %v", err)
		}
		// The update has begun when Heat answers: the state is another one at once.
		time.Sleep(time.Second) // times are of whole seconds
		before := s.show(t)
		c.heat.do(t, http.MethodPut, s.path(), hot(value, "parameters", doc{"a": "three"}, "tags", "z")).is(t, http.StatusAccepted)
		after := s.show(t)
		if text(after, "updated_time") == text(before, "updated_time") {
			t.Errorf("after an update has been accepted the stack was updated at %v still", after["updated_time"])
		}
		s.await(t, "UPDATE_COMPLETE")
		// One that changes nothing runs as well.
		time.Sleep(time.Second)
		before = s.show(t)
		d = s.update(t, hot(value, "parameters", doc{"a": "three"}, "tags", "z"))
		if text(d, "updated_time") == text(before, "updated_time") {
			t.Error("an update that changes nothing is not seen")
		}
		// Without tags there are none.
		d = s.update(t, hot(value, "parameters", doc{"a": "three"}))
		if len(words(d, "tags")) > 0 {
			t.Errorf("tags of an update without: %v", d["tags"])
		}
		// PATCH keeps.
		before = s.show(t)
		c.heat.do(t, http.MethodPatch, s.path(), doc{"existing": true, "parameters": doc{"b": doc{"n": "new"}}}).is(t, http.StatusAccepted)
		d = s.awaitAfter(t, before, "UPDATE_COMPLETE")
		same(t, "a parameter that a PATCH leaves out", output(d, "a"), any("three"))
		same(t, "a parameter that a PATCH gives", text(output(d, "b"), "n"), "new")
		// What is refused changes nothing.
		before = s.show(t)
		c.heat.do(t, http.MethodPut, s.path(), hot(value, "parameters", doc{"unknown": "x"})).
			says(t, http.StatusBadRequest, "The Parameter (unknown) was not defined in template.")
		c.heat.do(t, http.MethodPut, s.path(), hot(strings.ReplaceAll(value, "OS::Heat::Value", "OS::None::Such"))).
			says(t, http.StatusBadRequest, "The Resource Type (OS::None::Such) could not be found.")
		after = s.show(t)
		same(t, "state after a refusal", text(after, "stack_status")+text(after, "updated_time"), text(before, "stack_status")+text(before, "updated_time"))
		// What the template does not have any more goes, and what is new comes.
		s.update(t, hot("resources: {w: {type: OS::Heat::None}}"))
		names := func() string {
			var l []string
			for _, r := range s.resources(t) {
				l = append(l, text(r, "resource_name"))
			}
			slices.Sort(l)
			return strings.Join(l, " ")
		}
		same(t, "resources", names(), "w")
		s.update(t, hot("resources: {}"))
		same(t, "resources of an empty template", names(), "")
	})
}

// TestFilesReplaced: an update brings its own files; nested stacks follow them, and keep what they have where nothing changes.
func TestFilesReplaced(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		top := "resources: {m: {type: member.yaml, properties: {text: here}}}"
		s := c.made(t, hot(top, "files", doc{"member.yaml": memberFile}))
		child := s.nested(t, "m")
		part := child.physical(t, "part")
		d := child.show(t)
		same(t, "parent", text(d, "parent"), s.id)
		if list := list(c.heat.get(t, "stacks?name="+child.name).doc, "stacks"); len(list) != 0 {
			t.Errorf("a nested stack is listed: %v", list)
		}
		if l := list(c.heat.get(t, "stacks?show_nested=true&owner_id="+s.id).doc, "stacks"); len(l) != 1 || text(l[0], "id") != child.id {
			t.Errorf("children of %s: %v", s.id, l)
		}
		s.update(t, hot(top, "files", doc{"member.yaml": memberFile}))
		same(t, "the nested stack after an update that changes nothing", s.nested(t, "m").id, child.id)
		same(t, "what is in it", child.physical(t, "part"), part)
		changed := strings.ReplaceAll(memberFile, "part:", "other:")
		s.update(t, hot(top, "files", doc{"member.yaml": changed}))
		same(t, "the nested stack with another file", s.nested(t, "m").id, child.id)
		if child.physical(t, "other") == "" {
			t.Error("what the new file has was not made")
		}
		c.heat.do(t, http.MethodGet, child.path("resources", "part"), nil).is(t, http.StatusNotFound)
		// A file that is left out is missed.
		c.heat.do(t, http.MethodPut, s.path(), hot("resources: {m: {type: other.yaml}}")).is(t, http.StatusBadRequest)
	})
}

// TestResources: how resources are listed, those of nested stacks too.
func TestResources(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(`
resources:
  m: {type: member.yaml, properties: {text: {get_attr: [v, value]}}}
  v: {type: OS::Heat::Value, properties: {value: here}}
  g:
    type: OS::Heat::AutoScalingGroup
    properties: {min_size: 1, max_size: 2, resource: {type: member.yaml}}
`, "files", doc{"member.yaml": memberFile}))
		l := s.resources(t)
		byName := map[string]doc{}
		for _, r := range l {
			byName[text(r, "resource_name")+" "+text(r, "resource_type")] = r
			same(t, text(r, "resource_name")+"'s status", text(r, "resource_status"), "CREATE_COMPLETE")
			same(t, text(r, "resource_name")+"'s reason", text(r, "resource_status_reason"), "state changed")
			if _, err := time.Parse("2006-01-02T15:04:05Z", text(r, "creation_time")); err != nil {
				t.Errorf("creation_time: %v", err)
			}
			if text(r, "physical_resource_id") == "" {
				t.Errorf("%s has no physical id", text(r, "resource_name"))
			}
		}
		if len(l) != 6 {
			t.Fatalf("%d resources, want m with its part, v, g with a member and its part: %v", len(l), l)
		}
		m, v, g := byName["m member.yaml"], byName["v OS::Heat::Value"], byName["g OS::Heat::AutoScalingGroup"]
		same(t, "what v is required by", strings.Join(words(v, "required_by"), " "), "m")
		for name, r := range map[string]doc{"m": m, "v": v, "g": g} {
			if n, id := link(r, "stack"); n != s.name || id != s.id {
				t.Errorf("%s is in stack %s %s", name, n, id)
			}
		}
		if _, id := link(m, "nested"); id != text(m, "physical_resource_id") {
			t.Errorf("m's nested stack is %s, its physical id %s", id, text(m, "physical_resource_id"))
		}
		if _, id := link(v, "nested"); id != "" {
			t.Errorf("v holds a stack %s", id)
		}
		_, groupStack := link(g, "nested")
		same(t, "the group's physical id", text(g, "physical_resource_id"), groupStack)
		members := 0
		for _, r := range l {
			n, id := link(r, "stack")
			switch {
			case id == groupStack:
				members++
				same(t, "the member's parent resource", text(r, "parent_resource"), "g")
				same(t, "the member's type", text(r, "resource_type"), "member.yaml")
				if !strings.HasPrefix(n, s.name+"-g-") {
					t.Errorf("the group's stack is called %s", n)
				}
			case id == text(m, "physical_resource_id"):
				same(t, "the part's parent resource", text(r, "parent_resource"), "m")
			}
		}
		same(t, "members", members, 1)
		if top := list(c.heat.get(t, s.path("resources")).doc, "resources"); len(top) != 3 {
			t.Errorf("%d resources without depth", len(top))
		}
		// What is on top comes before what is nested.
		if len(l) > 2 {
			for _, r := range l[:3] {
				if _, id := link(r, "stack"); id != s.id {
					t.Errorf("%s comes among the first", text(r, "resource_name"))
				}
			}
		}
		c.heat.do(t, http.MethodGet, s.path("resources", "none"), nil).says(t, http.StatusNotFound, "The Resource (none) could not be found in Stack "+s.name+".")
		c.heat.do(t, http.MethodGet, s.path("resources", text(m, "physical_resource_id")), nil).is(t, http.StatusNotFound) // only names count
	})
}
