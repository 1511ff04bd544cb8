package openstack

import (
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

const functionalHOT = "BaseHOT/simple/top.yaml"

// replaced returns the package functional with texts of files replaced, by file: old and new, in turns.
func replaced(t *testing.T, changes map[string][]string) fs.FS {
	t.Helper()
	base := os.DirFS("testdata/packages/functional")
	files := map[string]string{}
	for name, pairs := range changes {
		raw, err := fs.ReadFile(base, name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for n := 0; n < len(pairs); n += 2 {
			if !strings.Contains(text, pairs[n]) {
				t.Fatalf("%s has no %q", name, pairs[n])
			}
			text = strings.Replace(text, pairs[n], pairs[n+1], 1)
		}
		files[name] = text
	}
	return overlay(t, base, files)
}

func instantiated(t *testing.T, l *lab, fsys fs.FS, req *sol003.InstantiateVnfRequest) *vnf {
	t.Helper()
	v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/top.yaml"), req)
	l.bring(v.flavour)
	v.ok(v.instantiate())
	v.same("instantiated")
	return v
}

// signals counts the signals and the updates so far.
func (v *vnf) signals() (signals, updates int) {
	return v.requests("heat", http.MethodPost, "/signal"), v.requests("heat", http.MethodPut, v.stackID())
}

func (v *vnf) stackID() string {
	s, err := loadInfra(v.now)
	v.ok(err)
	return s.StackID
}

// TestWhoGoes has the oldest go, or with is_reverse the newest, and the VNF told of exactly those.
func TestWhoGoes(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		l := newLab(t, vimsim.Config{}, Config{})
		v := instantiated(t, l, os.DirFS("testdata/packages/functional"), functionalRequest())
		first := firstOf(v, "VDU1")
		for range 2 {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // Heat's times are whole seconds
			v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
		}
		was := v.servers("VDU1")
		params := map[string]any{}
		if reverse {
			params["is_reverse"] = "True"
		}
		v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 1, params))
		v.same("scaled in")
		if _, stayed := v.servers("VDU1")[first]; stayed != reverse {
			t.Errorf("reverse %t: the first VNFC is still there: %t, of %v remain %v", reverse, stayed, was, v.servers("VDU1"))
		}
		v.terminateAll()
	}
}

// TestGroupsOfEveryKind scales groups without policies, with those of another adjustment than the VNFD says, with a size that
// a parameter or a function tells, from and to nothing, and in a cool-down.
func TestGroupsOfEveryKind(t *testing.T) {
	const policies = "  VDU1_scale_out:\n    type: OS::Heat::ScalingPolicy\n    properties:\n      scaling_adjustment: 1\n"
	out, in := "VDU1_scale_out:\n", "VDU1_scale_in:\n"
	for name, tt := range map[string]struct {
		changes map[string][]string
		updates bool // instead of signals
		initial int
	}{
		"plain":       {initial: 1},
		"no policies": {map[string][]string{functionalHOT: {out, "one:\n", in, "other:\n"}}, true, 1},
		"other adjustment": {map[string][]string{functionalHOT: {
			policies, strings.Replace(policies, "adjustment: 1", "adjustment: 2", 1), "scaling_adjustment: -1", "scaling_adjustment: -2",
		}}, true, 1},
		"exact": {map[string][]string{functionalHOT: {"adjustment_type: change_in_capacity", "adjustment_type: exact_capacity", in, "other:\n"}}, true, 1},
		"parameter by convention": {map[string][]string{functionalHOT: {
			"  nfv:\n    type: json\n", "  nfv:\n    type: json\n  VDU1_desired_capacity: {type: number}\n", "desired_capacity: 1", "desired_capacity: {get_param: VDU1_desired_capacity}",
		}}, false, 1},
		"function": {map[string][]string{functionalHOT: {
			"  nfv:\n    type: json\n", "  nfv:\n    type: json\n  size: {type: number, default: 1}\n", "desired_capacity: 1", "desired_capacity: {get_param: size}",
		}}, false, 1},
		"from and to nothing": {map[string][]string{
			functionalHOT: {"min_size: 1", "min_size: 0", "desired_capacity: 1", "desired_capacity: 0"},
			"Definitions/df_simple.yaml": {
				"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 1 } }",
				"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 0 } }",
			},
		}, false, 0},
		"from and to nothing without policies": {map[string][]string{
			functionalHOT: {"min_size: 1", "min_size: 0", "desired_capacity: 1", "desired_capacity: 0", out, "one:\n", in, "other:\n"},
			"Definitions/df_simple.yaml": {
				"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 1 } }",
				"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 0 } }",
			},
		}, true, 0},
		"cool-down": {map[string][]string{functionalHOT: {"min_size: 1", "cooldown: 1\n      min_size: 1"}}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, vimsim.Config{}, Config{})
			v := instantiated(t, l, replaced(t, tt.changes), functionalRequest())
			if n := v.counts()["VDU1"]; n != tt.initial {
				t.Fatalf("%d members", n)
			}
			v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 2, nil))
			v.same("scaled out by two")
			v.ok(v.heal(firstOf(v, "VDU2")))
			v.same("healed")
			v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 1, nil))
			v.same("scaled in by one")
			v.ok(v.heal(firstOf(v, "VDU2")))
			v.same("healed again")
			v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 1, nil))
			v.same("scaled in again")
			if n := v.counts()["VDU1"]; n != tt.initial {
				t.Errorf("%d members at the end", n)
			}
			v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
			v.same("scaled out again")
			if signals, updates := v.signals(); (signals == 0) != tt.updates || updates < 2 {
				t.Errorf("%d signals, %d updates", signals, updates)
			}
			v.terminateAll()
		})
	}
}

