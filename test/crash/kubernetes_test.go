package crash

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// The packages of the CNF: what an instance is given at first, and what it is given later.
const (
	firstContent, nextContent = "first", "next"
	firstID, nextID           = "5a1f3c0e-95a7-4e64-9a3e-d1f7a7c10001", "5a1f3c0e-95a7-4e64-9a3e-d1f7a7c10002"
)

// TestCrashOfCNFs does with CNFs on a Kubernetes control plane what [TestCrash] does with VNFs on OpenStack; the points include
// what is before and after every call that changes something there. One control plane serves all lanes, each in a namespace of
// its own, which it shares with others' objects.
func TestCrashOfCNFs(t *testing.T) {
	control := lab.Start(t)
	zip := cnfPackage(t, firstContent, firstID)
	next := cnfPackage(t, nextContent, nextID)
	cnf := func(vdu string) sample {
		return sample{
			name: "cnf", flavour: "default", pack: func(string) ([]byte, error) { return zip, nil },
			servers: 2, grows: 2, ceases: true, aspect: "size", vdu: vdu, content: firstContent,
		}
	}
	everyPoint(t, &stage{
		options: harness.Options{OpenStack: &harness.OpenStack{}, Env: []string{
			"VNFM_KUBERNETES_READY_TIMEOUT=10m", "VNFM_KUBERNETES_DELETE_TIMEOUT=10m",
			"VNFM_KUBERNETES_POLL_MIN=50ms", "VNFM_KUBERNETES_POLL_MAX=300ms",
		}},
		open: func(ctx context.Context, _ *lane) (cloud, error) {
			p, err := openPlane(ctx, control, next)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		acts:    cnfActs,
		samples: map[int]sample{1: cnf("DB"), 3: cnf("WEB")},
		lanes:   map[int]int{1: 3, 3: 5},
		essential: []string{
			"INSTANTIATE/infra:leftovers/before", "INSTANTIATE/infra:manifests/after", "INSTANTIATE/infra:access/after", "INSTANTIATE/infra:apply/before",
			"INSTANTIATE/infra:apply/recorded", "INSTANTIATE/infra:ready/after", "INSTANTIATE/infra:inventory/after", "INSTANTIATE/finish/recorded",
			"call:PATCH:configmaps:settings/before", "call:PATCH:secrets:keys/after", "call:PATCH:services:web/after",
			"call:PATCH:deployments:web/before", "call:PATCH:statefulsets:db/after",
			"SCALE/infra:scale/recorded", "SCALE/infra:scale-wait/after", "call:PATCH:deployments:web:scale/after", "call:PATCH:statefulsets:db:scale/before",
			"SCALE_TO_LEVEL/infra:scale/recorded", "SCALE_TO_LEVEL/infra:inventory/after",
			"HEAL/infra:pods-look/after", "HEAL/infra:prune/recorded", "HEAL/infra:pods-delete/recorded", "call:DELETE:pods/before", "call:DELETE:pods/after",
			"HEAL/infra:respawn-check/after", "HEAL/infra:respawn-delete/recorded", "HEAL/infra:apply/recorded", "HEAL/infra:ready/after",
			"OPERATE/infra:operate/recorded", "OPERATE/infra:operate-wait/after", "MODIFY_INFO/finish/before",
			"TERMINATE/infra:delete/before", "TERMINATE/infra:delete/recorded", "TERMINATE/finish/recorded",
			"call:DELETE:deployments:web/before", "call:DELETE:statefulsets:db/after", "call:DELETE:persistentvolumeclaims:data-db-0/after",
			"call:DELETE:services:web/after", "call:DELETE:configmaps:settings/before", "call:DELETE:configmaps:of-first/after",
			"ROLLBACK-INSTANTIATE/infra:rollback-delete/recorded", "ROLLBACK-SCALE/infra:rollback-scale/recorded", "ROLLBACK-OPERATE/infra:rollback-operate/recorded",
			"ROLLBACK-SCALE/rolled-back/recorded", "PROCESSING/accept/after", "ROLLING_BACK/accept/after", "CANCEL/accept/after",
		},
	})
}

// cnfPackage makes a package of the CNF, with one content and one descriptor id; in it are manifests and a chart.
func cnfPackage(t *testing.T, content, id string) []byte {
	t.Helper()
	files := csartest.Files(t, "testdata/cnf")
	texts := strings.NewReplacer("CONTENT", content, "DESCRIPTOR", id)
	for name, data := range files {
		files[name] = []byte(texts.Replace(string(data)))
	}
	archive, err := harness.Chart(os.DirFS("testdata/chart"), "cnf", texts)
	if err != nil {
		t.Fatal(err)
	}
	files[chartPath] = archive
	standard, err := deploy.Files("multi-port")
	if err != nil {
		t.Fatal(err)
	}
	files["Definitions/sol001_types.yaml"] = standard["Definitions/sol001_types.yaml"]
	csartest.FixHashes(files)
	return csartest.Zip(t, files)
}

// The kinds that are looked at: those of the CNF, and those that it is known to have others make.
var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulsets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	replicasets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	configmaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

	kinds = []schema.GroupVersionResource{deployments, statefulsets, replicasets, configmaps, secrets, services, claims, pods}
)

