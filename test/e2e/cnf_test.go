package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/yaml"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	kubelab "github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// cnfLab is a lab beside a Kubernetes cluster, with a namespace of its own and an account that may do there what our sample
// CNF takes, and nothing elsewhere.
type cnfLab struct {
	*lab
	plane     *kubelab.Plane
	namespace string
	account   kubelab.Account
	token     string
	there     map[string]string // what the namespace held at first, with the versions
}

// newCNFLab makes a lab beside the control plane, whose VNFs may take so long to become ready.
func newCNFLab(t *testing.T, plane *kubelab.Plane, ready string) *cnfLab {
	t.Helper()
	c := harness.New(t, harness.Options{OpenStack: &harness.OpenStack{}, Env: []string{
		"VNFM_KUBERNETES_READY_TIMEOUT=" + ready, "VNFM_KUBERNETES_POLL_MIN=50ms", "VNFM_KUBERNETES_POLL_MAX=300ms",
	}})
	l := &cnfLab{plane: plane, lab: &lab{
		Cluster: c, api: c.API(0), said: &transcript{}, osEnv: []string{"OS_AUTH_TYPE=none", "OS_ENDPOINT=" + c.Nodes[0].URL},
	}}
	l.namespace = plane.Namespace(t, "e2e")
	l.account, l.token = l.tenant(t, "tenant")
	l.there = l.objects(t, l.namespace)
	return l
}

// tenant makes an account of the Role that docs/kubernetes.md says to be enough, with a token.
func (l *cnfLab) tenant(t *testing.T, name string) (kubelab.Account, string) {
	t.Helper()
	account, err := l.plane.Tenant(t.Context(), l.namespace, name, documentedRole(t)...)
	must(t, err)
	token, err := l.plane.Token(t.Context(), account)
	must(t, err)
	l.said.hide(token)
	return account, token
}

// documentedRole returns the rules of the Role in docs/kubernetes.md.
func documentedRole(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	raw, err := os.ReadFile("../../docs/kubernetes.md")
	must(t, err)
	_, text, _ := strings.Cut(string(raw), "```yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n")
	text, _, found := strings.Cut(text, "```")
	var role rbacv1.Role
	must(t, yaml.UnmarshalStrict([]byte(text), &role))
	if !found || len(role.Rules) < 3 {
		t.Fatalf("docs/kubernetes.md has no Role: %+v", role)
	}
	return role.Rules
}

// kinds are what a namespace is searched for.
var kinds = []string{
	"pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts", "resourcequotas",
	"apps/deployments", "apps/replicasets", "apps/statefulsets", "apps/controllerrevisions", "discovery.k8s.io/endpointslices",
	"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings",
}

// objects lists what a namespace holds, each with its version.
func (l *cnfLab) objects(t *testing.T, ns string) map[string]string {
	t.Helper()
	client, err := metadata.NewForConfig(l.plane.Config())
	must(t, err)
	out := map[string]string{}
	for _, kind := range kinds {
		group, resource, ok := strings.Cut(kind, "/")
		if !ok {
			group, resource = "", kind
		}
		list, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, o := range list.Items {
			out[kind+" "+o.Name] = o.ResourceVersion
		}
	}
	return out
}

// checkCleared checks that the namespace holds what it held at first, untouched, and that no file and no secret is left.
func (l *cnfLab) checkCleared(t *testing.T) {
	t.Helper()
	var now map[string]string
	err := harness.Await(testContext(t), "the namespace holds what it held at first", func(context.Context) (bool, error) {
		now = l.objects(t, l.namespace) // what the cluster itself has made for what is gone goes a little later
		return cmp.Equal(l.there, now), nil
	})
	if err != nil {
		t.Errorf("%v (- at first, + now):\n%s", err, cmp.Diff(l.there, now))
	}
	l.checkNoFiles(t)
	l.checkNoSecrets(t)
}

