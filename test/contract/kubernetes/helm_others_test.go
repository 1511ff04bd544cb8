package kubernetes_test

import (
	"context"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestHelmForeignHook: helm would delete what is where a hook is to be made; what is somebody else's is refused, and stays, and so does
// what somebody else has made there since.
func TestHelmForeignHook(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	id := w.chartPackage(t)
	jobs := w.Client.BatchV1().Jobs(ns)
	theirs := func() string {
		t.Helper()
		job, err := jobs.Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "hooked-hook", Annotations: map[string]string{"helm.sh/hook": "pre-install"}},
			Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a:1"}},
			}}},
		}, metav1.CreateOptions{})
		must(t, err)
		return string(job.UID)
	}
	stays := func(uid string) {
		t.Helper()
		if job, err := jobs.Get(t.Context(), "hooked-hook", metav1.GetOptions{}); err != nil || string(job.UID) != uid || job.DeletionTimestamp != nil {
			t.Errorf("somebody else's Job: %v %v", job, err)
		}
	}
	removed := func() {
		t.Helper()
		must(t, jobs.Delete(t.Context(), "hooked-hook", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
		must(t, eventually(t, func(ctx context.Context) (bool, error) {
			_, err := jobs.Get(ctx, "hooked-hook", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}))
	}
	uid := theirs()
	v := w.create(t, id, vim, ns)
	op := v.start("simple", fromPackage(ns, "hooked", "hook.at=pre-install"))
	v.fails(op, "Job "+ns+"/hooked-hook exists", "is not of this VNF instance's Helm release hooked")
	stays(uid)
	v.rollsBack(op)
	stays(uid)

	removed()
	v = w.create(t, id, vim, ns)
	v.completes(v.start("simple", fromPackage(ns, "hooked", "hook.at=pre-install")))
	removed() // ours
	uid = theirs()
	v.terminates("GRACEFUL")
	stays(uid)
	removed()

	// What a hook has made goes with the VNF.
	v = w.create(t, id, vim, ns)
	v.completes(v.start("simple", fromPackage(ns, "hooked", `hook.at=pre-install\,pre-upgrade\,pre-delete`)))
	v.resizes("SCALE_OUT", 1, 2)
	v.completes(v.task("heal", doc{}))
	v.counts("VDU1", 2)
	v.terminates("GRACEFUL")
	v.nothingLeft()
}

// TestHelmSaysGone: helm says of a release that it cannot read that there is none; the VNF is terminated only once it is gone.
func TestHelmSaysGone(t *testing.T) {
	t.Parallel()
	plane := lab.Start(t)
	dir := t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = uninstall ] && [ ! -e " + dir + "/said ]; then : > " + dir + "/said; exit 0; fi\nexec " + labHelm(t) + " \"$@\"\n"
	must(t, os.WriteFile(dir+"/helm", []byte(script), 0o700)) //nolint:gosec // it is to be run
	w := helmManager(t, plane, longWait, dir+"/helm")
	t.Cleanup(w.cluster.Close)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	v.completes(v.start("simple", fromPackage(ns, "says")))
	v.terminates("FORCEFUL")
	v.nothingLeft()
	if _, err := os.Stat(dir + "/said"); err != nil {
		t.Error(err)
	}
}

// TestHelmGoneKind: a release one of whose kinds is not there any more is removed all the same, with what helm has kept of it.
func TestHelmGoneKind(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	ns := w.Namespace(t, "gone")
	definition := &unstructured.Unstructured{Object: doc{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": doc{"name": "parts.gone.example.org"},
		"spec": doc{
			"group": "gone.example.org", "scope": "Namespaced", "names": doc{"plural": "parts", "singular": "part", "kind": "Part"},
			"versions": []any{doc{
				"name": "v1", "served": true, "storage": true,
				"schema": doc{"openAPIV3Schema": doc{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	definitions := w.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	parts := w.objects.Resource(schema.GroupVersionResource{Group: "gone.example.org", Version: "v1", Resource: "parts"}).Namespace(ns)
	_, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = definitions.Delete(context.Background(), definition.GetName(), metav1.DeleteOptions{}) })
	served := func(want bool) {
		t.Helper()
		must(t, eventually(t, func(ctx context.Context) (bool, error) {
			_, err := parts.List(ctx, metav1.ListOptions{})
			return (err == nil) == want, nil
		}))
	}
	served(true)
	settings := "data: {setting: {{ .Values.setting | quote }}}"
	part := "\n---\napiVersion: gone.example.org/v1\nkind: Part\nmetadata: {name: part}"
	// Charts may ask for a kind.
	asks := "\n{{- if .Capabilities.APIVersions.Has \"gone.example.org/v1/Part\" }}" + part + "\n{{- end }}"
	v := w.create(t, w.chartPackage(t, settings, settings+asks), w.administrator(t), ns)
	v.completes(v.start("simple", fromPackage(ns, "gone")))
	_, err = parts.Get(t.Context(), "part", metav1.GetOptions{})
	must(t, err)
	v.drifts()
	must(t, definitions.Delete(t.Context(), definition.GetName(), metav1.DeleteOptions{}))
	served(false)
	v.terminates("FORCEFUL")
	v.nothingLeft()
	if got := w.releaseOf(t, ns, "gone"); got != "" {
		t.Errorf("helm has kept %s", got)
	}
	if !strings.Contains(w.cluster.Logs(), "a Helm release is removed without helm") {
		t.Error("the server does not say why it does without helm")
	}
}