const (
	instanceLabel = "vnfm/instance"
	strangerLabel = "vnfm.test/stranger" // what the test has made
	fieldManager  = "somebody-else"
)

// plane is a namespace of a control plane as a cloud.
type plane struct {
	control   *lab.Plane
	objects   dynamic.Interface
	ns, other string // where the CNF is to be, and where nothing is to come
	token     string
	zip       []byte // the package that is given later

	next, nextID string // its content, and its VNFD

	charted bool // the CNF is made of a chart

	stop context.CancelFunc

	mu      sync.Mutex
	there   map[string]string // others' objects, as "resource namespace/name", with their uids and resource versions
	seen    map[types.UID]bool
	came    map[string]int     // what has come, by its kind
	leaving map[types.UID]bool // what is on its way out
	touched []string           // what has become of others' objects
}

// openPlane makes a lane's namespaces, with objects of others in them.
func openPlane(ctx context.Context, control *lab.Plane, zip []byte) (_ *plane, err error) {
	p := &plane{control: control, zip: zip, next: nextContent, seen: map[types.UID]bool{}, came: map[string]int{}, leaving: map[types.UID]bool{}, stop: func() {}}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.objects, err = dynamic.NewForConfig(control.Config()); err != nil {
		return nil, err
	}
	if p.ns, err = control.CreateNamespace(ctx, "crash"); err != nil {
		return nil, err
	}
	if p.other, err = control.CreateNamespace(ctx, "neighbour"); err != nil {
		return nil, err
	}
	account, err := control.Tenant(ctx, p.ns, "tenant")
	if err != nil {
		return nil, err
	}
	if p.token, err = control.Token(ctx, account); err != nil {
		return nil, err
	}
	if err := p.settleStrangers(ctx); err != nil {
		return nil, err
	}
	return p, p.watch(ctx)
}

func (p *plane) close() {
	p.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, ns := range []string{p.ns, p.other} {
		if ns != "" {
			_ = p.control.Client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}) // nobody waits for it
		}
	}
}

// register implements cloud: the VIM, and the package that is given later.
func (p *plane) register(ctx context.Context, api *harness.Client) (string, error) {
	var out struct {
		Vim struct {
			ID string `json:"id"`
		} `json:"vim"`
	}
	if _, err := api.Call(ctx, http.MethodPost, "/v1.0/vims", map[string]any{"vim": map[string]any{
		"auth_url": p.control.URL, "type": "kubernetes", "name": "VIM0", "is_default": false,
		"vim_project": map[string]any{"name": p.ns},
		"auth_cred":   map[string]any{"bearer_token": p.token, "ssl_ca_cert": string(p.control.CA)},
	}}, &out); err != nil {
		return "", err
	}
	pkg, err := api.Onboard(ctx, p.zip)
	if err != nil {
		return "", err
	}
	p.nextID = pkg.VnfdId
	return out.Vim.ID, nil
}

// strange is what others have: in the CNF's namespace under other names, and in another namespace under the CNF's own.
const strange = `
apiVersion: v1
kind: ConfigMap
metadata: {name: PREFIXsettings}
data: {greeting: others}
---
apiVersion: v1
kind: Secret
metadata: {name: PREFIXkeys}
stringData: {key: others}
---
apiVersion: v1
kind: Service
metadata: {name: PREFIXweb}
spec: {selector: {app: others}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: PREFIXdata-db-0}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: PREFIXweb}
spec:
  replicas: 1
  selector: {matchLabels: {app: others}}
  template:
    metadata: {labels: {app: others, vnfm.test/stranger: "true"}}
    spec: {containers: [{name: a, image: 'a:1'}]}
`