// vimFile writes a configuration file of a VIM at the cluster.
func (l *cnfLab) vimFile(t *testing.T, keys map[string]any) string {
	t.Helper()
	all := map[string]any{"type": "kubernetes", "auth_url": l.plane.URL, "project_name": l.namespace, "ssl_ca_cert": string(l.plane.CA)}
	maps.Copy(all, keys)
	return l.jsonFile(t, "vim.yaml", all) // JSON is YAML
}

// both runs a command by the real client and by ours, which must print the same, and returns it; where ours is tried, by
// ours alone.
func (l *cnfLab) both(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out := l.ok(ctx, t, args...)
	if l.client == "" {
		if diff := difference(out, l.ours(ctx, t).ok(ctx, t, args...)); diff != "" {
			t.Errorf("%s: our client prints, other than the real one, %s", strings.Join(args, " "), diff)
		}
	}
	return out
}

// showsAll has the client show an object exactly as the layout says, as a table and, the first time, as JSON.
func (v *cnf) showsAll(ctx context.Context, t *testing.T, y layout, path, first string, args ...string) fields {
	t.Helper()
	raw := v.get(ctx, t, path)
	out := v.ok(ctx, t, args...)
	if diff := difference(y.table(t, raw), out); diff != "" {
		t.Errorf("%s prints %s", strings.Join(args, " "), diff)
	}
	if !v.shown[first] {
		v.shown[first] = true
		v.prints(ctx, t, y.json(t, raw), append(args, "-f", "json")...)
	}
	return parseFields(t, out)
}

// listsAll has the client list objects exactly as they are to be, as a table and as JSON.
func (l *cnfLab) listsAll(ctx context.Context, t *testing.T, columns []column, path string, args ...string) {
	t.Helper()
	list := listed{columns, l.read(ctx, t, path)}
	l.prints(ctx, t, list.table(), args...)
	l.prints(ctx, t, list.json(t), append(args, "-f", "json")...)
}

// cnf is a CNF in the course of its life.
type cnf struct {
	*cnfLab
	id, vim, vnfd string
	count         map[string]int // of VNFCs by VDU
	levels        map[string]int // by aspect
	request       map[string]any
	shown         map[string]bool            // what has been shown as JSON
	info          sol003.InstantiatedVnfInfo // as it was shown last
}

// workloads say what the VDUs of our sample CNF are in the cluster.
var workloads = map[string]struct{ kind, name string }{"WEB": {"Deployment", "web"}, "STORE": {"StatefulSet", "store"}}

// onNamespace is the request that instantiates our sample CNF in a namespace.
func onNamespace(vim, ns string) map[string]any {
	request := harness.OnVIM(deploy.InstantiateRequest("web-cnf", "default"), vim)
	params := maps.Clone(request["additionalParams"].(map[string]any)) //nolint:forcetypeassert // it is one
	params["namespace"] = ns
	request["additionalParams"] = params
	request["vimConnectionInfo"] = []any{map[string]any{"id": "8a3adb69-0784-43c7-833e-aab0b6ab4470", "vimId": vim, "vimType": "kubernetes"}}
	return request
}

// TestCNFLives has the real client, and ours, drive our sample CNF through its whole life. What both must print is written
// down once.
func TestCNFLives(t *testing.T) {
	t.Parallel()
	plane := kubelab.Start(t)
	for _, client := range []string{"openstack", "vnfm"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			l := newCNFLab(t, plane, "600s")
			if client == "vnfm" {
				l.lab = l.ours(ctx, t)
			}
			vim := l.registers(ctx, t)
			raw, vnfd := variant(t, "web-cnf", nil)
			pkg := l.onboards(ctx, t, raw, vnfd)
			v := &cnf{cnfLab: l, vim: vim, vnfd: vnfd, count: map[string]int{"WEB": 2, "STORE": 1}, levels: map[string]int{}, shown: map[string]bool{}}
			v.begins(ctx, t)
			v.scales(ctx, t, "web", "WEB", "SCALE_OUT", 2)
			v.scales(ctx, t, "web", "WEB", "SCALE_IN", 1)
			v.scales(ctx, t, "store", "STORE", "SCALE_OUT", 1)
			v.heals(ctx, t, "WEB")
			v.heals(ctx, t, "STORE")
			v.healsWhole(ctx, t)
			v.scales(ctx, t, "store", "STORE", "SCALE_IN", 1)
			l.refuses(ctx, t, "can not scale_in", "vnflcm", "scale", v.id, "--type", "SCALE_IN", "--aspect-id", "store")
			v.ends(ctx, t)
			l.removePackage(ctx, t, pkg)
			l.says(ctx, t, "All specified vim(s) deleted successfully", "vim", "delete", "cluster")
			l.checkCleared(t)
		})
	}
}

