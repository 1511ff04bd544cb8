package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// refuses has a webhook of somebody's refuse that objects of a kind are made in a namespace.
func (w *world) refuses(t *testing.T, ns, resource, message string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusForbidden, Message: message}}
		review.Request = nil
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review)
	}))
	t.Cleanup(server.Close)
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refuses-" + ns}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "refuses.example.org", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail,
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: certificateOf(server)},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}},
	}}}
	hooks := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), hook.Name, metav1.DeleteOptions{}) })
	probe := unstructuredOf(t, strings.Replace(settings, "settings", "probe", 1))
	if resource != "configmaps" {
		probe = unstructuredOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: probe}\nspec: {containers: [{name: a, image: 'a:1'}]}\n")
	}
	must(t, eventually(t, func(ctx context.Context) (bool, error) { // the API server takes a moment to know of it
		_, err := w.of(probe, ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), message), nil
	}))
}

// TestWebhookRefuses: what a webhook refuses is told with what it says, be it an object of the CNF's or a pod of it.
func TestWebhookRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	for name, tt := range map[string]struct {
		resource string
		texts    []string
	}{
		"an object": {"configmaps", []string{"Failed to create resource. namespace: NS, name: settings, kind: ConfigMap (Files/a.yaml:", "denied the request: not on a Saturday"}},
		"a pod":     {"pods", []string{"Deployment NS/vdu1 is not ready", "denied the request: not on a Saturday"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vim, ns := w.tenant(t)
			w.refuses(t, ns, tt.resource, "not on a Saturday")
			manifest := workload("Deployment") + "---\n" + settings
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
			op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
			for n := range tt.texts {
				tt.texts[n] = strings.ReplaceAll(tt.texts[n], "NS", ns)
			}
			v.fails(op, tt.texts...)
			v.rollsBack(op)
			v.gone(manifest)
		})
	}
}

// TestThrottled: an API server that has too much to do, or whose proxy has, is asked again, and a CNF lives its life.
func TestThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	target, err := url.Parse(w.URL)
	must(t, err)
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(w.CA)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}}
	proxy.FlushInterval = -1
	var asked, refused atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch n := asked.Add(1); {
		case n%3 == 0:
			refused.Add(1)
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, "Too many requests, please try again later.", http.StatusTooManyRequests)
		case n%7 == 0:
			refused.Add(1)
			http.Error(rw, "no upstream", http.StatusServiceUnavailable)
		case n%11 == 0:
			refused.Add(1)
			http.Error(rw, "upstream is late", http.StatusGatewayTimeout)
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	ns := w.Namespace(t, "throttled")
	account, err := w.Tenant(t.Context(), ns, "user")
	must(t, err)
	token, err := w.Token(t.Context(), account)
	must(t, err)
	vim := w.registerAs(t, server.URL, ns, doc{"bearer_token": token, "ssl_ca_cert": string(certificateOf(server))})
	manifest := workload("Deployment") + "---\n" + settings
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.holds(manifest)
	v.scales("SCALE_OUT", 1, 2, 1)
	v.terminates("FORCEFUL")
	v.gone(manifest)
	if refused.Load() == 0 {
		t.Error("nothing was refused")
	}
}

// TestDefinitionGoes: a definition that somebody removes while a CNF waits for an object of the kind ends the wait; what is left is
// rolled back, and a CNF that had been made is terminated.
func TestDefinitionGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	vim := w.administrator(t)
	definition := func(kind string) (manifest string, remove func()) {
		all := strings.NewReplacer("PLURAL", strings.ToLower(kind)+"s", "SINGULAR", strings.ToLower(kind), "KIND", kind).Replace(widgets)
		u := unstructuredOf(t, objectOnly(all))
		_, err := w.of(u, "").Create(t.Context(), u, metav1.CreateOptions{})
		must(t, err)
		remove = func() { _ = w.of(u, "").Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) }
		t.Cleanup(remove)
		_, manifest, _ = strings.Cut(all, "\n---\n")
		return manifest, remove
	}
	says := func(ns, kind string, status doc) {
		r := w.objects.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace(ns)
		must(t, eventually(t, func(ctx context.Context) (bool, error) {
			u, err := r.Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return false, nil // not yet
			}
			u.Object["status"] = status
			_, err = r.UpdateStatus(ctx, u, metav1.UpdateOptions{})
			return err == nil, nil
		}))
	}
	for _, tt := range []struct {
		kind   string
		status string
	}{{"Passing", "False"}, {"Lasting", "True"}} {
		t.Run(tt.kind, func(t *testing.T) {
			ns := w.Namespace(t, "goes")
			custom, remove := definition(tt.kind)
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": settings + "---\n" + custom}), vim, ns)
			var op string
			must(t, eventually(t, func(ctx context.Context) (bool, error) { // until the definition is known
				var err error
				_, err = w.objects.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: strings.ToLower(tt.kind) + "s"}).List(ctx, metav1.ListOptions{})
				return err == nil, nil
			}))
			op = v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
			says(ns, tt.kind, doc{"observedGeneration": 1, "conditions": []any{doc{"type": "Ready", "status": tt.status, "reason": "Filling"}}})
			if tt.status == "True" {
				v.completes(op)
				remove()
				v.terminates("FORCEFUL")
			} else {
				remove()
				v.fails(op, tt.kind+" "+ns+"/one is not ready: it is ")
				v.rollsBack(op)
			}
			v.gone(settings)
		})
	}
}

// TestManifestsByURL: manifests may be at addresses of hosts that the operator allows, and of no others.
func TestManifestsByURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait, narrow...)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/cnf/web.yaml" {
			http.NotFound(rw, r)
			return
		}
		_, _ = io.WriteString(rw, workload("Deployment"))
	}))
	t.Cleanup(server.Close)
	vim, ns := w.tenant(t)
	id := w.ourPackage(t, map[string]string{"Files/b.yaml": settings})
	v := w.create(t, id, vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{server.URL + "/cnf/web.yaml", "Files/b.yaml"}, "namespace": ns}))
	v.holds(workload("Deployment") + "---\n" + settings)
	v.scales("SCALE_OUT", 1, 2, 1)
	v.completes(v.task("heal", doc{}))
	v.consistsOf("VDU1", 2)
	v.terminates("FORCEFUL")
	for address, text := range map[string]string{
		server.URL + "/none.yaml":            "404",
		"http://manifests.invalid/web.yaml":  "manifests.invalid",
		"http://169.254.169.254/latest.yaml": "169.254.169.254",
	} {
		v := w.create(t, id, vim, ns)
		op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{address}, "namespace": ns})
		v.fails(op, text)
		v.rollsBack(op)
	}
}
