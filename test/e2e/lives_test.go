package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestWholeLives drives VNFs through all that can happen to them with the real client: after every operation what the
// client shows of the instance is what the cloud holds. Two subscribers are told of it, each what it has asked for.
func TestWholeLives(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{loopbackCallbacks}})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	network, err := l.NetworkID(ctx, "net0")
	must(t, err)
	all := l.subscribe(ctx, t, nil)
	scaled := l.subscribe(ctx, t, map[string]any{
		"notificationTypes": []any{"VnfLcmOperationOccurrenceNotification"}, "operationTypes": []any{"SCALE"}, "operationStates": []any{"COMPLETED"},
	})
	t.Run("of", func(t *testing.T) {
		t.Run("our cluster", func(t *testing.T) {
			t.Parallel()
			raw, vnfd := variant(t, "kubernetes-cluster", nil)
			v := l.begin(ctx, t, raw, vnfd, vim, clusterShape(t, "complex", network, 3))
			v.scale(ctx, t, "worker_instance", "workerNode")
			v.healOne(ctx, t, "workerNode")
			v.healAll(ctx, t)
			v.update(ctx, t)
			v.end(ctx, t)
			v.checkTold(ctx, t, all, scaled, "SCALE", "SCALE", "HEAL", "HEAL", "MODIFY_INFO")
		})
		t.Run("our gateway", func(t *testing.T) {
			t.Parallel()
			_, s := ourMultiPort(t)
			raw, vnfd := variant(t, "multi-port", nil)
			v := l.begin(ctx, t, raw, vnfd, vim, s)
			v.move(ctx, t, "access", "net_mgmt")
			v.scale(ctx, t, "gateway_group", "gateway")
			v.healOne(ctx, t, "worker")
			v.end(ctx, t)
			v.checkTold(ctx, t, all, scaled, "CHANGE_EXT_CONN", "SCALE", "SCALE", "HEAL")
		})
		t.Run("the functional packages from outside", func(t *testing.T) {
			t.Parallel()
			c, s, ok := outsideFunctional(t, network)
			if !ok {
				return
			}
			v := l.begin(ctx, t, c.zip, c.vnfdID, vim, s)
			v.scale(ctx, t, "worker_instance", "VDU1")
			v.healOne(ctx, t, "VDU2")
			other := harness.SamplePackage(t, "functional2")
			_, err := l.api.Onboard(ctx, other.Zip)
			must(t, err)
			const image = "cirros-0.5.2-x86_64-disk2" // the package names it and does not bring it
			remove := l.bringImage(ctx, t, image)
			v.becomes(ctx, t, other.VnfdID, "VDU2", image)
			v.end(ctx, t)
			remove()
			v.checkTold(ctx, t, all, scaled, "SCALE", "SCALE", "HEAL", "MODIFY_INFO", "HEAL")
		})
		t.Run("a package from outside without a template, which scales", func(t *testing.T) {
			t.Parallel()
			p := harness.SamplePackage(t, "vnflcm1")
			if p == nil {
				return
			}
			v := l.begin(ctx, t, p.Zip, p.VnfdID, vim, shape{
				flavour: "simple", request: map[string]any{"flavourId": "simple"},
				vnfcs: map[string]int{"VDU1": 1}, cps: map[string][]string{"VDU1": {"CP1"}}, volumes: map[string]int{"VDU1": 1},
				aspects: []string{"worker_instance"}, links: []string{"internalVL1"},
			})
			v.scale(ctx, t, "worker_instance", "VDU1")
			v.healOne(ctx, t, "VDU1")
			v.end(ctx, t)
			v.checkTold(ctx, t, all, scaled, "SCALE", "SCALE", "HEAL")
		})
		t.Run("a package from outside without a template, on external networks", func(t *testing.T) {
			t.Parallel()
			p := harness.SamplePackage(t, "vnflcm3")
			if p == nil {
				return
			}
			var links []any
			for _, n := range []string{"1", "2"} {
				links = append(links, map[string]any{"id": "external" + n, "resourceId": network, "extCps": []any{map[string]any{
					"cpdId":    "CP" + n,
					"cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}}}},
				}}})
			}
			v := l.begin(ctx, t, p.Zip, p.VnfdID, vim, shape{
				flavour: "simple", request: map[string]any{"flavourId": "simple", "extVirtualLinks": links},
				vnfcs: map[string]int{"VDU1": 1}, cps: map[string][]string{"VDU1": {"CP1", "CP2", "CP3"}},
				external: map[string][]string{"external1": {"CP1"}, "external2": {"CP2"}},
				networks: map[string]string{"external1": network, "external2": network}, links: []string{"VL3"},
			})
			v.healOne(ctx, t, "VDU1")
			v.healAll(ctx, t)
			v.end(ctx, t)
			v.checkTold(ctx, t, all, scaled, "HEAL", "HEAL")
		})
	})
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// subscription is a subscriber and what it is known by.
type subscription struct {
	*subscriber
	id string
}

