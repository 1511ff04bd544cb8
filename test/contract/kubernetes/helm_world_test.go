package kubernetes_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// helmManager starts a manager that has a helm, and may fetch charts from this machine.
func helmManager(t *testing.T, plane *lab.Plane, wait, helm string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	cluster, err := harness.Start(ctx, harness.Options{OpenStack: &harness.OpenStack{}, Env: []string{
		"VNFM_KUBERNETES_READY_TIMEOUT=" + wait, "VNFM_KUBERNETES_DELETE_TIMEOUT=" + longWait,
		"VNFM_KUBERNETES_POLL_MIN=50ms", "VNFM_KUBERNETES_POLL_MAX=300ms", "VNFM_KUBERNETES_HELM_BINARY=" + helm,
		"VNFM_KUBERNETES_HELM_TIMEOUT=300s", "VNFM_KUBERNETES_URI_HOSTS=127.0.0.1", "VNFM_KUBERNETES_URI_ALLOW=127.0.0.1",
	}})
	must(t, err)
	objects, err := dynamic.NewForConfig(plane.Config())
	must(t, err)
	return &world{Plane: plane, api: cluster.API(0), cluster: cluster, objects: objects}
}

// helmWorld returns the manager with the lab's helm whose waits are so long. All tests share it.
func helmWorld(t *testing.T, wait string) *world {
	t.Helper()
	plane := lab.Start(t)
	managers.mu.Lock()
	defer managers.mu.Unlock()
	if w := managers.by["helm "+wait]; w != nil {
		return w
	}
	w := helmManager(t, plane, wait, labHelm(t))
	if managers.by == nil {
		managers.by = map[string]*world{}
	}
	managers.by["helm "+wait] = w
	return w
}

func labHelm(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	path, err := lab.Helm(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	must(t, err)
	return path
}

// chart returns the archive of a chart of testdata, with texts of its files replaced: old, new, old, new…
func chart(t *testing.T, name string, replace ...string) []byte {
	t.Helper()
	raw, err := harness.Chart(os.DirFS("testdata/charts/"+name), name, strings.NewReplacer(replace...))
	must(t, err)
	return raw
}

// chartPackage onboards a package with the chart, and returns its VNFD's id.
func (w *world) chartPackage(t *testing.T, replace ...string) string {
	t.Helper()
	return w.ourPackage(t, map[string]string{chartPath: string(chart(t, "web", replace...))})
}

const chartPath = "Files/charts/web-1.0.0.tgz"

// fromPackage are the parameters of a VNF of the package's chart.
func fromPackage(ns, release string, values ...string) doc {
	return doc{
		"use_helm": "true", "namespace": ns, "helm_replica_values": doc{"vdu1_aspect": "replicas"},
		"using_helm_install_param": []any{doc{
			"exthelmchart": "false", "helmchartfile_path": chartPath, "helmreleasename": release, "helmparameter": values,
		}},
	}
}

// repository serves the chart in versions, and an index.
func repository(t *testing.T, versions ...string) *httptest.Server {
	t.Helper()
	files := map[string][]byte{}
	index := "apiVersion: v1\nentries:\n  web:\n"
	for _, v := range versions {
		raw := chart(t, "web", "version: 1.0.0", "version: "+v, "image: web:1", "image: web:"+v)
		sum := sha256.Sum256(raw)
		name := "web-" + v + ".tgz"
		files["/charts/"+name] = raw
		index += fmt.Sprintf("  - {apiVersion: v2, name: web, version: %s, urls: [%s], digest: %s}\n", v, name, hex.EncodeToString(sum[:]))
	}
	files["/charts/index.yaml"] = []byte(index)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		raw, ok := files[path.Clean(req.URL.Path)]
		if !ok {
			http.NotFound(rw, req)
			return
		}
		_, _ = rw.Write(raw)
	}))
	t.Cleanup(s.Close)
	return s
}

// releaseOf returns the status of each revision of a release, "" when there is no release.
func (w *world) releaseOf(t *testing.T, ns, name string) string {
	t.Helper()
	list, err := w.Client.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	must(t, err)
	var out []string
	for _, s := range list.Items {
		out = append(out, s.Labels["version"]+" "+s.Labels["status"])
	}
	return strings.Join(out, ", ")
}

// left returns what is in a namespace, of the kinds that the chart has, of a release.
func (w *world) left(t *testing.T, ns string) []string {
	t.Helper()
	var out []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "PersistentVolumeClaim"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Secret"},
	} {
		list, err := w.objects.Resource(kind.GroupVersion().WithResource(plural(kind.Kind))).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, o := range list.Items {
			if o.GetName() != "kube-root-ca.crt" {
				out = append(out, kind.Kind+"/"+o.GetName())
			}
		}
	}
	for _, name := range w.podsIn(t, ns) {
		out = append(out, "Pod/"+name)
	}
	return out
}

func (v *vnf) nothingLeft() {
	v.t.Helper()
	if left := v.left(v.t, v.ns); len(left) > 0 {
		v.t.Errorf("left behind: %v", left)
	}
}

// counts checks how many VNFCs a VDU has; hooks' pods are none.
func (v *vnf) counts(vdu string, want int) {
	v.t.Helper()
	if got := v.members(vdu); len(got) != want {
		v.t.Errorf("%s is %v, and is to be %d", vdu, got, want)
	}
}

// resizes scales a VNF that has other pods besides VDU1's.
func (v *vnf) resizes(kind string, steps, pods int) {
	v.t.Helper()
	v.completes(v.task("scale", doc{"type": kind, "aspectId": "vdu1_aspect", "numberOfSteps": steps}))
	v.counts("VDU1", pods)
}