// settleStrangers makes others' objects and remembers how they are once they are settled.
func (p *plane) settleStrangers(ctx context.Context) error {
	for ns, prefix := range map[string]string{p.ns: "web-", p.other: ""} {
		for _, text := range strings.Split(strings.ReplaceAll(strange, "PREFIX", prefix), "\n---") {
			if err := p.apply(ctx, ns, text); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("others' objects have not settled within %s", settleTime))
	defer cancel()
	var since time.Time
	return harness.Await(ctx, "others' objects are as they are to stay", func(ctx context.Context) (bool, error) {
		now := map[string]string{}
		settled := true
		for _, ns := range []string{p.ns, p.other} {
			for _, kind := range kinds {
				list, err := p.objects.Resource(kind).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: strangerLabel})
				if err != nil {
					return false, err
				}
				for n := range list.Items {
					u := &list.Items[n]
					now[kind.Resource+" "+ns+"/"+u.GetName()] = version(u)
					settled = settled && calm(u)
				}
			}
		}
		if !settled || len(now) != 2*7 || !maps.Equal(now, p.there) {
			p.there, since = now, time.Now()
			return false, nil
		}
		return time.Since(since) > time.Second, nil
	})
}

// calm tells whether nothing is to be expected of an object any more.
func calm(u *unstructured.Unstructured) bool {
	field := func(fields ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
		return v
	}
	switch u.GetKind() {
	case "Deployment":
		return field("status", "availableReplicas") == int64(1) && field("status", "observedGeneration") == u.GetGeneration()
	case "ReplicaSet":
		return field("status", "availableReplicas") == int64(1)
	case "StatefulSet":
		return field("status", "observedGeneration") == u.GetGeneration()
	case "PersistentVolumeClaim":
		return field("status", "phase") == "Bound"
	case "Pod":
		return field("status", "phase") == "Running"
	}
	return true
}

func version(u *unstructured.Unstructured) string {
	return string(u.GetUID()) + " in version " + u.GetResourceVersion()
}

// later tells whether an object is another one than that of a version, or has changed since: a watch may be behind.
func later(u *unstructured.Unstructured, was string) bool {
	uid, before, _ := strings.Cut(was, " in version ")
	then, err := strconv.ParseUint(before, 10, 64)
	now, err2 := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	return uid != string(u.GetUID()) || err != nil || err2 != nil || now > then
}

// apply makes an object of somebody else's.
func (p *plane) apply(ctx context.Context, ns, text string) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return err
	}
	u.SetLabels(map[string]string{strangerLabel: "true"})
	kind := strings.ToLower(u.GetKind()) + "s"
	n := slices.IndexFunc(kinds, func(r schema.GroupVersionResource) bool { return r.Resource == kind })
	_, err := p.objects.Resource(kinds[n]).Namespace(ns).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("make %s %s/%s: %w", u.GetKind(), ns, u.GetName(), err)
	}
	return nil
}

// strangers implements cloud.
func (p *plane) strangers(*subject) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.touched) > 0 {
		return fmt.Errorf("what is others' has been touched: %s", strings.Join(p.touched, "; "))
	}
	return nil
}

const rootCA = "kube-root-ca.crt" // every namespace has it

// theirs tells whether an object was there before, or belongs to one that was.
func theirs(u *unstructured.Unstructured) bool {
	_, marked := u.GetLabels()[strangerLabel]
	return marked || u.GetName() == rootCA
}

// watch watches both namespaces from now on, until p.stop.
func (p *plane) watch(ctx context.Context) error {
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	ends := []func(){stop}
	p.stop = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, ns := range []string{p.ns, p.other} {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(p.objects, 0, ns, nil)
		for _, kind := range kinds {
			if err := p.note(factory.ForResource(kind).Informer(), kind.Resource); err != nil {
				p.stop()
				return err
			}
		}
		factory.Start(watched.Done())
		ends = append(ends, factory.Shutdown)
		for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
			if !ok {
				p.stop()
				return fmt.Errorf("%s cannot be watched", kind.Resource)
			}
		}
	}
	return nil
}