// subscribe has the client subscribe a new subscriber that asks for a password.
func (l *lab) subscribe(ctx context.Context, t *testing.T, filter map[string]any) subscription {
	t.Helper()
	s := newSubscriber(t)
	s.user, s.password = "nfvo", wrongSecret
	request := map[string]any{
		"callbackUri":    s.URL + "/told",
		"authentication": map[string]any{"authType": []any{"BASIC"}, "paramsBasic": map[string]any{"userName": s.user, "password": s.password}},
	}
	if filter != nil {
		request["filter"] = filter
	}
	f := l.show(ctx, t, "vnflcm", "subsc", "create", l.jsonFile(t, "subscription.json", request))
	return subscription{s, f.values["ID"]}
}

// living is an instance in the course of its life.
type living struct {
	*lab
	id, vim string
	shape   shape
	info    sol003.InstantiatedVnfInfo // as the client has last shown it
}

// begin onboards a package, and has the client create and instantiate an instance of it.
func (l *lab) begin(ctx context.Context, t *testing.T, zip []byte, vnfd, vim string, s shape) *living {
	t.Helper()
	_, err := l.api.Onboard(ctx, zip)
	must(t, err)
	v := &living{lab: l, vim: vim, shape: s}
	v.shape.vnfcs, v.shape.networks, v.shape.levels = maps.Clone(s.vnfcs), maps.Clone(s.networks), map[string]int{}
	v.id = l.show(ctx, t, "vnflcm", "create", vnfd).values["ID"]
	v.does(ctx, t, sol003.LcmOperationTypeInstantiate, map[string]int{"ADDED": s.count()},
		"instantiate", v.id, l.jsonFile(t, "request.json", harness.OnVIM(s.request, vim)))
	return v
}

// does has the client start an operation, which must complete and change so many VNFCs in each way, and looks at what the
// client shows of the instance then.
func (v *living) does(ctx context.Context, t *testing.T, operation sol003.LcmOperationType, changes map[string]int, args ...string) {
	t.Helper()
	v.ok(ctx, t, append([]string{"vnflcm"}, args...)...)
	id := v.latest(ctx, t, v.id)
	op := v.awaitOp(ctx, t, id, sol003.LcmOperationStateCompleted)
	got := map[string]int{}
	if op.ResourceChanges != nil {
		for _, c := range op.ResourceChanges.AffectedVnfcs {
			got[string(c.ChangeType)]++
		}
	}
	if diff := cmp.Diff(changes, got); diff != "" || op.Operation != operation {
		t.Errorf("%s affects VNFCs (- want, + got):\n%s", op.Operation, diff)
	}
	f := v.show(ctx, t, "vnflcm", "show", v.id)
	if f.values["Instantiation State"] != "INSTANTIATED" {
		t.Fatalf("after %s the instance is %s", operation, f.values["Instantiation State"])
	}
	v.checkInfo(t, f, v.id, v.vim, v.shape)
	v.info = sol003.InstantiatedVnfInfo{}
	f.json(t, "Instantiated Vnf Info", &v.info)
	v.checkNetworks(t)
}

// checkNetworks checks that the ports of external links are in the networks where those lead, by name or id.
func (v *living) checkNetworks(t *testing.T) {
	t.Helper()
	cloud := v.Sim.Cloud.State()
	for _, vl := range v.info.VnfVirtualLinkResourceInfo {
		want, external := v.shape.networks[vl.VnfVirtualLinkDescId]
		if !external {
			continue
		}
		n := slices.IndexFunc(cloud.Networks, func(n map[string]any) bool { return n["id"] == want || n["name"] == want })
		for _, p := range vl.VnfLinkPorts {
			m := slices.IndexFunc(cloud.Ports, func(d map[string]any) bool { return d["id"] == p.ResourceHandle.ResourceId })
			if n < 0 || m < 0 || cloud.Ports[m]["network_id"] != cloud.Networks[n]["id"] {
				t.Errorf("port %s of link %s is not in network %s", p.ResourceHandle.ResourceId, vl.VnfVirtualLinkDescId, want)
			}
		}
	}
}

