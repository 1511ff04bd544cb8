package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// state is how far an object has come.
type state int

const (
	pending state = iota
	ready
	failed // it will not become ready by itself
)

// span is the time of a wait so far; without a beginning it is long.
type span struct{ from, to time.Time }

// verdict is a state and what it is told from.
type verdict struct {
	state   state
	message string
}

// instant are the kinds that are what they are once they have been applied.
var instant = map[string]bool{
	"ConfigMap": true, "Secret": true, "ServiceAccount": true, "LimitRange": true, "ResourceQuota": true, "PodTemplate": true,
	"Endpoints": true, "apps/ControllerRevision": true, "batch/CronJob": true, "coordination.k8s.io/Lease": true,
	"discovery.k8s.io/EndpointSlice": true, "networking.k8s.io/NetworkPolicy": true, "networking.k8s.io/IngressClass": true,
	"rbac.authorization.k8s.io/Role": true, "rbac.authorization.k8s.io/RoleBinding": true, "rbac.authorization.k8s.io/ClusterRole": true,
	"rbac.authorization.k8s.io/ClusterRoleBinding": true, "scheduling.k8s.io/PriorityClass": true, "node.k8s.io/RuntimeClass": true,
	"storage.k8s.io/StorageClass": true, "storage.k8s.io/CSIDriver": true, "autoscaling/HorizontalPodAutoscaler": true,
	"networking.k8s.io/Ingress":                                     true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
}

// readiness tells how far an object has come: by rules of our own where those of kstatus say less than a VNF needs, else by
// kstatus, which knows Kubernetes' own kinds and the conditions that others keep to. u is nil when the object is not there;
// waited is since when it has been waited for.
func (d *Driver) readiness(ctx context.Context, waited span, c *cluster, o *object, s *infra, u *unstructured.Unstructured) verdict {
	switch {
	case u == nil:
		return verdict{failed, "it is gone"}
	case u.GetDeletionTimestamp() != nil:
		return verdict{failed, "it is being deleted"}
	case instant[o.groupKind()]:
		return verdict{ready, ""}
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	is := func(good ...string) verdict {
		for _, g := range good {
			if phase == g {
				return verdict{ready, ""}
			}
		}
		if phase == "Failed" {
			said, _, _ := unstructured.NestedString(u.Object, "status", "message")
			return verdict{failed, "its phase is Failed: " + said}
		}
		return verdict{pending, fmt.Sprintf("its phase is %q", phase)}
	}
	isTrue := func(kind string) verdict {
		if condition(u, kind) == "True" {
			return verdict{ready, ""}
		}
		return verdict{pending, "condition " + told(u, kind)}
	}
	switch o.groupKind() {
	case "Namespace":
		return is("Active")
	case "PersistentVolume":
		return is("Available", "Bound")
	case "PersistentVolumeClaim":
		if v := is("Bound"); v.state == ready || usesClaim(s, o.Name) || !c.bindsLate(ctx, s, u) {
			return v
		}
		return verdict{ready, ""} // it is bound when a pod uses it, and none of this VNF's does
	case "Node":
		return isTrue("Ready")
	case "apiregistration.k8s.io/APIService":
		return isTrue("Available")
	case "storage.k8s.io/VolumeAttachment":
		if attached, _, _ := unstructured.NestedBool(u.Object, "status", "attached"); attached {
			return verdict{ready, ""}
		}
		return verdict{pending, "it is not attached"}
	case "batch/Job":
		if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended || condition(u, "Complete") == "True" {
			return verdict{ready, ""}
		}
		if condition(u, "Failed") == "True" {
			return verdict{failed, "condition " + told(u, "Failed")}
		}
		done, _, _ := unstructured.NestedInt64(u.Object, "status", "succeeded")
		wanted, found, _ := unstructured.NestedInt64(u.Object, "spec", "completions")
		if !found {
			wanted = 1
		}
		return verdict{pending, fmt.Sprintf("%d of %d completions", done, wanted)}
	case "Pod":
		if phase == "Failed" {
			return is()
		}
	case "apps/Deployment":
		if stale(waited.from, u) {
			return verdict{pending, "it has made no progress in an earlier wait: condition " + told(u, "Progressing")}
		}
	case "apps/StatefulSet":
		if v := allReady(u); v.state != ready {
			return v
		}
	}
	return d.byKstatus(waited.to.Sub(waited.from), o, u)
}

// stale tells whether a Deployment's progress deadline passed before a wait began: it may have recovered, or be about to, and the
// condition stays until it has.
func stale(begun time.Time, u *unstructured.Unstructured) bool {
	c := conditionOf(u, "Progressing")
	if c["reason"] != "ProgressDeadlineExceeded" {
		return false
	}
	said, _ := c["lastUpdateTime"].(string)
	at, err := time.Parse(time.RFC3339, said)
	return err == nil && at.Before(begun.Truncate(time.Second))
}

// allReady tells whether a workload has as many ready replicas as it is to have, whatever its update strategy.
func allReady(u *unstructured.Unstructured) verdict {
	wanted, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		wanted = 1
	}
	has, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	if has < wanted {
		return verdict{pending, fmt.Sprintf("Ready: %d/%d", has, wanted)}
	}
	return verdict{ready, ""}
}

