package kubernetes

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestReadiness(t *testing.T) {
	d := New(Config{}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer d.Close()
	now := time.Now()
	for _, tt := range []struct {
		name, text string
		status     string // of the object, in YAML
		waited     time.Duration
		want       state
		message    string
	}{
		{name: "ConfigMap", text: "{apiVersion: v1, kind: ConfigMap}", want: ready},
		{name: "Namespace", text: "{apiVersion: v1, kind: Namespace}", status: "{phase: Active}", want: ready},
		{name: "PersistentVolume", text: "{apiVersion: v1, kind: PersistentVolume}", status: "{phase: Available}", want: ready},
		{name: "PersistentVolume, failed", text: "{apiVersion: v1, kind: PersistentVolume}", status: "{phase: Failed, message: no disk}", want: failed, message: "no disk"},
		{name: "claim, pending", text: "{apiVersion: v1, kind: PersistentVolumeClaim}", status: "{phase: Pending}", want: pending, message: `"Pending"`},
		{name: "claim, bound", text: "{apiVersion: v1, kind: PersistentVolumeClaim}", status: "{phase: Bound}", want: ready},
		{name: "Job, running", text: "{apiVersion: batch/v1, kind: Job, spec: {completions: 5}}", status: "{succeeded: 2}", want: pending, message: "2 of 5"},
		{name: "Job, complete", text: "{apiVersion: batch/v1, kind: Job}", status: "{conditions: [{type: Complete, status: 'True'}]}", want: ready},
		{name: "Job, failed", text: "{apiVersion: batch/v1, kind: Job}", status: "{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: gave up}]}", want: failed, message: "BackoffLimitExceeded: gave up"},
		{name: "Job, suspended", text: "{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}", want: ready},
		{name: "APIService", text: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService}", status: "{conditions: [{type: Available, status: 'False', reason: NoAnswer}]}", want: pending, message: "NoAnswer"},
		{name: "VolumeAttachment", text: "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment}", status: "{attached: true}", want: ready},
		{name: "Service, headless", text: "{apiVersion: v1, kind: Service, spec: {clusterIP: None}}", want: ready},
		{name: "Pod, running and ready", text: "{apiVersion: v1, kind: Pod}", status: "{phase: Running, conditions: [{type: Ready, status: 'True'}]}", want: ready},
		{name: "Pod, pending", text: "{apiVersion: v1, kind: Pod}", status: "{phase: Pending}", want: pending},
		{name: "Pod, crashing", text: "{apiVersion: v1, kind: Pod}", status: "{phase: Running, conditions: [{type: Ready, status: 'False'}], containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}", want: pending},
		{name: "Pod, failed", text: "{apiVersion: v1, kind: Pod}", status: "{phase: Failed, message: evicted}", want: failed, message: "evicted"},
		{name: "StatefulSet, updated by hand, not ready", text: "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}}}", status: "{readyReplicas: 1}", want: pending, message: "1/2"},
		{name: "StatefulSet without a status", text: "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}", want: pending},
		{name: "Deployment without a status", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}}", want: pending},
		{name: "Deployment, too slow", text: "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}", status: "{conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: the ReplicaSet makes no progress}]}", want: failed, message: "makes no progress"},
		{name: "custom, no status yet", text: "{apiVersion: example.org/v1, kind: Widget}", want: pending, message: "no status yet"},
		{name: "custom, never a status", text: "{apiVersion: example.org/v1, kind: Widget}", waited: time.Hour, want: ready},
		{name: "custom, not ready", text: "{apiVersion: example.org/v1, kind: Widget}", status: "{conditions: [{type: Ready, status: 'False', message: filling}]}", waited: time.Hour, want: pending, message: "filling"},
		{name: "custom, ready", text: "{apiVersion: example.org/v1, kind: Widget}", status: "{conditions: [{type: Ready, status: 'True'}]}", want: ready},
		{name: "custom, seen by its controller before its change", text: "{apiVersion: example.org/v1, kind: Widget, metadata: {generation: 3}}", status: "{observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}", want: pending},
		{name: "custom, stalled", text: "{apiVersion: example.org/v1, kind: Widget}", status: "{conditions: [{type: Stalled, status: 'True', reason: Broken, message: no such part}]}", want: failed, message: "no such part"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := doc(t, true, tt.text)
			if tt.status != "" {
				i.Object["status"] = doc(t, true, "{apiVersion: v1, kind: Status, spec: "+tt.status+"}").Object["spec"]
			}
			if tt.name == "Deployment without a status" {
				i.SetGeneration(1)
			}
			if strings.Contains(tt.text, "generation: 3") {
				i.SetGeneration(3)
			}
			i.object.Status = true
			c := &cluster{driver: d, binding: map[string]binding{}}
			got := d.readiness(t.Context(), span{now.Add(-tt.waited), now}, c, &i.object, &infra{Namespace: "ns"}, i.Unstructured)
			if got.state != tt.want || !strings.Contains(got.message, tt.message) {
				t.Errorf("readiness = %+v, want %d %q", got, tt.want, tt.message)
			}
		})
	}
	if v := d.readiness(t.Context(), span{}, nil, &object{Kind: "Pod"}, nil, nil); v.state != failed {
		t.Errorf("what is gone is %+v", v)
	}
}

