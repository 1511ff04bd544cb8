package openstack_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// verification is what the program sees of an instance beside what it has recorded of it.
type verification struct {
	Differences []struct {
		Kind, Part, ID, Name, Recorded, Found string
		Resource                              struct{ ResourceID string }
		Mend                                  struct {
			Operation      string
			VnfcInstanceID []string
			First          string
		}
	}
}

// kinds lists kind, part and name of the differences, sorted.
func (v *verification) kinds() []string {
	out := []string{}
	for _, d := range v.Differences {
		out = append(out, strings.TrimSpace(d.Kind+" "+d.Part+" "+d.Name))
	}
	slices.Sort(out)
	return out
}

// verified has the instance verified once Heat is at rest.
func (v *life) verified(t *testing.T) *verification {
	t.Helper()
	var got *verification
	v.eventually(t, "Heat and Nova are at rest", func() bool {
		got = new(verification)
		_, err := v.api.Call(v.ctx, http.MethodGet, "/vnfm/v1/vnf_instances/"+v.id+"/verify", nil, got)
		must(t, err)
		return !slices.ContainsFunc(got.kinds(), func(k string) bool { return strings.HasPrefix(k, "BUSY ") })
	}, func() any { return got })
	return got
}

// differs waits until the differences are those, mends them as they say, and sees that none is left.
func (v *life) differs(t *testing.T, what string, want ...string) {
	t.Helper()
	var got *verification
	v.eventually(t, "it is seen that "+what, func() bool { got = v.verified(t); return len(got.Differences) > 0 }, func() any { return got })
	if diff := cmp.Diff(want, got.kinds()); diff != "" {
		t.Errorf("%s (- want, + got):\n%s\n%+v", what, diff, got)
	}
	sick, starts, whole := map[string]bool{}, []string(nil), false
	for _, d := range got.Differences {
		t.Logf("%s: %s %s %s: recorded %s, found %s; %+v", what, d.Kind, d.Part, d.Name, d.Recorded, d.Found, d.Mend)
		if d.Kind == "STATE" { // nothing is lost: no heal is named
			if d.Mend.Operation != "" || d.Mend.First != "start server "+d.Resource.ResourceID {
				t.Fatalf("%s: it is not to be started: %+v", what, d)
			}
			starts = append(starts, d.Resource.ResourceID)
			continue
		}
		if d.Mend.Operation != "HEAL" {
			t.Fatalf("%s: no heal mends it: %+v", what, d)
		}
		whole = whole || len(d.Mend.VnfcInstanceID) == 0
		for _, id := range d.Mend.VnfcInstanceID {
			sick[id] = true
		}
	}
	for _, server := range starts {
		v.nova.do(t, http.MethodPost, "servers/"+server+"/action", doc{"os-start": nil}).is(t, http.StatusAccepted)
		v.eventually(t, "the server is started", func() bool {
			return text(v.nova.get(t, "servers/"+server).doc, "server", "status") == "ACTIVE"
		}, func() any { return v.nova.get(t, "servers/"+server).text })
	}
	if whole {
		v.does(t, "heal", doc{"cause": what}, map[string]int{"REMOVED": v.shape.count(), "ADDED": v.shape.count()})
	} else {
		v.does(t, "heal", doc{"cause": what, "vnfcInstanceId": slices.Sorted(maps.Keys(sick))}, map[string]int{"MODIFIED": len(sick)})
	}
	if left := v.verified(t); len(left.Differences) > 0 {
		t.Fatalf("%s, and after the heal that mends it there are %+v", what, left)
	}
}

// first is the first VNFC of a VDU, and its server.
func (v *life) first(t *testing.T, vdu string) (vnfc, server string) {
	t.Helper()
	of := v.servers(vdu)
	vnfc = slices.Sorted(maps.Keys(of))[0]
	return vnfc, of[vnfc]
}