// note has what is seen of a kind be noted: what comes, what is on its way out, and what becomes of others' objects.
func (p *plane) note(informer cache.SharedIndexInformer, kind string) error {
	look := func(obj any, gone bool) {
		u, ok := obj.(*unstructured.Unstructured)
		if unknown, lost := obj.(cache.DeletedFinalStateUnknown); lost {
			u, ok = unknown.Obj.(*unstructured.Unstructured)
		}
		if !ok || u.GetName() == rootCA {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		name := kind + " " + u.GetNamespace() + "/" + u.GetName()
		was, settled := p.there[name]
		switch {
		case settled && gone:
			p.touched = append(p.touched, name+" is gone")
		case settled && later(u, was):
			p.touched = append(p.touched, name+" was "+was+" and is "+version(u))
		case theirs(u):
		case u.GetNamespace() == p.other:
			p.touched = append(p.touched, name+" has come")
		case !p.seen[u.GetUID()]:
			p.seen[u.GetUID()] = true
			if !ofHelm(u) {
				p.came[kind]++
			}
		}
		if gone || u.GetDeletionTimestamp() == nil {
			delete(p.leaving, u.GetUID())
		} else {
			p.leaving[u.GetUID()] = true
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { look(obj, false) },
		UpdateFunc: func(_, obj any) { look(obj, false) },
		DeleteFunc: func(obj any) { look(obj, true) },
	})
	return err
}

// counted tells whether a workload's controller has seen what it is to be, and whether it has as many pods, well or not.
func counted(u *unstructured.Unstructured) bool {
	wanted, scales, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !scales {
		return true
	}
	has, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return has == wanted && seen == u.GetGeneration()
}

// settleTime is how long the cluster may take to make and to remove what is on its way.
const settleTime = 5 * time.Minute

// own lists what is in the namespace and no stranger's, by its kind, once nothing is on its way in or out and the watches have
// seen all of it.
func (p *plane) own(ctx context.Context) (map[string][]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("not within %s", settleTime))
	defer cancel()
	var out map[string][]*unstructured.Unstructured
	err := harness.Await(ctx, "nothing is on its way in or out", func(ctx context.Context) (bool, error) {
		p.mu.Lock()
		leaving := len(p.leaving)
		p.mu.Unlock()
		if leaving > 0 { // as the watches know already
			return false, nil
		}
		out = map[string][]*unstructured.Unstructured{}
		settled := true
		for _, kind := range kinds {
			list, err := p.objects.Resource(kind).Namespace(p.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for n := range list.Items {
				u := &list.Items[n]
				if theirs(u) {
					continue
				}
				p.mu.Lock()
				settled = settled && p.seen[u.GetUID()] && u.GetDeletionTimestamp() == nil
				p.mu.Unlock()
				settled = settled && counted(u)
				if replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); kind == replicasets && replicas == 0 {
					continue // a Deployment keeps those of before for a while
				}
				name := kind.Resource
				if kind == secrets && ofHelm(u) {
					name = releases
				}
				out[name] = append(out[name], u)
			}
		}
		return settled, nil
	})
	return out, err
}

// look implements cloud.
func (p *plane) look(ctx context.Context, s *subject) (*sight, error) {
	all, err := p.own(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	out := &sight{came: maps.Clone(p.came), counts: map[string]int{}, things: map[string]thing{}, all: all}
	p.mu.Unlock()
	delete(out.came, replicasets.Resource) // the cluster's own
	for kind, list := range all {
		if out.counts[kind] = len(list); kind == releases {
			delete(out.counts, kind) // how many revisions a release has is nobody's concern
		}
		for _, u := range list {
			switch kind {
			case pods.Resource:
				out.members = append(out.members, string(u.GetUID()))
			case replicasets.Resource: // the cluster's own
			case releases:
				out.release(u)
			default:
				text, err := essence(u, s)
				if err != nil {
					return nil, err
				}
				name := u.GetName()
				if s != nil {
					name = strings.ReplaceAll(name, s.content, "CONTENT")
				}
				out.things[u.GetKind()+" "+name] = thing{id: string(u.GetUID()), generation: u.GetGeneration(), text: text}
			}
		}
	}
	slices.Sort(out.members)
	return out, nil
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// essence words what an object is to be: its labels, annotations and content, without what the cluster gives it and what is
// another one each time. The content that the instance is to have is worded so, and any other as it is.
func essence(u *unstructured.Unstructured, s *subject) (string, error) {
	u = u.DeepCopy()
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, "vnfm") })
	content := map[string]any{}
	maps.Copy(content, u.Object)
	content["metadata"] = map[string]any{"labels": u.GetLabels(), "annotations": annotations}
	delete(content, "status")
	for _, given := range [][]string{
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"spec", "template", "metadata", "creationTimestamp"},
	} {
		unstructured.RemoveNestedField(content, given...)
	}
	if encoded, ok, _ := unstructured.NestedStringMap(content, "data"); ok && u.GetKind() == "Secret" {
		for key, v := range encoded {
			encoded[key] = decoded(v)
		}
		content["data"] = encoded
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	text := string(raw)
	if s != nil {
		for old, is := range map[string]string{s.id: "INSTANCE", cmp.Or(s.op, "no op"): "OPERATION", `"` + s.content + `"`: `"CONTENT"`, "web:" + s.content: "web:CONTENT"} {
			text = strings.ReplaceAll(text, old, is)
		}
	}
	return anyID.ReplaceAllString(text, "ID"), nil
}