// scale scales out by two steps and in by one: nothing happens to VNFCs that stay.
func (v *living) scale(ctx context.Context, t *testing.T, aspect, vdu string) {
	t.Helper()
	for _, s := range []struct {
		kind, change string
		steps, by    int
		args         []string
	}{
		{"SCALE_OUT", "ADDED", 2, 2, []string{"--number-of-steps", "2"}}, {"SCALE_IN", "REMOVED", 1, -1, nil},
	} {
		before := serversOf(&v.info, vdu)
		v.shape.vnfcs[vdu] += s.by
		v.shape.levels[aspect] += s.by
		v.does(ctx, t, sol003.LcmOperationTypeScale, map[string]int{s.change: s.steps},
			append([]string{"scale", v.id, "--type", s.kind, "--aspect-id", aspect}, s.args...)...)
		after := serversOf(&v.info, vdu)
		fewer, more := before, after
		if s.by < 0 {
			fewer, more = after, before
		}
		for vnfc, server := range fewer {
			if more[vnfc] != server {
				t.Errorf("%s has changed VNFC %s: server %q, then %q", s.kind, vnfc, before[vnfc], after[vnfc])
			}
		}
	}
}

// healOne heals one VNFC: it gets another server, and the others keep theirs.
func (v *living) healOne(ctx context.Context, t *testing.T, vdu string) {
	t.Helper()
	before := serversOf(&v.info, vdu)
	sick := slices.Sorted(maps.Keys(before))[0]
	v.does(ctx, t, sol003.LcmOperationTypeHeal, map[string]int{"MODIFIED": 1}, "heal", v.id, "--vnfc-instance", sick, "--cause", "it looks ill")
	after := serversOf(&v.info, vdu)
	for vnfc, server := range before {
		if now := after[vnfc]; now == "" || (now == server) == (vnfc == sick) {
			t.Errorf("VNFC %s had server %s and has %q; healed was %s", vnfc, server, now, sick)
		}
	}
}

// healAll heals the whole VNF: nothing of it is what it was, and it has the size that it had.
func (v *living) healAll(ctx context.Context, t *testing.T) {
	t.Helper()
	before := v.info
	v.does(ctx, t, sol003.LcmOperationTypeHeal, map[string]int{"REMOVED": v.shape.count(), "ADDED": v.shape.count()}, "heal", v.id)
	for vdu := range v.shape.vnfcs {
		now := serversOf(&v.info, vdu)
		for vnfc, server := range serversOf(&before, vdu) {
			if now[vnfc] != "" || slices.Contains(slices.Collect(maps.Values(now)), server) {
				t.Errorf("VNFC %s with server %s is still there after the whole VNF was healed", vnfc, server)
			}
		}
	}
}

// update renames the VNF: nothing happens to what it consists of.
func (v *living) update(ctx context.Context, t *testing.T) {
	t.Helper()
	before := v.info
	v.does(ctx, t, sol003.LcmOperationTypeModifyInfo, map[string]int{},
		"update", v.id, "--I", v.jsonFile(t, "update.json", map[string]any{"vnfInstanceName": "renamed", "metadata": map[string]any{"key": "value"}}))
	if diff := cmp.Diff(before, v.info); diff != "" {
		t.Errorf("the update has changed what the VNF consists of:\n%s", diff)
	}
	f := v.show(ctx, t, "vnflcm", "show", v.id)
	if f.values["VNF Instance Name"] != "renamed" || f.values["metadata"] != "key=value" {
		t.Errorf("after the update vnflcm show shows %q, %q", f.values["VNF Instance Name"], f.values["metadata"])
	}
}

// move connects an external link's CPs to another network.
func (v *living) move(ctx context.Context, t *testing.T, link, network string) {
	t.Helper()
	var moved map[string]any
	for _, l := range v.shape.request["extVirtualLinks"].([]any) { //nolint:forcetypeassert // it is so
		if of := l.(map[string]any); of["id"] == link { //nolint:forcetypeassert // it is so
			moved = maps.Clone(of)
		}
	}
	moved["resourceId"] = network
	v.shape.networks[link] = network
	v.does(ctx, t, sol003.LcmOperationTypeChangeExtConn, map[string]int{},
		"change-ext-conn", v.id, v.jsonFile(t, "moved.json", map[string]any{"extVirtualLinks": []any{moved}}))
	f := v.show(ctx, t, "vnflcm", "op", "show", v.latest(ctx, t, v.id))
	var changed []sol003.ExtVirtualLinkInfo
	f.json(t, "Changed External Connectivity", &changed)
	if len(changed) != 1 || changed[0].Id != link || changed[0].ResourceHandle.ResourceId != network {
		t.Errorf("the changed connectivity is %+v", changed)
	}
}

