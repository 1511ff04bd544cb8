package vimsim

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestClusterLifecycle(t *testing.T) {
	l := boot(t, Config{})
	id := l.create("vnflcm_1", cluster(t))
	s := l.await("vnflcm_1", id, "CREATE_COMPLETE")
	if r := str(s, "stack_status_reason"); r != "Stack CREATE completed successfully" {
		t.Errorf("reason %q", r)
	}
	outs := s["outputs"].([]any)
	if n := len(outs[0].(doc)["output_value"].([]any)); n != 3 {
		t.Errorf("output ips has %d items: %v", n, outs)
	}
	servers := l.ofType("vnflcm_1", id, "OS::Nova::Server")
	if len(servers) != 5 {
		t.Fatalf("%d servers", len(servers))
	}

	scale := func(policy string, want int) {
		t.Helper()
		events := func() int {
			_, out := l.heat("GET", "/stacks/vnflcm_1/"+id+"/resources/"+policy+"/events", nil)
			return len(out["events"].([]any))
		}
		before := events()
		if code, out := l.heat("POST", "/stacks/vnflcm_1/"+id+"/resources/"+policy+"/signal", nil); code != 200 {
			t.Fatalf("signal: %d %v", code, out)
		}
		l.until("scaled", func() bool {
			return len(l.ofType("vnflcm_1", id, "OS::Nova::Server")) == want && events() > before
		})
	}
	first := l.ofType("vnflcm_1", id, "node.yaml")
	// Members of one second go by name; these are to be the older ones.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	scale("workers_scale_out", 6)
	scale("workers_scale_out", 7)
	l.heat("POST", "/stacks/vnflcm_1/"+id+"/resources/workers_scale_out/signal", nil)
	if n := len(l.ofType("vnflcm_1", id, "OS::Nova::Server")); n != 7 {
		t.Errorf("%d servers beyond max_size", n)
	}
	scale("workers_scale_in", 6)
	now := ids(l.ofType("vnflcm_1", id, "node.yaml"))
	gone := 0
	for k := range ids(first) {
		if !now[k] {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("scale in removed %d of the oldest members, want 1", gone)
	}

	// Heal: a server deep below is marked, the top stack updated.
	// The update shrinks the workers to their literal size, so take a master.
	var victim doc
	stackLink := ""
	for _, v := range l.ofType("vnflcm_1", id, "OS::Nova::Server") {
		for _, x := range v["links"].([]any) {
			if x.(doc)["rel"] == "stack" && strings.Contains(x.(doc)["href"].(string), "-masters-") {
				victim, stackLink = v, x.(doc)["href"].(string)
			}
		}
	}
	_, port := l.raw("GET", stackLink+"/resources/node_CP", nil)
	if res, out := l.raw("PATCH", stackLink+"/resources/node", doc{"mark_unhealthy": true, "resource_status_reason": "Healing"}); res.StatusCode != 200 {
		t.Fatalf("mark: %d %v", res.StatusCode, out)
	}
	_, marked := l.raw("GET", stackLink+"/resources/node", nil)
	if st := str(sub(marked, "resource"), "resource_status"); st != "CHECK_FAILED" {
		t.Errorf("marked resource is %s", st)
	}
	if code, _ := l.heat("PATCH", "/stacks/vnflcm_1/"+id, doc{"existing": true, "parameters": doc{"undeclared": 1}}); code != 202 {
		t.Fatalf("patch: %d", code)
	}
	l.await("vnflcm_1", id, "UPDATE_COMPLETE")
	after := l.ofType("vnflcm_1", id, "OS::Nova::Server")
	if ids(after)[str(victim, "physical_resource_id")] {
		t.Error("the unhealthy server is still there")
	}
	// Heat resets each group to its literal size: 3 + 2.
	if len(after) != 5 {
		t.Errorf("%d servers after the update", len(after))
	}
	_, port2 := l.raw("GET", stackLink+"/resources/node_CP", nil)
	if a, b := str(sub(port, "resource"), "physical_resource_id"), str(sub(port2, "resource"), "physical_resource_id"); a != b || a == "" {
		t.Errorf("the port changed from %s to %s", a, b)
	}
	_, healed := l.raw("GET", stackLink+"/resources/node", nil)
	if sub(port2, "resource", "attributes")["device_id"] != str(sub(healed, "resource"), "physical_resource_id") {
		t.Error("the port is not on the new server")
	}

	if code, _ := l.heat("DELETE", "/stacks/vnflcm_1/"+id, nil); code != 204 {
		t.Fatalf("delete: %d", code)
	}
	l.await("vnflcm_1", id, "DELETE_COMPLETE")
	if code, out := l.heat("GET", "/stacks/vnflcm_1", nil); code != 404 {
		t.Errorf("by name after delete: %d %v", code, out)
	}
	l.empty()
}

func TestEveryResourceType(t *testing.T) {
	l := boot(t, Config{})
	for _, f := range []string{"misc.yaml", "volumes.yaml"} {
		name := strings.TrimSuffix(f, ".yaml")
		id := l.create(name, doc{"template": file(t, f)})
		s := l.await(name, id, "CREATE_COMPLETE")
		for _, o := range s["outputs"].([]any) {
			if o.(doc)["output_value"] == nil {
				t.Errorf("output %v", o)
			}
		}
		for _, r := range l.resources(name, id) {
			if r["resource_status"] != "CREATE_COMPLETE" || r["physical_resource_id"] == "" {
				t.Errorf("%v", r)
			}
		}
		code, _ := l.heat("PATCH", "/stacks/"+name+"/"+id, doc{"existing": true})
		if code != 202 {
			t.Fatalf("patch: %d", code)
		}
		before := ids(l.resources(name, id))
		l.await(name, id, "UPDATE_COMPLETE")
		for k := range ids(l.resources(name, id)) {
			if !before[k] {
				t.Errorf("%s: an update without changes made %s", name, k)
			}
		}
		l.heat("POST", "/stacks/"+name+"/"+id+"/actions", doc{"check": nil})
		l.await(name, id, "CHECK_COMPLETE")
		if name == "volumes" {
			_, out := l.raw("GET", "/volume/v3/"+l.project+"/volumes/detail", nil)
			for _, v := range out["volumes"].([]any) {
				if v.(doc)["status"] != "in-use" {
					t.Errorf("volume %v", v)
				}
			}
			l.heat("PATCH", "/stacks/"+name+"/"+id, doc{"existing": true, "parameters": doc{"flavor": "m1.small"}})
			l.await(name, id, "UPDATE_COMPLETE")
		}
		l.heat("DELETE", "/stacks/"+name+"/"+id, nil)
		l.await(name, id, "DELETE_COMPLETE")
		l.empty()
	}
}

func TestRefusals(t *testing.T) {
	l := boot(t, Config{})
	one := "resources:\n  r: {type: OS::Heat::TestResource}\n"
	id := l.create("taken", text(one))
	l.await("taken", id, "CREATE_COMPLETE")
	dup := l.srv.Cloud
	dup.mu.Lock()
	dup.newImage(l.project, doc{"name": "twice"})
	dup.newImage(l.project, doc{"name": "twice"})
	dup.mu.Unlock()
	server := func(p string) doc {
		return text("resources:\n  VDU1: {type: OS::Nova::Server, properties: {" + p + "}}\n")
	}
	tests := []struct {
		name, stack string
		def         doc
		code        int
		kind, msg   string
	}{
		{"duplicate", "taken", text(one), 409, "StackExists", "The Stack (taken) already exists."},
		{"unknown parameter", "a", with(text(one), "parameters", doc{"x": 1}), 400, "UnknownUserParameter", "The Parameter (x) was not defined in template."},
		{"missing parameter", "a", text("parameters: {x: {type: string}}\n" + one), 400, "UserParameterMissing", "The Parameter (x) was not provided."},
		{"constraint", "a", with(text("parameters: {x: {type: number, constraints: [{range: {min: 2}}]}}\n"+one), "parameters", doc{"x": 1}), 400, "StackValidationFailed", "Parameter 'x' is invalid: 1 is out of range (min: 2, max: None)"},
		{"unknown type", "a", text("resources: {r: {type: OS::No::Such}}\n"), 400, "StackValidationFailed", "The Resource Type (OS::No::Such) could not be found."},
		{"missing file", "a", text("resources: {r: {type: gone.yaml}}\n"), 400, "StackValidationFailed", `Could not fetch remote template "gone.yaml"`},
		{"reference", "a", server("flavor: m1.tiny, image: " + cirros + ", networks: [{port: {get_resource: nope}}]"), 400, "InvalidTemplateReference", `The specified reference "nope" (in VDU1.Properties.networks[0].port) is incorrect.`},
		{"attribute", "a", text(one + "outputs: {o: {value: {get_attr: [r, nope]}}}\n"), 400, "InvalidTemplateAttribute", "The Referenced Attribute (r nope) is incorrect."},
		{"version", "a", doc{"template": "heat_template_version: 2012-01-01\n"}, 400, "InvalidTemplateVersion", "The template version is invalid"},
		{"cycle", "a", text("resources:\n  a: {type: OS::Heat::None, depends_on: b}\n  b: {type: OS::Heat::None, depends_on: a}\n"), 500, "CircularDependencyException", "Circular Dependency Found"},
		{"image", "a", server("flavor: m1.tiny, image: nope"), 400, "StackValidationFailed", "Property error: : resources.VDU1.properties.image: : Error validating value 'nope': No images matching {'name': 'nope'}."},
		{"ambiguous image", "a", server("flavor: m1.tiny, image: twice"), 400, "StackValidationFailed", "No images unique match found for {'name': 'twice'}."},
		{"flavor", "a", server("flavor: nope, image: " + cirros), 400, "StackValidationFailed", "resources.VDU1.properties.flavor: : Error validating value 'nope': No Flavor matching {'name': 'nope'}. (HTTP 404)"},
		{"network", "a", text("resources: {p: {type: OS::Neutron::Port, properties: {network: nope}}}\n"), 400, "StackValidationFailed", "Unable to find network with name or id 'nope'"},
		{"required", "a", server("image: " + cirros), 400, "StackValidationFailed", "Property flavor not assigned"},
		{"unknown property", "a", server("image: " + cirros + ", flavor: m1.tiny, foo: 1"), 400, "StackValidationFailed", "Unknown Property foo"},
		{"no such network at all", "a", server("image: " + cirros + ", flavor: m1.tiny, networks: [{allocate_network: some}]"), 400, "StackValidationFailed", `"some" is not an allowed value [none, auto]`},
		{"no network and one", "a", server("image: " + cirros + ", flavor: m1.tiny, networks: [{allocate_network: none, network: net0}]"), 400, "StackValidationFailed", `Can not specify "allocate_network" with other keys of networks at the same time.`},
		{"bad name", "1a", text(one), 400, "StackValidationFailed", "Invalid stack name 1a"},
		{"not yaml", "a", doc{"template": "{{:"}, 400, "HTTPBadRequest", "Error parsing template"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out := l.heat("POST", "/stacks", with(tt.def, "stack_name", tt.stack))
			if code != tt.code || str(sub(out, "error"), "type") != tt.kind || !strings.Contains(str(sub(out, "error"), "message"), tt.msg) {
				t.Errorf("%d %v\nwant %d %s: %s", code, out, tt.code, tt.kind, tt.msg)
			}
		})
	}
}

