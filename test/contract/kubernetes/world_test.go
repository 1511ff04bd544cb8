package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/dynamic"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(harness.Cleanup(), lab.Cleanup()); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// doc is a JSON object.
type doc = map[string]any

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a VNF manager beside a control plane.
type world struct {
	*lab.Plane
	api     *harness.Client
	cluster *harness.Cluster
	objects dynamic.Interface
}

// patience is how long a test may wait for one operation, on a slow machine.
const patience = 10 * time.Minute

// The waits of the two managers: one for what becomes ready, one for what never does, beside which what does has time enough on a
// slow machine.
const (
	longWait  = "600s"
	shortWait = "30s"
	tooLong   = "within 30 seconds" // what is said after the shorter one
)

var managers struct {
	mu sync.Mutex
	by map[string]*world
}

// newWorld returns the manager whose waits are so long and that is configured like that. All tests share it.
func newWorld(t *testing.T, wait string, env ...string) *world {
	t.Helper()
	plane := lab.Start(t)
	managers.mu.Lock()
	defer managers.mu.Unlock()
	key := strings.Join(append([]string{wait}, env...), " ")
	if w := managers.by[key]; w != nil {
		return w
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	cluster, err := harness.Start(ctx, harness.Options{OpenStack: &harness.OpenStack{}, Env: append([]string{
		"VNFM_KUBERNETES_READY_TIMEOUT=" + wait, "VNFM_KUBERNETES_DELETE_TIMEOUT=" + longWait,
		"VNFM_KUBERNETES_POLL_MIN=50ms", "VNFM_KUBERNETES_POLL_MAX=300ms",
	}, env...)})
	must(t, err)
	objects, err := dynamic.NewForConfig(plane.Config())
	must(t, err)
	w := &world{Plane: plane, api: cluster.API(0), cluster: cluster, objects: objects}
	if managers.by == nil {
		managers.by = map[string]*world{}
	}
	managers.by[key] = w
	return w
}

// register registers the control plane as a VIM, for an account.
func (w *world) register(t *testing.T, token, namespace string) string {
	t.Helper()
	return w.registerAs(t, w.URL, namespace, doc{"bearer_token": token, "ssl_ca_cert": string(w.CA)})
}

// registerAs registers it, at an address of its own, with credentials.
func (w *world) registerAs(t *testing.T, address, namespace string, credentials doc) string {
	t.Helper()
	id, err := w.registering(t.Context(), address, namespace, credentials)
	must(t, err)
	return id
}

func (w *world) registering(ctx context.Context, address, namespace string, credentials doc) (id string, err error) {
	var out struct {
		Vim struct {
			ID string `json:"id"`
		} `json:"vim"`
	}
	_, err = w.api.Call(ctx, http.MethodPost, "/v1.0/vims", doc{"vim": doc{
		"auth_url": address, "type": "kubernetes", "name": "k8s-" + uuid.NewString()[:8], "is_default": false,
		"vim_project": doc{"name": namespace},
		"auth_cred":   credentials,
	}}, &out)
	return out.Vim.ID, err
}

// administrator registers the control plane for an account that may do everything, and returns the VIM.
func (w *world) administrator(t *testing.T) string {
	t.Helper()
	ns := w.Namespace(t, "accounts")
	account, err := w.Administrator(t.Context(), ns, "admin")
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Dismiss(ctx, account); err != nil {
			t.Log(err)
		}
	})
	token, err := w.Token(t.Context(), account)
	must(t, err)
	return w.register(t, token, ns)
}

// tenant registers the control plane for an account of one namespace, which it makes, and returns both.
func (w *world) tenant(t *testing.T) (vim, namespace string) {
	t.Helper()
	ns := w.Namespace(t, "tenant")
	account, err := w.Tenant(t.Context(), ns, "user")
	must(t, err)
	token, err := w.Token(t.Context(), account)
	must(t, err)
	return w.register(t, token, ns), ns
}

// topNode is the descriptor of our own CNFs: a flavour with steps of one, and one with steps of two.
const topNode = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [sol001_types.yaml, types.yaml, df_simple.yaml, df_steps.yaml]
topology_template:
  inputs: {selected_flavour: {type: string}}
  node_templates:
    VNF:
      type: vnfm.test.CNF
      properties:
        flavour_id: {get_input: selected_flavour}
        descriptor_id: VNFD-ID
        provider: vnfm
        product_name: CNF of the tests
        software_version: '1.0'
        descriptor_version: '1.0'
        vnfm_info: [vnfm]