// registers has the client register the cluster and show it.
func (l *cnfLab) registers(ctx context.Context, t *testing.T) (vim string) {
	t.Helper()
	f := l.show(ctx, t, "vim", "register", "--config-file", l.vimFile(t, map[string]any{"bearer_token": l.token}), "--description", "a cluster", "cluster")
	want := map[string]string{
		"auth_cred": anything, "auth_url": l.plane.URL, "created_at": anything, "description": "a cluster", "extra": "", "id": anything,
		"is_default": "False", "name": "cluster", "placement_attr": "{\n    \"regions\": [\n        \"" + l.namespace + "\"\n    ]\n}", "project_id": "default",
		"status": anything, "type": "kubernetes", "updated_at": "None", "vim_project": "{\n    \"name\": \"" + l.namespace + "\"\n}",
	}
	f.want(t, "vim register", want)
	var auth map[string]any
	f.json(t, "auth_cred", &auth)
	if diff := cmp.Diff(map[string]any{
		"bearer_token": "***", "ssl_ca_cert": string(l.plane.CA), "auth_url": l.plane.URL, "key_type": "barbican_key", "secret_uuid": "***",
	}, auth); diff != "" {
		t.Errorf("auth_cred (- want, + got):\n%s", diff)
	}
	vim = f.values["id"]
	want["id"], want["status"] = vim, "REACHABLE"
	parseFields(t, l.both(ctx, t, "vim", "show", "cluster")).want(t, "vim show", want)
	l.both(ctx, t, "vim", "show", vim, "-f", "json")
	row := [][]string{{vim, "cluster", "default", "kubernetes", "False", "REACHABLE"}}
	if diff := difference(drawn([]string{"ID", "Name", "Tenant_id", "Type", "Is Default", "Status"}, row), l.both(ctx, t, "vim", "list")); diff != "" {
		t.Errorf("vim list prints %s", diff)
	}
	return vim
}

// onboards has the client upload our sample CNF and show it.
func (l *cnfLab) onboards(ctx context.Context, t *testing.T, raw []byte, vnfd string) (pkg string) {
	t.Helper()
	pkg = l.createPackage(ctx, t)
	l.says(ctx, t, "Upload request for VNF package "+pkg+" has been accepted.", "vnf", "package", "upload", "--path", l.file(t, "package.zip", raw), pkg)
	_, err := l.api.AwaitOnboarded(ctx, pkg)
	must(t, err)
	f := parseFields(t, l.both(ctx, t, "vnf", "package", "show", pkg))
	f.want(t, "vnf package show", map[string]string{
		"Additional Artifacts": anything, "Checksum": anything, "ID": pkg, "Links": anything, "Onboarding State": "ONBOARDED",
		"Operational State": "ENABLED", "Software Images": anything, "Usage State": "NOT_IN_USE", "User Defined Data": anything,
		"VNF Product Name": "Web servers with a store", "VNF Provider": "vnfm samples", "VNF Software Version": "1.0", "VNFD ID": vnfd, "VNFD Version": "1.0",
	})
	checkArtifacts(t, f, candidate{artifacts: []string{"Files/kubernetes/store.yaml", "Files/kubernetes/web.yaml"}})
	l.both(ctx, t, "vnf", "package", "list", "-f", "json")
	return pkg
}