// TestNoNetwork makes a server without an interface, gives it one and takes it away again.
func TestNoNetwork(t *testing.T) {
	l := boot(t, Config{})
	tmpl := func(network string) doc {
		return text("resources:\n  VDU1: {type: OS::Nova::Server, properties: {flavor: m1.tiny, image: " + cirros + ", networks: [{" + network + "}]}}\n")
	}
	id := l.create("n", tmpl("allocate_network: none"))
	l.await("n", id, "CREATE_COMPLETE")
	for _, to := range []struct {
		network string
		ports   int
	}{{"network: net0", 1}, {"allocate_network: none", 0}} {
		if code, out := l.heat("PUT", "/stacks/n/"+id, tmpl(to.network)); code != 202 {
			t.Fatalf("put: %d %v", code, out)
		}
		l.await("n", id, "UPDATE_COMPLETE")
		if s := l.srv.Cloud.State(); s.Counts["ports"] != to.ports || len(s.Servers) != 1 {
			t.Errorf("%s: %d ports", to.network, s.Counts["ports"])
		}
	}
	l.heat("DELETE", "/stacks/n/"+id, nil)
	l.await("n", id, "DELETE_COMPLETE")
	l.empty()
}

func TestNestedFailureReason(t *testing.T) {
	l := boot(t, Config{})
	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: EffectFail, Reason: "boom", Times: 1})
	id := l.create("v", cluster(t))
	l.until("failed", func() bool { return str(l.show("v", id), "stack_status") == "CREATE_FAILED" })
	r := str(l.show("v", id), "stack_status_reason")
	if !strings.HasPrefix(r, "Resource CREATE failed: ResourceInError: resources.") || !strings.HasSuffix(r, `.resources.node: Went to status ERROR due to "Message: boom, Code: 500"`) {
		t.Errorf("reason %q", r)
	}
	l.heat("PATCH", "/stacks/v/"+id, doc{"existing": true})
	l.await("v", id, "UPDATE_COMPLETE")
	if n := len(l.ofType("v", id, "OS::Nova::Server")); n != 5 {
		t.Errorf("%d servers after the repair", n)
	}
	l.heat("DELETE", "/stacks/v/"+id, nil)
	l.await("v", id, "DELETE_COMPLETE")
	l.empty()
}