`

const nodeTypes = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [sol001_types.yaml]
node_types:
  vnfm.test.CNF:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      descriptor_id: {type: string, default: VNFD-ID}
      descriptor_version: {type: string, default: '1.0'}
      provider: {type: string, default: vnfm}
      product_name: {type: string, default: CNF of the tests}
      software_version: {type: string, default: '1.0'}
      vnfm_info: {type: list, entry_schema: {type: string}, default: [vnfm]}
      flavour_id: {type: string, constraints: [{valid_values: [simple, steps]}], default: simple}
      flavour_description: {type: string, default: ''}
`

const flavour = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [sol001_types.yaml, types.yaml]
topology_template:
  inputs:
    descriptor_id: {type: string}
    descriptor_version: {type: string}
    provider: {type: string}
    product_name: {type: string}
    software_version: {type: string}
    vnfm_info: {type: list, entry_schema: {type: string}}
    flavour_id: {type: string}
    flavour_description: {type: string}
  substitution_mappings:
    node_type: vnfm.test.CNF
    properties: {flavour_id: FLAVOUR}
  node_templates:
    VNF: {type: vnfm.test.CNF, properties: {flavour_description: FLAVOUR}}
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: vdu1, description: the first, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 5}}
    VDU2:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: vdu2, description: the second, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}}
  policies:
  - aspects:
      type: tosca.policies.nfv.ScalingAspects
      properties: {aspects: {vdu1_aspect: {name: vdu1_aspect, description: of vdu1, max_scale_level: 2, step_deltas: [delta_1]}}}
  - initial:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {initial_delta: {number_of_instances: 1}}
      targets: [VDU1]
  - deltas:
      type: tosca.policies.nfv.VduScalingAspectDeltas
      properties: {aspect: vdu1_aspect, deltas: {delta_1: {number_of_instances: DELTA}}}
      targets: [VDU1]
  - levels:
      type: tosca.policies.nfv.InstantiationLevels
      properties:
        levels:
          small: {description: small, scale_info: {vdu1_aspect: {scale_level: 0}}}
          large: {description: large, scale_info: {vdu1_aspect: {scale_level: 2}}}
        default_level: small
  - levels_vdu1:
      type: tosca.policies.nfv.VduInstantiationLevels
      properties: {levels: {small: {number_of_instances: 1}, large: {number_of_instances: MOST}}}
      targets: [VDU1]