// TestDrift has somebody else change what an instance consists of: the program sees it, and what it names mends it.
func TestDrift(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		m := newManager(t)
		p := ourGateway(t, c)
		v := m.create(t, c, p.zip, p.vnfdID, p.shape)
		v.instantiates(t)
		if got := v.verified(t); len(got.Differences) > 0 {
			t.Fatalf("just made, it differs: %+v", got)
		}
		stack := func() doc { return one(t, c.heat.get(t, "stacks?name=vnflcm_"+v.id), "stacks") }
		at := func(path string) string { return "stacks/vnflcm_" + v.id + "/" + text(stack(), "id") + path }
		gone := func(what string, a *api, path string) {
			t.Helper()
			c.eventually(t, what+" is gone", func() bool { return a.do(t, http.MethodGet, path, nil).status == http.StatusNotFound },
				func() any { return a.do(t, http.MethodGet, path, nil).text })
		}

		workers := slices.Sorted(maps.Keys(v.servers("worker")))
		server, port := v.servers()[workers[0]], v.portsOf()[workers[1]]["worker_CP1"]
		_, gateway := v.first(t, "gateway")
		c.nova.do(t, http.MethodDelete, "servers/"+server, nil).is(t, http.StatusNoContent)
		c.neutron.do(t, http.MethodDelete, "ports/"+port, nil).is(t, http.StatusNoContent)
		c.nova.do(t, http.MethodPost, "servers/"+gateway+"/action", doc{"os-stop": nil}).is(t, http.StatusAccepted)
		c.eventually(t, "the server is stopped", func() bool {
			return text(c.nova.get(t, "servers/"+gateway).doc, "server", "status") == "SHUTOFF"
		}, func() any { return c.nova.get(t, "servers/"+gateway).text })
		gone("the server", c.nova, "servers/"+server)
		v.differs(t, "a server and a port are gone, and a server is stopped", "MISSING PORT worker_CP1", "MISSING VNFC worker", "STATE VNFC gateway")

		vnfc, server := v.first(t, "gateway")
		volume := v.volumesOf()[vnfc][0]
		c.nova.do(t, http.MethodDelete, "servers/"+server, nil).is(t, http.StatusNoContent)
		gone("the server", c.nova, "servers/"+server)
		c.eventually(t, "the volume is at no server", func() bool {
			return text(c.cinder.get(t, "volumes/"+volume).doc, "volume", "status") == "available"
		}, func() any { return c.cinder.get(t, "volumes/"+volume).text })
		c.cinder.do(t, http.MethodDelete, "volumes/"+volume, nil).is(t, http.StatusAccepted)
		gone("the volume", c.cinder, "volumes/"+volume)
		c.heat.do(t, http.MethodPost, at("/actions"), doc{"check": nil}).is(t, http.StatusOK, http.StatusCreated)
		c.eventually(t, "Heat has checked", func() bool { return text(stack(), "stack_status") == "CHECK_FAILED" }, func() any { return stack() })
		v.differs(t, "Heat has found a server and its volume gone", "FAILED VNF", "MISSING STORAGE gateway_disk", "MISSING VNFC gateway")

		c.heat.do(t, http.MethodPost, at("/resources/gateway_group_scale_out/signal"), nil).is(t, http.StatusOK, http.StatusAccepted, http.StatusNoContent)
		v.differs(t, "somebody has scaled out", "UNRECORDED VNFC gateway")

		c.heat.do(t, http.MethodDelete, at(""), nil).is(t, http.StatusNoContent)
		c.eventually(t, "the stack is gone", func() bool { return len(list(c.heat.get(t, "stacks?name=vnflcm_"+v.id).doc, "stacks")) == 0 },
			func() any { return c.heat.get(t, "stacks?name=vnflcm_"+v.id).text })
		v.differs(t, "the stack is gone", "MISSING VNF")
		v.ending(t, "FORCEFUL")
	})
}
