package kubernetes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestHelmRefusals has charts and parameters that cannot be: what is wrong is told, and nothing has been made, or nothing is left.
func TestHelmRefusals(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, shortWait)
	const ns = "NAMESPACE"
	id := w.chartPackage(t)
	repo := repository(t, "1.0.0")
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "index.yaml") {
			_, _ = rw.Write([]byte("entries: {web: [{version: 1.0.0, urls: [web.tgz], digest: " + strings.Repeat("0", 64) + "}]}"))
			return
		}
		_, _ = rw.Write([]byte("no archive"))
	}))
	t.Cleanup(broken.Close)
	external := func(at string, more doc) doc {
		item := doc{"exthelmchart": "true", "helmchartname": "web", "exthelmrepo_url": at, "helmreleasename": "no", "helmparameter": []any{}}
		for key, v := range more {
			item[key] = v
		}
		return doc{"use_helm": "true", "namespace": ns, "using_helm_install_param": []any{item}}
	}
	without := func(key string) doc {
		params := fromPackage(ns, "no")
		delete(params["using_helm_install_param"].([]any)[0].(doc), key)
		return params
	}
	noAspect := fromPackage(ns, "no")
	noAspect["helm_replica_values"] = doc{"other": "replicas"}
	otherFile := fromPackage(ns, "no")
	otherFile["using_helm_install_param"].([]any)[0].(doc)["helmchartfile_path"] = "Files/charts/other.tgz"
	for name, tt := range map[string]struct {
		params doc
		says   []string
	}{
		"does not render":      {fromPackage(ns, "no", "broken=true"), []string{"release no", "this chart is broken"}},
		"another namespace":    {fromPackage(ns, "no", "foreign=kube-system"), []string{"ConfigMap elsewhere for namespace kube-system", ns}},
		"a kind nobody knows":  {fromPackage(ns, "no", "kind=Gadget"), []string{"Gadget"}},
		"a hook that fails":    {fromPackage(ns, "no", "hook.at=pre-install", "hook.fails=true"), []string{"install release no", "pre-install"}},
		"no charts":            {doc{"use_helm": "true", "namespace": ns}, []string{"Parameter input values missing for the key 'using_helm_install_param'"}},
		"no path":              {without("helmchartfile_path"), []string{"Parameter input values missing for the key 'helmchartfile_path'"}},
		"no exthelmchart":      {without("exthelmchart"), []string{"Parameter input values missing for the key 'exthelmchart'"}},
		"no such file":         {otherFile, []string{"Files/charts/other.tgz", "not found in vnf_artifacts"}},
		"an aspect is missing": {noAspect, []string{"Replica value for aspectId 'vdu1_aspect' is missing"}},
		"no such name":         {fromPackage(ns, "No_Name"), []string{"No_Name"}},
		"no such version":      {external(repo.URL+"/charts", doc{"helmchartversion": "7.7.7"}), []string{"no version 7.7.7 of chart web"}},
		"no such chart":        {external(repo.URL+"/charts", doc{"helmchartname": "db"}), []string{"has no chart db"}},
		"no such repository":   {external(repo.URL+"/nothing", nil), []string{"404"}},
		"repository away":      {external(away.URL, nil), []string{"cannot be fetched", "connection refused"}},
		"another archive":      {external(broken.URL, nil), []string{"SHA-256"}},
		"host not allowed":     {external("http://charts.example.com/stable", nil), []string{"charts.example.com"}},
		"not HTTP":             {external("file:///etc", nil), []string{"not an http or https URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vim, own := w.tenant(t)
			params := tt.params
			params["namespace"] = own
			v := w.create(t, id, vim, own)
			op := v.start("simple", params)
			for n := range tt.says {
				tt.says[n] = strings.ReplaceAll(tt.says[n], ns, own)
			}
			v.fails(op, tt.says...)
			if name != "a hook that fails" {
				v.nothingLeft()
			}
			v.rollsBack(op)
			v.nothingLeft()
		})
	}
}

// TestHelmForeign: a release of the name and objects of the names that somebody else has made are refused, and not touched by the
// rollback.
func TestHelmForeign(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	id := w.chartPackage(t)
	other := w.create(t, id, vim, ns)
	other.completes(other.start("simple", fromPackage(ns, "taken")))
	before := w.chartVersions(t, ns)

	v := w.create(t, id, vim, ns)
	op := v.start("simple", fromPackage(ns, "taken"))
	v.fails(op, "Helm release taken exists in namespace "+ns, "is not of this VNF instance")
	v.rollsBack(op)
	must(t, v.api.DeleteInstance(t.Context(), v.id))

	v = w.create(t, id, vim, ns) // another name, the same Deployment
	op = v.start("simple", fromPackage(ns, "fresh"))
	v.fails(op, "Deployment "+ns+"/vdu1", "is not of this VNF instance")
	v.rollsBack(op)
	if after := w.chartVersions(t, ns); !slices.Equal(before, after) {
		t.Errorf("somebody else's objects were %v and are %v", before, after)
	}

	// What is somebody else's by now stays when the VNF is terminated.
	must(t, w.Client.CoreV1().Secrets(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm,name=taken"}))
	other.drifts("MISSING VNF")
	foreign := "sh.helm.release.v1.taken.v1"
	_, err := w.Client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: foreign, Labels: map[string]string{"owner": "helm", "name": "taken", "version": "1", "status": "deployed"},
	}}, metav1.CreateOptions{})
	must(t, err)
	other.drifts("CHANGED VNF")
	other.terminates("FORCEFUL")
	if got := w.releaseOf(t, ns, "taken"); got != "1 deployed" {
		t.Errorf("somebody else's release is %s", got)
	}
}