func (d *Driver) byKstatus(waited time.Duration, o *object, u *unstructured.Unstructured) verdict {
	result, err := status.Compute(u)
	if err != nil {
		return verdict{pending, "its status makes no sense: " + cut(err.Error())}
	}
	message := cut(result.Message)
	switch result.Status {
	case status.CurrentStatus:
		// A controller that has not looked yet has not said so either.
		if _, has := u.Object["status"]; o.Status && !has && waited < d.cfg.Settle && status.GetLegacyConditionsFn(u) == nil {
			return verdict{pending, "it has no status yet"}
		}
		return verdict{ready, message}
	case status.FailedStatus:
		if o.groupKind() == "Pod" { // a container that crashes may come to itself
			return verdict{pending, message}
		}
		for _, c := range result.Conditions {
			if c.Message != "" && c.Message != message {
				message += ": " + cut(c.Message)
			}
		}
		return verdict{failed, message}
	default:
		return verdict{pending, message}
	}
}

// condition returns the status of one of an object's conditions, "" when it has none of the kind.
func condition(u *unstructured.Unstructured, kind string) string {
	c := conditionOf(u, kind)
	s, _ := c["status"].(string)
	return s
}

func conditionOf(u *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	items, _ := list.([]any)
	for _, item := range items {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// told words a condition.
func told(u *unstructured.Unstructured, kind string) string {
	c := conditionOf(u, kind)
	if c == nil {
		return kind + " is not there yet"
	}
	out := fmt.Sprintf("%s is %v", kind, c["status"])
	for _, key := range []string{"reason", "message"} {
		if v, _ := c[key].(string); v != "" {
			out += ": " + v
		}
	}
	return cut(out)
}

// binding is when the claims of a StorageClass are bound.
type binding struct {
	mode   string
	hidden time.Time // when we were told that we may not read it
}

const firstConsumer = "WaitForFirstConsumer"

// bindsLate tells whether a claim is bound only when a pod uses it, as its StorageClass says; where we may not read that, as
// has been said of the claim.
func (c *cluster) bindsLate(ctx context.Context, s *infra, claim *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	if name == "" {
		return false
	}
	c.mu.Lock()
	b, ok := c.binding[name]
	c.mu.Unlock()
	if !ok || !b.hidden.IsZero() && time.Since(b.hidden) >= deniedFor {
		class := object{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Resource: "storageclasses", Name: name}
		bounded, cancel := c.call(ctx)
		u, err := c.resource(&class, "").Get(bounded, name, metav1.GetOptions{})
		cancel()
		switch b = (binding{}); {
		case isForbidden(err):
			b.hidden = time.Now()
		case err != nil:
			return false
		default:
			b.mode, _, _ = unstructured.NestedString(u.Object, "volumeBindingMode")
		}
		c.mu.Lock()
		c.binding[name] = b
		c.mu.Unlock()
	}
	if b.hidden.IsZero() {
		return b.mode == firstConsumer
	}
	c.mu.Lock()
	h, ok := c.heard[claim.GetUID()]
	c.mu.Unlock()
	if !ok || time.Since(h.at) >= heardFor {
		h = heard{strings.HasPrefix(c.lastEvent(ctx, s.Namespace, claim), firstConsumer+":"), time.Now()}
		c.mu.Lock()
		defer c.mu.Unlock()
		maps.DeleteFunc(c.heard, func(_ types.UID, h heard) bool { return time.Since(h.at) >= heardFor })
		c.heard[claim.GetUID()] = h
	}
	return h.late
}

// heard is whether a claim's last event says that it waits for a pod, and when that was looked up.
type heard struct {
	late bool
	at   time.Time
}

// heardFor is how long events are not looked up again.
const heardFor = 5 * time.Second

// usesClaim tells whether the VNF has pods that mount a claim.
func usesClaim(s *infra, claim string) bool {
	return slices.ContainsFunc(s.Objects, func(o object) bool {
		return slices.Contains(o.Uses, claim) && (o.Replicas == nil || *o.Replicas != 0)
	})
}