func TestAntiAffinity(t *testing.T) {
	l := boot(t, Config{Hosts: []string{"h1", "h2", "h3"}})
	def := text(`parameters: {count: {type: number, default: 3}}
resources:
  sg: {type: OS::Nova::ServerGroup, properties: {name: anti, policies: [anti-affinity]}}
  servers:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def:
        type: OS::Nova::Server
        properties: {flavor: m1.tiny, image: ` + cirros + `, networks: [{network: net0}], scheduler_hints: {group: {get_resource: sg}}}
`)
	id := l.create("a", def)
	l.await("a", id, "CREATE_COMPLETE")
	hosts := map[any]bool{}
	for _, s := range l.srv.Cloud.State().Servers {
		hosts[s["OS-EXT-SRV-ATTR:host"]] = true
	}
	if len(hosts) != 3 {
		t.Errorf("hosts %v", hosts)
	}
	l.heat("DELETE", "/stacks/a/"+id, nil)
	l.await("a", id, "DELETE_COMPLETE")
	id = l.create("a", with(def, "parameters", doc{"count": 4}))
	l.until("failed", func() bool { return str(l.show("a", id), "stack_status") == "CREATE_FAILED" })
	if r := str(l.show("a", id), "stack_status_reason"); !strings.Contains(r, "No valid host was found. There are not enough hosts available.") {
		t.Error(r)
	}
	l.heat("DELETE", "/stacks/a/"+id, nil)
	l.await("a", id, "DELETE_COMPLETE")
	l.empty()
}