// TestHelmRights: a right that is lacking is told before anything is made.
func TestHelmRights(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	ns := w.Namespace(t, "rights")
	account, err := w.Tenant(t.Context(), ns, "user", rbacv1.PolicyRule{
		APIGroups: []string{"", "apps", "batch"}, Resources: []string{"configmaps", "deployments", "pods", "jobs"}, Verbs: []string{"*"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}})
	must(t, err)
	token, err := w.Token(t.Context(), account)
	must(t, err)
	v := w.create(t, w.chartPackage(t), w.register(t, token, ns), ns)
	op := v.start("simple", fromPackage(ns, "rights"))
	v.fails(op, "create secrets in namespace "+ns, "nothing has been done")
	v.nothingLeft()
}

// TestHelmMissing: without helm, or with one of another major version, it is told what to do; doctor says so as well.
func TestHelmMissing(t *testing.T) {
	t.Parallel()
	plane := lab.Start(t)
	w := helmManager(t, plane, shortWait, "/nowhere/helm")
	t.Cleanup(w.cluster.Close)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	op := v.start("simple", fromPackage(ns, "missing"))
	v.fails(op, "there is no program /nowhere/helm", "kubernetes.helm.binary")
	v.rollsBack(op)
}

// TestHelmKilled kills the manager, and with it helm, while helm waits for a hook: of an installation, of an upgrade. What is left
// pending is gone on with. helm does not outlive the manager.
func TestHelmKilled(t *testing.T) {
	t.Parallel()
	plane := lab.Start(t)
	helm := labHelm(t)
	w := helmManager(t, plane, longWait, helm)
	t.Cleanup(w.cluster.Close)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	node := w.cluster.Nodes[0]

	dies := func(op, pending string) {
		t.Helper()
		must(t, eventually(t, func(context.Context) (bool, error) {
			jobs, err := w.Client.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
			return strings.Contains(w.releaseOf(t, ns, "killed"), pending) && err == nil && len(jobs.Items) == 1 && jobs.Items[0].DeletionTimestamp == nil, err
		}))
		node.Kill()
		must(t, eventually(t, func(context.Context) (bool, error) {
			out, _ := exec.CommandContext(t.Context(), "ps", "axww", "-o", "args").Output()
			return !strings.Contains(string(out), "--namespace="+ns+" "), nil
		}))
		_, err := w.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gate"}}, metav1.CreateOptions{})
		must(t, err)
		must(t, node.Restart(t.Context()))
		v.completes(op)
		must(t, w.Client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "gate", metav1.DeleteOptions{}))
	}
	op := v.start("simple", fromPackage(ns, "killed", `hook.at=pre-install\,pre-upgrade`, "hook.gate=gate"))
	dies(op, "1 pending-install")
	v.counts("VDU1", 1)
	if got := w.releaseOf(t, ns, "killed"); got != "1 deployed" {
		t.Errorf("the release is %s", got)
	}
	op = v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	dies(op, "pending-upgrade")
	v.counts("VDU1", 2)
	if got := w.releaseOf(t, ns, "killed"); !strings.HasSuffix(got, "deployed") {
		t.Errorf("the release is %s", got)
	}
	v.terminates("GRACEFUL")
	v.nothingLeft()
}

// TestHelmCanceled cancels an installation that waits for a hook: helm is ended at once, and the rollback leaves nothing.
func TestHelmCanceled(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	op := v.start("simple", fromPackage(ns, "canceled", "hook.at=pre-install", "hook.gate=never"))
	must(t, eventually(t, func(context.Context) (bool, error) {
		return w.releaseOf(t, ns, "canceled") == "1 pending-install" && len(w.podsIn(t, ns)) == 1, nil
	}))
	begun := time.Now()
	must(t, v.api.OpOccTask(t.Context(), op, "cancel", doc{"cancelMode": "FORCEFUL"}))
	v.ends(op, sol003.LcmOperationStateFailedTemp)
	t.Log("canceled after", time.Since(begun))
	v.rollsBack(op)
	v.nothingLeft()
}

// chartVersions returns the resource versions of a namespace's objects of the chart's kinds.
func (w *world) chartVersions(t *testing.T, ns string) []string {
	t.Helper()
	var out []string
	deployments, err := w.Client.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range deployments.Items {
		out = append(out, "Deployment "+o.Name+" "+o.ResourceVersion)
	}
	configs, err := w.Client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range configs.Items {
		out = append(out, "ConfigMap "+o.Name+" "+o.ResourceVersion)
	}
	secrets, err := w.Client.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range secrets.Items {
		out = append(out, "Secret "+o.Name+" "+o.ResourceVersion)
	}
	return out
}