// begins has the client create and instantiate the CNF.
func (v *cnf) begins(ctx context.Context, t *testing.T) {
	t.Helper()
	out := v.ok(ctx, t, "vnflcm", "create", v.vnfd, "--name", "web", "--description", "of a test")
	v.id = parseFields(t, out).values["ID"]
	path := instancesPath + "/" + v.id
	if diff := difference(createdInstance.table(t, v.get(ctx, t, path)), out); diff != "" {
		t.Errorf("vnflcm create prints %s", diff)
	}
	v.showsAll(ctx, t, shownInstance, path, "new", "vnflcm", "show", v.id)
	v.request = onNamespace(v.vim, v.namespace)
	v.does(ctx, t, "INSTANTIATE", "Instantiate request for VNF Instance "+v.id+" has been accepted.\n", map[string]int{"ADDED": 3},
		"instantiate", v.id, v.jsonFile(t, "request.json", v.request))
	v.listsAll(ctx, t, instanceColumns, instancesPath, "vnflcm", "list")
	v.listsAll(ctx, t, opColumns, opOccsPath, "vnflcm", "op", "list")
}

// does has the client start an operation, which says so, completes and changes so many VNFCs in each way. Then it
// shows the op occ and the instance, and what is shown is what there is in the cluster.
func (v *cnf) does(ctx context.Context, t *testing.T, operation, says string, changes map[string]int, args ...string) {
	t.Helper()
	v.prints(ctx, t, says, append([]string{"vnflcm"}, args...)...)
	id := v.latest(ctx, t, v.id)
	op := v.awaitOp(ctx, t, id, sol003.LcmOperationStateCompleted)
	got := map[string]int{}
	if op.ResourceChanges != nil {
		for _, c := range op.ResourceChanges.AffectedVnfcs {
			got[string(c.ChangeType)]++
			if w := workloads[c.VduId]; c.ComputeResource.VimLevelResourceType != w.kind {
				t.Errorf("%s: the VNFC of %s is a %s, want a %s", operation, c.VduId, c.ComputeResource.VimLevelResourceType, w.kind)
			}
		}
	}
	if diff := cmp.Diff(changes, got); diff != "" || string(op.Operation) != operation {
		t.Errorf("%s affects VNFCs (- want, + got):\n%s", op.Operation, diff)
	}
	f := v.showsAll(ctx, t, shownOp, opOccsPath+"/"+id, operation, "vnflcm", "op", "show", id)
	if f.values["Operation State"] != "COMPLETED" || f.values["Operation"] != operation || f.values["Error"] != "" {
		t.Errorf("vnflcm op show shows %s in %s, error %q", f.values["Operation"], f.values["Operation State"], f.values["Error"])
	}
	v.looks(ctx, t, operation)
}

// looks has the client show the instance after an operation, and holds it against what there is in the cluster.
func (v *cnf) looks(ctx context.Context, t *testing.T, operation string) {
	t.Helper()
	f := v.showsAll(ctx, t, liveInstance, instancesPath+"/"+v.id, "instance after "+operation, "vnflcm", "show", v.id)
	f.want(t, "vnflcm show", map[string]string{
		"ID": v.id, "Instantiated Vnf Info": anything, "Instantiation State": "INSTANTIATED", "Links": anything, "VIM Connection Info": anything,
		"VNF Configurable Properties": "", "VNF Instance Description": "of a test", "VNF Instance Name": "web", "VNF Product Name": "Web servers with a store",
		"VNF Provider": "vnfm samples", "VNF Software Version": "1.0", "VNFD ID": v.vnfd, "VNFD Version": "1.0", "vnfPkgId": "",
		"metadata": "namespace=" + v.namespace,
	})
	var connections []map[string]any
	f.json(t, "VIM Connection Info", &connections)
	if diff := cmp.Diff(v.request["vimConnectionInfo"], any(toAny(connections))); diff != "" {
		t.Errorf("the VIM connections (- want, + got):\n%s", diff)
	}
	var attributes map[string]json.RawMessage
	f.json(t, "Instantiated Vnf Info", &attributes)
	want := []string{"additionalParams", "extCpInfo", "flavourId", "scaleStatus", "vnfState", "vnfcInfo", "vnfcResourceInfo"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(attributes))); diff != "" {
		t.Errorf("the attributes of instantiatedVnfInfo (- want, + got):\n%s", diff)
	}
	v.info = sol003.InstantiatedVnfInfo{}
	f.json(t, "Instantiated Vnf Info", &v.info)
	v.checkPods(ctx, t)
}