func TestRedirects(t *testing.T) {
	l := boot(t, Config{})
	id := l.create("x", cluster(t))
	l.await("x", id, "CREATE_COMPLETE")
	base := "/orchestration/v1/" + l.project + "/stacks/"
	for _, k := range []string{"x", id} {
		for _, p := range []string{"", "/resources?nested_depth=2", "/template", "/events", "/resources/masters/metadata"} {
			path, q, _ := strings.Cut(p, "?")
			res, _ := l.raw("GET", base+k+p, nil)
			want := l.srv.URL + base + "x/" + id + path
			if q != "" {
				want += "?" + q
			}
			if res.StatusCode != 302 || res.Header.Get("Location") != want {
				t.Errorf("%s%s: %d %s", k, p, res.StatusCode, res.Header.Get("Location"))
			}
			if res, out := l.raw("GET", res.Header.Get("Location"), nil); res.StatusCode != 200 {
				t.Errorf("%s: %d %v", want, res.StatusCode, out)
			}
		}
	}
	for _, m := range []string{"PUT", "PATCH", "DELETE"} {
		if res, _ := l.raw(m, base+id, doc{}); res.StatusCode != 302 {
			t.Errorf("%s: %d", m, res.StatusCode)
		}
	}
	_, out := l.heat("GET", "/stacks?owner_id="+id+"&show_nested=True", nil)
	children := out["stacks"].([]any)
	if len(children) != 2 || children[0].(doc)["parent"] != id {
		t.Errorf("children %v", children)
	}
	_, out = l.heat("GET", "/stacks/x/"+id+"/resources/vip_CP", nil)
	ips := sub(out, "resource", "attributes")["fixed_ips"].([]any)
	if !strings.HasPrefix(str(ips[0].(doc), "ip_address"), "10.10.") {
		t.Errorf("attributes %v", ips)
	}
	_, out = l.heat("GET", "/stacks/x/"+id+"/resources/workers_scale_out/events?limit=1&sort_dir=desc&sort_keys=event_time", nil)
	if ev := out["events"].([]any); len(ev) != 1 || ev[0].(doc)["resource_status"] != "CREATE_COMPLETE" {
		t.Errorf("events %v", ev)
	}
	_, out = l.heat("GET", "/resource_types/OS::Neutron::Port", nil)
	if sub(out, "attributes")["port_security_enabled"] == nil {
		t.Errorf("type %v", out)
	}
}