// TestBeyondTheGroup asks for more than the HOT allows.
func TestBeyondTheGroup(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	v := instantiated(t, l, replaced(t, map[string][]string{functionalHOT: {"max_size: 3", "max_size: 2"}}), functionalRequest())
	err := v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 2, nil)
	if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "group VDU1 cannot have 3 members: its min_size is 1, its max_size 2") {
		t.Errorf("%v", err)
	}
	v.ok(v.rollback())
	v.same("rolled back")
	v.terminateAll()
}

// TestBeyondTheHosts has anti-affinity leave no host for one more.
func TestBeyondTheHosts(t *testing.T) {
	l := newLab(t, vimsim.Config{Hosts: []string{"a", "b"}}, Config{})
	own := "../../../deploy/"
	fsys := joined(t, own+"packages/multi-port", own+"definitions")
	req := scripted("default", "./UserData/multi_port_user_data.py", "MultiPortUserData", "gateway_CP1", "gateway_CP2", "worker_CP1", "worker_CP2")
	v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/multi_port_top.vnfd.yaml"), req)
	v.ok(v.instantiate())
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "gateway_group", 1, nil))
	hosts := map[any]bool{}
	for _, s := range l.sim.Cloud.State().Servers {
		if s["name"] == "gateway" {
			hosts[s["OS-EXT-SRV-ATTR:host"]] = true
		}
	}
	if len(hosts) != 2 {
		t.Errorf("the gateways are on %v", hosts)
	}
	err := v.scale(sol003.ScaleVnfRequestTypeOut, "gateway_group", 1, nil)
	if err == nil || !strings.Contains(err.Error(), "No valid host was found. There are not enough hosts available.") {
		t.Errorf("%v", err)
	}
	v.ok(v.rollback())
	v.same("rolled back")
	v.terminateAll()
}