func toAny(list []map[string]any) (out []any) {
	for _, m := range list {
		out = append(out, m)
	}
	return out
}

// checkPods holds what was shown of the instance against the cluster: each VNFC is a pod of its own of its VDU's workload.
func (v *cnf) checkPods(ctx context.Context, t *testing.T) {
	t.Helper()
	levels := map[string]int{}
	for _, s := range v.info.ScaleStatus {
		levels[s.AspectId] = s.ScaleLevel
	}
	if want := map[string]int{"web": v.levels["web"], "store": v.levels["store"]}; !maps.Equal(want, levels) || v.info.FlavourId != "default" || v.info.VnfState != "STARTED" {
		t.Errorf("flavour %s, state %s, levels %v, want %v", v.info.FlavourId, v.info.VnfState, levels, want)
	}
	if diff := cmp.Diff(v.request["additionalParams"], v.info.AdditionalParams); diff != "" {
		t.Errorf("additionalParams (- want, + got):\n%s", diff)
	}
	for vdu, w := range workloads {
		pods, err := v.plane.Client.CoreV1().Pods(v.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + w.name})
		must(t, err)
		var want, got []string
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil {
				want = append(want, p.Name)
			}
		}
		for _, c := range v.info.VnfcResourceInfo {
			if c.VduId != vdu {
				continue
			}
			got = append(got, c.ComputeResource.ResourceId)
			if handle := (sol003.ResourceHandle{VimConnectionId: v.vim, ResourceId: c.ComputeResource.ResourceId, VimLevelResourceType: w.kind}); c.ComputeResource != handle || c.StorageResourceIds == nil {
				t.Errorf("VNFC %s of %s: %+v", c.Id, vdu, c)
			}
			v.checkMetadata(t, c, w.kind, w.name)
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || len(got) != v.count[vdu] {
			t.Errorf("%s is to have %d VNFCs; the cluster's pods and the VNFCs (- the cluster's, + the instance's):\n%s", vdu, v.count[vdu], diff)
		}
	}
	if len(v.info.VnfcInfo) != len(v.info.VnfcResourceInfo) {
		t.Errorf("vnfcInfo has %d VNFCs, vnfcResourceInfo %d", len(v.info.VnfcInfo), len(v.info.VnfcResourceInfo))
	}
}

// checkMetadata checks what a VNFC says of its workload and of its pods.
func (v *cnf) checkMetadata(t *testing.T, c sol003.VnfcResourceInfo, kind, name string) {
	t.Helper()
	type meta struct {
		Name, Namespace string
		Labels          map[string]string
	}
	got := map[string]meta{}
	for key, text := range c.Metadata {
		raw, _ := text.(string)
		var m meta
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Errorf("metadata %s of VNFC %s is no JSON text (%v): %v", key, c.Id, err, text)
			continue
		}
		m.Labels = map[string]string{"app": m.Labels["app"]} // those that we put beside are our business
		got[key] = m
	}
	want := map[string]meta{kind: {name, v.namespace, map[string]string{"app": name}}, "Pod": {Labels: map[string]string{"app": name}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata of VNFC %s (- want, + got):\n%s", c.Id, diff)
	}
}