func TestSupersede(t *testing.T) {
	l := boot(t, Config{})
	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Nova::Server", Name: "slow*", Action: "create", Effect: EffectHang})
	id := l.create("slow1", cluster(t))
	l.until("building", func() bool { return l.srv.Cloud.State().Counts["servers"] == 5 })
	if st := str(l.show("slow1", id), "stack_status"); st != "CREATE_IN_PROGRESS" {
		t.Fatal(st)
	}
	if code, out := l.heat("POST", "/stacks", with(cluster(t), "stack_name", "slow1")); code != 409 {
		t.Errorf("duplicate: %d %v", code, out)
	}
	l.heat("DELETE", "/stacks/slow1/"+id, nil)
	l.await("slow1", id, "DELETE_COMPLETE")
	l.empty()
}

func TestManyAtOnce(t *testing.T) {
	l := boot(t, Config{})
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := "s" + shortID() + strings.Repeat("x", i%3)
			res, out, err := l.try("POST", "/orchestration/v1/"+l.project+"/stacks", with(cluster(t), "stack_name", name))
			if err != nil || res.StatusCode != 201 {
				t.Errorf("create: %v %v", err, out)
				return
			}
			id := str(sub(out, "stack"), "id")
			for _, want := range []string{"CREATE_COMPLETE", "DELETE_COMPLETE"} {
				for {
					_, out, err = l.try("GET", "/orchestration/v1/"+l.project+"/stacks/"+name+"/"+id, nil)
					st := str(sub(out, "stack"), "stack_status")
					if st == want {
						break
					}
					if err != nil || strings.HasSuffix(st, "FAILED") || out == nil {
						t.Errorf("%s: %v %v", name, err, out)
						return
					}
				}
				_, _, _ = l.try("DELETE", "/orchestration/v1/"+l.project+"/stacks/"+name+"/"+id, nil)
			}
		})
	}
	wg.Wait()
	l.empty()
}