// TestStaleDeadline: a progress deadline that passed before the wait began tells nothing of it.
func TestStaleDeadline(t *testing.T) {
	d := New(Config{}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer d.Close()
	now := time.Now().UTC()
	for begun, want := range map[time.Time]state{now.Add(time.Minute): pending, now: failed, now.Add(-time.Minute): failed, {}: failed} {
		i := doc(t, true, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}")
		i.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "lastUpdateTime": now.Format(time.RFC3339),
		}}}
		if got := d.readiness(t.Context(), span{begun, now.Add(time.Hour)}, nil, &i.object, &infra{}, i.Unstructured); got.state != want {
			t.Errorf("a wait since %s: %+v", begun, got)
		}
	}
}

func TestUsesClaim(t *testing.T) {
	const volumes = "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
	zero := 0
	for _, tt := range []struct {
		text     string
		replicas *int
		want     bool
	}{
		{text: "{apiVersion: v1, kind: Pod, spec: {" + volumes + "}}", want: true},
		{text: "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {" + volumes + "}}}}", want: true},
		{text: "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {" + volumes + "}}}}", replicas: &zero},
		{text: "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}"},
		{text: "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {" + volumes + "}}}}", want: true},
		{text: "{apiVersion: batch/v1, kind: Job, spec: {suspend: true, template: {spec: {" + volumes + "}}}}"},
		{text: "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {" + volumes + "}}}}}}"},
		{text: "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}"},
	} {
		i := doc(t, true, tt.text)
		i.object.Uses, i.object.Replicas = claimsUsed(&i.object, i.Unstructured), tt.replicas
		if got := usesClaim(&infra{Objects: []object{i.object}}, "data"); got != tt.want {
			t.Errorf("%s: %t", tt.text, got)
		}
		if usesClaim(&infra{Objects: []object{i.object}}, "other") {
			t.Errorf("%s uses another claim", tt.text)
		}
	}
}

// TestBindsLate: where the StorageClass may not be read, what has been said of the claim counts, and it is asked again later.
func TestBindsLate(t *testing.T) {
	event := ""
	asked, events := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/events") {
			events++
			_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"EventList","items":[{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"reason":%q,"type":"Normal"}]}`, event)
			return
		}
		asked++
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","code":403,"reason":"Forbidden"}`)
	}))
	defer server.Close()
	c, err := newDriver(t, Config{}).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	claim := doc(t, true, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: slow}}").Unstructured
	looks := 0
	for event = range map[string]bool{"WaitForFirstConsumer": true, "ProvisioningFailed": false} {
		looks++
		claim.SetUID(types.UID(event))
		for range 3 { // for a while, events are not looked up again
			if got := c.bindsLate(t.Context(), &infra{Namespace: "ns"}, claim); got != (event == "WaitForFirstConsumer") {
				t.Errorf("after the event %s: %t", event, got)
			}
		}
	}
	if events != looks {
		t.Errorf("events were looked up %d times", events)
	}
	if asked != 1 {
		t.Errorf("the class was asked for %d times", asked)
	}
	c.binding["slow"] = binding{hidden: time.Now().Add(-2 * deniedFor)}
	if c.bindsLate(t.Context(), &infra{Namespace: "ns"}, claim); asked != 2 {
		t.Error("the class is not asked for again")
	}
}