// TestScriptMethods lets the script make the parameters of a scaling by update and of a heal.
func TestScriptMethods(t *testing.T) {
	const methods = `

    def scale(base_hot_dict, vnfd_dict, scale_request, vnf_instance, inst_vnf_info, param, resource_number):
        assert scale_request.aspect_id == "VDU1" and vnf_instance.id and inst_vnf_info.scale_status[0].aspect_id == "VDU1"
        return {**param, "note": "%s to %d" % (scale_request.type, resource_number)}

    def heal(base_hot_dict, vnfd_dict, heal_request, vnf_instance, inst_vnf_info, param, vnfc_resource_info):
        assert len(inst_vnf_info.vnfc_resource_info) == 4 and heal_request.cause == "a test"
        return {**param, "note": "healed " + ",".join(v.vdu_id for v in vnfc_resource_info)}
`
	base := os.DirFS("testdata/packages/functional")
	script, err := fs.ReadFile(base, "UserData/lcm_user_data.py")
	if err != nil {
		t.Fatal(err)
	}
	fsys := overlay(t, replaced(t, map[string][]string{functionalHOT: {
		"  nfv:\n    type: json\n", "  nfv:\n    type: json\n  note: {type: string, default: none}\n", "VDU1_scale_out:\n", "one:\n",
	}}), map[string]string{"UserData/lcm_user_data.py": string(script) + methods})
	l := newLab(t, vimsim.Config{}, Config{})
	v := instantiated(t, l, fsys, functionalRequest())
	note := func() any {
		s, err := loadInfra(v.now)
		v.ok(err)
		p, err := s.parameters()
		v.ok(err)
		return p["note"]
	}
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
	if got := note(); got != "SCALE_OUT to 2" {
		t.Errorf("scale: %v", got)
	}
	v.ok(v.heal(firstOf(v, "VDU2")))
	if got := note(); got != "healed VDU2" {
		t.Errorf("heal: %v", got)
	}
	v.ok(v.changeExtConn("net_mgmt"))
	v.same("changed")
	if got := note(); got != "healed VDU2" {
		t.Errorf("the parameters are lost: %v", got)
	}
}

// TestHealWithAnotherPackage changes the VNFD between: what is healed is made of the new images, the rest stays.
func TestHealWithAnotherPackage(t *testing.T) {
	t.Run("Base HOT", func(t *testing.T) { healWithAnotherPackage(t, clusterRequest("")) })
	t.Run("translated", func(t *testing.T) {
		healWithAnotherPackage(t, unscripted("complex", "masterNode_CP1", "workerNode_CP2"))
	})
}