// becomes gives the instance another VNFD, and heals it: it has the other's image then.
func (v *living) becomes(ctx context.Context, t *testing.T, vnfd, vdu, image string) {
	t.Helper()
	v.does(ctx, t, sol003.LcmOperationTypeModifyInfo, map[string]int{},
		"update", v.id, "--I", v.jsonFile(t, "update.json", map[string]any{"vnfdId": vnfd}))
	if f := v.show(ctx, t, "vnflcm", "show", v.id); f.values["VNFD ID"] != vnfd {
		t.Errorf("after the update the instance is of VNFD %s, want %s", f.values["VNFD ID"], vnfd)
	}
	v.does(ctx, t, sol003.LcmOperationTypeHeal, map[string]int{"REMOVED": v.shape.count(), "ADDED": v.shape.count()}, "heal", v.id)
	cloud := v.Sim.Cloud.State()
	for _, server := range serversOf(&v.info, vdu) {
		n := slices.IndexFunc(cloud.Servers, func(s map[string]any) bool { return s["id"] == server })
		if n < 0 {
			t.Errorf("there is no server %s", server)
			continue
		}
		used, _ := cloud.Servers[n]["image"].(map[string]any)
		m := slices.IndexFunc(cloud.Images, func(i map[string]any) bool { return i["id"] == used["id"] })
		if m < 0 || !strings.Contains(cloud.Images[m]["name"].(string), image) { //nolint:forcetypeassert // it is so
			t.Errorf("server %s has image %v, want one of the name %s", server, used, image)
		}
	}
}

// bringImage has the cloud know an image; the function that it returns removes it.
func (l *lab) bringImage(ctx context.Context, t *testing.T, name string) (remove func()) {
	t.Helper()
	glance := harness.NewClient(l.Sim.URL + "/image/v2/images")
	var err error
	glance.Token, err = l.Token(ctx)
	must(t, err)
	var made struct{ ID string }
	_, err = glance.Call(ctx, "POST", "", map[string]any{"name": name, "container_format": "bare", "disk_format": "raw", "visibility": "public"}, &made)
	must(t, err)
	r, err := glance.Send(ctx, "PUT", "/"+made.ID+"/file", "application/octet-stream", []byte("an image"))
	if err != nil || r.Status != 204 {
		t.Fatalf("upload an image: %v, %+v", err, r)
	}
	return func() {
		t.Helper()
		_, err := glance.Call(ctx, "DELETE", "/"+made.ID, nil, nil)
		must(t, err)
	}
}

// end terminates the instance and deletes it.
func (v *living) end(ctx context.Context, t *testing.T) {
	t.Helper()
	v.terminate(ctx, t, v.id, true)
}

// checkTold checks what the subscribers were told of a life with these operations between the first and the last.
func (v *living) checkTold(ctx context.Context, t *testing.T, all, scaled subscription, operations ...string) {
	t.Helper()
	want, wantScaled := []string{"VnfIdentifierCreationNotification"}, []string(nil)
	for _, o := range append(append([]string{"INSTANTIATE"}, operations...), "TERMINATE") {
		if o != "MODIFY_INFO" { // which needs no grant
			want = append(want, o+" STARTING")
		}
		want = append(want, o+" PROCESSING", o+" COMPLETED")
		if o == "SCALE" {
			wantScaled = append(wantScaled, "SCALE COMPLETED")
		}
	}
	want = append(want, "VnfIdentifierDeletionNotification")
	if diff := cmp.Diff(want, all.lines(ctx, t, v.id, want[len(want)-1])); diff != "" {
		t.Errorf("the subscriber is told (- want, + got):\n%s", diff)
	}
	for _, n := range all.about(v.id) {
		n.checkBody(t, v.Nodes[0].URL, all.id)
		if n.state == "COMPLETED" && n.operation != "MODIFY_INFO" && n.operation != "CHANGE_EXT_CONN" {
			var affected []sol003.AffectedVnfc
			if err := json.Unmarshal(n.body["affectedVnfcs"], &affected); err != nil || len(affected) == 0 {
				t.Errorf("%s names no affected VNFCs: %s (error: %v)", n.line(), n.body["affectedVnfcs"], err)
			}
		}
	}
	if len(wantScaled) == 0 {
		return
	}
	must(t, harness.Await(ctx, "the subscriber to scalings has been told of all", func(context.Context) (bool, error) {
		return len(scaled.about(v.id)) >= len(wantScaled), nil
	}))
	var got []string
	for _, n := range scaled.about(v.id) {
		got = append(got, n.line())
		n.checkBody(t, v.Nodes[0].URL, scaled.id)
	}
	if diff := cmp.Diff(wantScaled, got); diff != "" {
		t.Errorf("the subscriber to scalings is told (- want, + got):\n%s", diff)
	}
}