// scales has the client scale the CNF by steps of one; VNFCs that stay are not touched.
func (v *cnf) scales(ctx context.Context, t *testing.T, aspect, vdu, kind string, steps int) {
	t.Helper()
	before := v.uids(ctx, t, vdu)
	change, by := "ADDED", steps
	if kind == "SCALE_IN" {
		change, by = "REMOVED", -steps
	}
	v.count[vdu] += by
	v.levels[aspect] += by
	v.does(ctx, t, "SCALE", "Scale request for VNF Instance "+v.id+" has been accepted.\n", map[string]int{change: steps},
		"scale", v.id, "--type", kind, "--aspect-id", aspect, "--number-of-steps", fmt.Sprint(steps))
	after := v.uids(ctx, t, vdu)
	stayed := 0
	for vnfc, uid := range before {
		if after[vnfc] == uid {
			stayed++
		}
	}
	if stayed != min(len(before), len(after)) {
		t.Errorf("%s: of %v only %d have stayed: %v", kind, before, stayed, after)
	}
}

// uids are the pods' UIDs of a VDU's VNFCs, by VNFC.
func (v *cnf) uids(ctx context.Context, t *testing.T, vdu string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for vnfc, pod := range serversOf(&v.info, vdu) {
		p, err := v.plane.Client.CoreV1().Pods(v.namespace).Get(ctx, pod, metav1.GetOptions{})
		must(t, err)
		out[vnfc] = string(p.UID)
	}
	return out
}

const healAccepted = "Heal request for VNF Instance %s has been accepted.\n"

// heals has the client heal one VNFC: it gets another pod, and the others keep theirs.
func (v *cnf) heals(ctx context.Context, t *testing.T, vdu string) {
	t.Helper()
	before := v.uids(ctx, t, vdu)
	sick := slices.Sorted(maps.Keys(before))[0]
	v.does(ctx, t, "HEAL", fmt.Sprintf(healAccepted, v.id), map[string]int{"MODIFIED": 1}, "heal", v.id, "--vnfc-instance", sick, "--cause", "it looks ill")
	for vnfc, uid := range v.uids(ctx, t, vdu) {
		if was := before[vnfc]; was == "" || (was == uid) == (vnfc == sick) {
			t.Errorf("VNFC %s had pod %q and has %s; healed was %s", vnfc, was, uid, sick)
		}
	}
}

// healsWhole has the client heal the whole CNF: nothing of it is what it was, and it has the size that it had.
func (v *cnf) healsWhole(ctx context.Context, t *testing.T) {
	t.Helper()
	n := v.count["WEB"] + v.count["STORE"]
	before := maps.Clone(v.uids(ctx, t, "WEB"))
	maps.Copy(before, v.uids(ctx, t, "STORE"))
	v.does(ctx, t, "HEAL", fmt.Sprintf(healAccepted, v.id), map[string]int{"REMOVED": n, "ADDED": n}, "heal", v.id)
	for vdu := range v.count {
		for vnfc, uid := range v.uids(ctx, t, vdu) {
			if before[vnfc] != "" || slices.Contains(slices.Collect(maps.Values(before)), uid) {
				t.Errorf("VNFC %s with pod %s is there still after the whole VNF was healed", vnfc, uid)
			}
		}
	}
}

// ends has the client terminate the CNF and delete it; nothing of it is left.
func (v *cnf) ends(ctx context.Context, t *testing.T) {
	t.Helper()
	v.prints(ctx, t, "Terminate request for VNF Instance '"+v.id+"' has been accepted.\n",
		"vnflcm", "terminate", v.id, "--termination-type", "GRACEFUL", "--graceful-termination-timeout", "1")
	op := v.latest(ctx, t, v.id)
	v.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)
	v.showsAll(ctx, t, shownOp, opOccsPath+"/"+op, "TERMINATE", "vnflcm", "op", "show", op)
	f := v.showsAll(ctx, t, shownInstance, instancesPath+"/"+v.id, "terminated", "vnflcm", "show", v.id)
	if f.values["Instantiation State"] != "NOT_INSTANTIATED" || strings.Contains(f.values["metadata"], "namespace") {
		t.Errorf("after the termination the instance is shown as %v", f.values)
	}
	v.prints(ctx, t, "Vnf instance '"+v.id+"' is deleted successfully\n", "vnflcm", "delete", v.id)
	v.listsAll(ctx, t, instanceColumns, instancesPath, "vnflcm", "list")
}