func healWithAnotherPackage(t *testing.T, req *sol003.InstantiateVnfRequest) {
	fsys, _ := testPackage(t, "cluster", "complex")
	other := overlay(t, fsys, nil).(interface {
		fs.FS
		fs.ReadFileFS
	})
	raw, err := other.ReadFile("Definitions/df_complex.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := overlay(t, fsys, map[string]string{"Definitions/df_complex.yaml": strings.ReplaceAll(string(raw), "Image of a node", "Another image of a node")})
	l := newLab(t, vimsim.Config{}, Config{})
	v := instantiated(t, l, fsys, req)
	images := func() map[string]string {
		s, err := loadInfra(v.now)
		v.ok(err)
		out := map[string]string{}
		for _, i := range s.Images {
			out[i.Node] = i.ID
		}
		return out
	}
	made := func(vdu string) (ids []string) {
		servers := byID(l.sim.Cloud.State().Servers)
		for _, id := range v.servers(vdu) {
			ids = append(ids, text(servers[id]["image"].(map[string]any), "id"))
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	first := images()
	v.ok(v.heal(firstOf(v, "workerNode")))
	if diff := cmp.Diff(first, images()); diff != "" {
		t.Errorf("a heal by the same package: %s", diff)
	}
	v.fsys, v.d, v.now.VnfdID = changed, ownPackage(t, changed, "Definitions/top.yaml"), "another"
	v.flavour, _ = v.d.Flavour("complex")
	v.lose = true
	v.ok(v.heal(firstOf(v, "workerNode")))
	v.same("healed")
	now := images()
	if now["workerNode"] == first["workerNode"] {
		t.Error("the worker's image is the old one")
	}
	if diff := cmp.Diff([]string{now["workerNode"]}, made("workerNode")); diff != "" {
		t.Errorf("the workers' image: %s", diff)
	}
	if diff := cmp.Diff([]string{first["masterNode"]}, made("masterNode")); diff != "" {
		t.Errorf("the masters' image: %s", diff)
	}
	for _, i := range l.sim.Cloud.State().Images {
		if i["id"] == first["workerNode"] {
			t.Error("the worker's old image is still there")
		}
	}
	v.ok(v.heal(firstOf(v, "masterNode"))) // the masters' turn comes later
	if diff := cmp.Diff([]string{images()["masterNode"]}, made("masterNode")); diff != "" || images()["masterNode"] == first["masterNode"] {
		t.Errorf("the masters' image, after their heal: %s", diff)
	}
	v.ok(v.heal())
	v.same("all healed")
	if diff := cmp.Diff([]string{images()["masterNode"]}, made("masterNode")); diff != "" {
		t.Errorf("the masters' image: %s", diff)
	}
	v.terminateAll()
}

// TestChangeFlavour makes a small cluster a large one, and takes a failed try back.
func TestChangeFlavour(t *testing.T) {
	t.Run("Base HOT", func(t *testing.T) {
		changeFlavour(t, scripted("simple", "./UserData/k8s_cluster_user_data.py", "KubernetesClusterUserData", "masterNode_CP1", "workerNode_CP2"))
	})
	t.Run("translated", func(t *testing.T) { changeFlavour(t, unscripted("simple", "masterNode_CP1", "workerNode_CP2")) })
}

func changeFlavour(t *testing.T, req *sol003.InstantiateVnfRequest) {
	own := "../../../deploy/"
	fsys := joined(t, own+"packages/kubernetes-cluster", own+"definitions")
	d := ownPackage(t, fsys, "Definitions/cluster_top.vnfd.yaml")
	small, _ := d.Flavour("simple")
	large, _ := d.Flavour("complex")
	l := newLab(t, vimsim.Config{}, Config{})
	v := newVNF(l, fsys, d, req)
	v.ok(v.instantiate())
	workers, masters := v.servers("workerNode"), v.servers("masterNode")
	change := func(fail string) error {
		x := v.execution(sol003.LcmOperationTypeChangeFlavour, &sol003.ChangeVnfFlavourRequest{NewFlavourId: "complex"})
		x.Flavour = large
		x.Instance.Request.FlavourId = "complex"
		full, err := lcm.NewInstantiatedInfo(large, x.Instance.Request, x.NewID)
		v.ok(err)
		for n := range full.VnfcResourceInfo { // what is of the same VDU keeps its id
			for m, old := range x.Instance.Info.VnfcResourceInfo {
				if old.VduId == full.VnfcResourceInfo[n].VduId {
					full.VnfcResourceInfo[n].Id = old.Id
					x.Instance.Info.VnfcResourceInfo = slices.Delete(x.Instance.Info.VnfcResourceInfo, m, m+1)
					break
				}
			}
		}
		x.Instance.Info = full
		v.fail, v.failAfter, v.lose = fail, true, true
		return v.done(x, v.run(x, v.driver), nil)
	}
	if err := change("inventory"); err == nil {
		t.Fatal("it did not fail")
	}
	v.ok(v.rollback())
	v.flavour = small
	v.same("rolled back")
	if !slices.Equal(slices.Sorted(maps.Keys(workers)), slices.Sorted(maps.Keys(v.servers("workerNode")))) {
		t.Errorf("the workers were %v and are %v", workers, v.servers("workerNode"))
	}
	if diff := cmp.Diff(masters, v.servers("masterNode")); diff != "" {
		t.Errorf("the master is not the one of before: %s", diff)
	}
	v.ok(change(""))
	v.flavour = large
	v.same("changed")
	if diff := cmp.Diff(map[string]int{"masterNode": 3, "workerNode": 2}, v.counts()); diff != "" {
		t.Error(diff)
	}
	for id := range masters { // its member is of another template, and so another
		if v.servers("masterNode")[id] == "" {
			t.Errorf("the master %s is not there any more", id)
		}
	}
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "worker_instance", 1, nil))
	v.same("scaled")
	v.terminateAll()
}

// TestScaleToLevel takes several aspects to other levels at once, out and in.
func TestScaleToLevel(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, _ := testPackage(t, "cluster", "complex")
	v := instantiated(t, l, fsys, clusterRequest(""))
	v.lose = true
	v.ok(v.scaleTo(map[string]int{"master_instance": 2, "worker_instance": 1}))
	v.same("out")
	v.ok(v.scaleTo(map[string]int{"master_instance": 0, "worker_instance": 2}))
	v.same("in and out")
	v.fail, v.lose = "scale-worker_instance-1", false
	if err := v.scaleTo(map[string]int{"master_instance": 1, "worker_instance": 0}); err == nil {
		t.Fatal("it did not fail")
	}
	if err := v.rollback(); !lcm.Is(err, lcm.KindUnsupported) {
		t.Errorf("%v", err)
	}
	v.failed.Op.State = sol003.LcmOperationStateProcessing
	v.steps = newJournaled(v.driver)
	v.ok(v.done(v.failed, v.run(v.failed, v.steps), func(info *sol003.InstantiatedVnfInfo) { settleScale(info, v.failed.Plan) }))
	v.same("tried again from the first step")
	v.terminateAll()
}

// TestGrantFromNothing applies what is granted when the group is empty, where nobody else is touched.
func TestGrantFromNothing(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	v := instantiated(t, l, replaced(t, map[string][]string{
		functionalHOT: {"min_size: 1", "min_size: 0", "desired_capacity: 1", "desired_capacity: 0"},
		"Definitions/df_simple.yaml": {
			"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 1 } }",
			"    - VDU1_initial:\n        type: tosca.policies.nfv.VduInitialDelta\n        properties: { initial_delta: { number_of_instances: 0 } }",
		},
	}), functionalRequest())
	for n, want := range []string{"3", "3"} {
		v.grant = &lcm.Grant{Flavours: map[string]string{"VDU1": []string{"3", "1"}[n]}}
		v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
		servers := byID(l.sim.Cloud.State().Servers)
		for _, id := range v.servers("VDU1") {
			if got := text(servers[id]["flavor"].(map[string]any), "id"); got != want {
				t.Errorf("step %d: server %s has flavor %s", n, id, got)
			}
		}
	}
}

// TestHealOfAStrangeStack refuses while something else goes on with the stack, and brings a failed update right.
func TestHealOfAStrangeStack(t *testing.T) {
	v := running(t, Config{})
	c, err := v.driver.connect(t.Context(), v.target)
	v.ok(err)
	_, err = c.call(t.Context(), "suspend", http.MethodPost, map[string]any{"suspend": nil}, nil, []int{200}, "stacks", stackName(v.now.ID), v.stackID(), "actions")
	v.ok(err)
	for status := ""; status != "SUSPEND_COMPLETE"; {
		s, err := c.stack(t.Context(), stackName(v.now.ID), v.stackID())
		v.ok(err)
		if status = s.Status; status == "SUSPEND_FAILED" {
			t.Fatal(s.Reason)
		}
	}
	err = v.heal(firstOf(v, "VDU1"))
	want := "Healing of vnf instance " + v.now.ID + " is possible only when stack " + v.stackID() + " status is CREATE_COMPLETE,UPDATE_COMPLETE, current stack status is SUSPEND_COMPLETE"
	if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}

	v = running(t, Config{})
	id := v.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail})
	if err := v.heal(firstOf(v, "VDU1")); err == nil {
		t.Fatal("it did not fail")
	}
	v.sim.Cloud.RemoveFault(id)
	v.ok(v.heal(firstOf(v, "VDU2"))) // another operation, after the failed one has been given up
	v.ok(v.heal(firstOf(v, "VDU1")))
	v.same("healed")
}