`

// ourPackage onboards a package of manifests by their paths, and returns its VNFD's id.
func (w *world) ourPackage(t *testing.T, manifests map[string]string) string {
	t.Helper()
	id := uuid.NewString()
	sample, err := deploy.Files("multi-port")
	must(t, err)
	files := map[string][]byte{
		"Definitions/sol001_types.yaml": sample["Definitions/sol001_types.yaml"],
		"Definitions/top.vnfd.yaml":     []byte(strings.ReplaceAll(topNode, "VNFD-ID", id)),
		"Definitions/types.yaml":        []byte(strings.ReplaceAll(nodeTypes, "VNFD-ID", id)),
	}
	for name, delta := range map[string]int{"simple": 1, "steps": 2} {
		files["Definitions/df_"+name+".yaml"] = []byte(strings.NewReplacer("FLAVOUR", name, "DELTA", fmt.Sprint(delta), "MOST", fmt.Sprint(1+2*delta)).Replace(flavour))
	}
	meta := "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-by: vnfm\nEntry-Definitions: Definitions/top.vnfd.yaml\n"
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		files[name] = []byte(manifests[name])
		meta += "\nName: " + name + "\nContent-Type: application/yaml\nAlgorithm: SHA-256\nHash: 0\n"
	}
	files["TOSCA-Metadata/TOSCA.meta"] = []byte(meta)
	csartest.FixHashes(files)
	w.onboard(t, csartest.Zip(t, files))
	return id
}

func (w *world) onboard(t *testing.T, zip []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := w.api.Onboard(ctx, zip)
	must(t, err)
}

// outside onboards a package from outside, completed by what cnf_scale has of the same VNF; "" when there is none.
func (w *world) outside(t *testing.T, name string) (id string, manifests map[string]string) {
	t.Helper()
	root := os.Getenv(harness.SamplesEnv)
	if root == "" {
		t.Logf("%s is not set: the package %s from outside is not tried", harness.SamplesEnv, name)
		return "", nil
	}
	id, manifests = uuid.NewString(), map[string]string{}
	files := csartest.Files(t, filepath.Join(root, "cnf_scale"))
	for p, data := range csartest.Files(t, filepath.Join(root, "common", "Definitions")) {
		files[path.Join("Definitions", p)] = data
	}
	maps.Copy(files, csartest.Files(t, filepath.Join(root, name)))
	for p, data := range files {
		if strings.HasPrefix(p, "Definitions/") {
			files[p] = []byte(strings.ReplaceAll(string(data), "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177", id))
		}
		if strings.HasPrefix(p, "Files/kubernetes/") {
			manifests[p] = string(data)
		}
	}
	csartest.FixHashes(files)
	w.onboard(t, csartest.Zip(t, files))
	return id, manifests
}

// vnf is a VNF instance on the control plane.
type vnf struct {
	*world
	t   *testing.T
	id  string
	vim string
	ns  string // where its objects are to be
	now *sol003.VnfInstance
}

func (w *world) create(t *testing.T, vnfdID, vim, ns string) *vnf {
	t.Helper()
	i, err := w.api.CreateInstance(t.Context(), vnfdID)
	must(t, err)
	return &vnf{world: w, t: t, id: i.Id, vim: vim, ns: ns, now: i}
}

// start asks for the instantiation and returns the op occ's id.
func (v *vnf) start(flavour string, params doc) string {
	v.t.Helper()
	op, err := v.api.Task(v.t.Context(), v.id, "instantiate", v.request(flavour, params))
	must(v.t, err)
	return op
}

func (v *vnf) request(flavour string, params doc) doc {
	return doc{
		"flavourId": flavour, "additionalParams": params,
		"vimConnectionInfo": []any{doc{"id": uuid.NewString(), "vimId": v.vim, "vimType": "kubernetes"}},
	}
}

// task asks for a task and returns the op occ's id.
func (v *vnf) task(name string, body any) string {
	v.t.Helper()
	op, err := v.api.Task(v.t.Context(), v.id, name, body)
	must(v.t, err)
	return op
}

// ends waits until an operation has come to a state, and reads the instance.
func (v *vnf) ends(op string, want sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	o, err := v.api.AwaitOpOcc(ctx, op)
	must(v.t, err)
	if o.OperationState != want {
		v.t.Fatalf("%s is %s, not %s: %+v\n%s", o.Operation, o.OperationState, want, o.Error, v.cluster.Nodes[0].LogTail(15))
	}
	v.now, err = v.api.Instance(ctx, v.id)
	must(v.t, err)
	return o
}

func (v *vnf) completes(op string) *sol003.VnfLcmOpOcc {
	v.t.Helper()
	return v.ends(op, sol003.LcmOperationStateCompleted)
}

// fails waits until an operation has failed, and looks for texts in what it says.
func (v *vnf) fails(op string, texts ...string) *sol003.VnfLcmOpOcc {
	v.t.Helper()
	o := v.ends(op, sol003.LcmOperationStateFailedTemp)
	for _, text := range texts {
		if o.Error == nil || !strings.Contains(o.Error.Detail, text) {
			v.t.Errorf("the error does not say %q: %+v", text, o.Error)
		}
	}
	return o
}

// rollsBack has a failed operation undone.
func (v *vnf) rollsBack(op string) {
	v.t.Helper()
	must(v.t, v.api.OpOccTask(v.t.Context(), op, "rollback", nil))
	v.ends(op, sol003.LcmOperationStateRolledBack)
}

// terminates has the VNF terminated and deleted.
func (v *vnf) terminates(how string) {
	v.t.Helper()
	body := doc{"terminationType": how}
	if how == "GRACEFUL" {
		body["gracefulTerminationTimeout"] = 1
	}
	v.completes(v.task("terminate", body))
	if v.now.InstantiationState != sol003.InstantiationStateNotInstantiated {
		v.t.Errorf("the terminated instance is %s", v.now.InstantiationState)
	}
	must(v.t, v.api.DeleteInstance(v.t.Context(), v.id))
}

// members returns the pods of a VDU as the instance has them, by VNFC.
func (v *vnf) members(vdu string) map[string]string {
	out := map[string]string{}
	if v.now.InstantiatedVnfInfo == nil {
		return out
	}
	for _, c := range v.now.InstantiatedVnfInfo.VnfcResourceInfo {
		if c.VduId == vdu {
			out[c.Id] = c.ComputeResource.ResourceId
		}
	}
	return out
}