// TestOutOfBand has somebody else take a server and a member away: a heal brings both back.
func TestOutOfBand(t *testing.T) {
	v := running(t, Config{})
	c, err := v.driver.connect(t.Context(), v.target)
	v.ok(err)
	sick := firstOf(v, "VDU1")
	nova, err := c.nova(t.Context())
	v.ok(err)
	_, err = c.exchange(t.Context(), nova, "delete", http.MethodDelete, nil, nil, []int{204}, []string{"servers", v.servers("VDU1")[sick]})
	v.ok(err)
	if err := v.operate(sol003.VnfOperationalStateStopped); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "is gone from VIM") {
		t.Errorf("%v", err)
	}
	v.ok(v.heal(sick))
	v.ok(v.operate(sol003.VnfOperationalStateStarted)) // those that were there have been stopped
	v.same("healed")
	top, _, err := v.driver.own(t.Context(), v.execution(sol003.LcmOperationTypeHeal, &sol003.HealVnfRequest{}), c)
	v.ok(err)
	v.ok(c.signal(t.Context(), top, "VDU1_scale_in"))
	v.ok(v.heal(firstOf(v, "VDU1")))
	v.same("healed after a member has gone")
}

// TestReconnect puts connection points elsewhere, and refuses those that the template cannot be told of.
func TestReconnect(t *testing.T) {
	eth := func(ips ...sol003.IpAddressData) []sol003.VnfExtCpConfig {
		return []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{IpOverEthernet: &sol003.IpOverEthernetAddressData{IpAddresses: ips}}}}}
	}
	for name, tt := range map[string]struct {
		params, want string
		config       []sol003.VnfExtCpConfig
	}{
		"network":              {`{"network":"a"}`, `{"network":"b"}`, nil},
		"addresses go":         {`{"network":"a","fixed_ips":[{"subnet":"s"}]}`, `{"network":"b","fixed_ips":[]}`, nil},
		"addresses stay":       {`{"network":"b","fixed_ips":[{"subnet":"s"}]}`, `{"network":"b","fixed_ips":[{"subnet":"s"}]}`, nil},
		"no ipOverEthernet":    {`{"network":"a"}`, `{"network":"b"}`, []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{LayerProtocol: "IP_OVER_ETHERNET"}}}}},
		"fixed":                {`{"network":"a"}`, `{"network":"b","fixed_ips":[{"ip_address":"1.1.1.1","subnet":"t"},{"ip_address":"1.1.1.2","subnet":"t"}]}`, eth(sol003.IpAddressData{SubnetId: "t", FixedAddresses: []string{"1.1.1.1", "1.1.1.2"}})},
		"dynamic":              {`{"network":"a"}`, `{"network":"b","fixed_ips":[{"subnet":"t"}]}`, eth(sol003.IpAddressData{SubnetId: "t", NumDynamicAddresses: 1})},
		"nothing of addresses": {`{}`, `{"network":"b"}`, eth(sol003.IpAddressData{NumDynamicAddresses: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			params, err := decodeParameters(json.RawMessage(`{"nfv":{"CP":{"X":` + tt.params + `}}}`))
			if err != nil {
				t.Fatal(err)
			}
			links := []sol003.ExtVirtualLinkData{{Id: "l", ResourceId: "b", ExtCps: []sol003.VnfExtCpData{{CpdId: "X", CpConfig: tt.config}}}}
			if err := reconnect(params, links); err != nil {
				t.Fatal(err)
			}
			want, _ := decodeParameters(json.RawMessage(tt.want))
			if diff := cmp.Diff(any(want), section(params, "CP")["X"]); diff != "" {
				t.Error(diff)
			}
			links[0].ExtCps[0].CpdId = "Y"
			if err := reconnect(params, links); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "connection point Y is not among the parameters") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCan(t *testing.T) {
	d := New(Config{}, nil)
	for op, want := range map[sol003.LcmOperationType][2]bool{
		sol003.LcmOperationTypeInstantiate: {true, true}, sol003.LcmOperationTypeTerminate: {true, false}, sol003.LcmOperationTypeHeal: {true, false},
		sol003.LcmOperationTypeScale: {true, true}, sol003.LcmOperationTypeScaleToLevel: {true, true}, sol003.LcmOperationTypeOperate: {true, true},
		sol003.LcmOperationTypeChangeFlavour: {true, true}, sol003.LcmOperationTypeChangeExtConn: {true, true}, sol003.LcmOperationTypeModifyInfo: {false, false},
	} {
		if got := [2]bool{d.Can(op, false), d.Can(op, true)}; got != want {
			t.Errorf("%s: %v", op, got)
		}
	}
}
