package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ownership is what is known of an object that owns another: who owns it.
type ownership struct {
	owner *metav1.OwnerReference // nil: nobody
}

// longestLine is how many owners one after the other are followed.
const longestLine = 8

// podsBy returns the pods of each of the VNF's objects, by the object's uid: those that the object controls, through however
// many others, and the object itself when it is a pod. They are in the order of their ordinals, else of their age.
func (c *cluster) podsBy(ctx context.Context, s *infra) (map[string][]*unstructured.Unstructured, error) {
	all, err := c.podsOf(ctx, s.Namespace)
	if err != nil {
		return nil, err
	}
	by := map[string]*object{}
	for n := range s.Objects {
		if o := &s.Objects[n]; o.UID != "" {
			by[o.UID] = o
		}
	}
	out := map[string][]*unstructured.Unstructured{}
	for _, pod := range all {
		uid, err := c.rootOf(ctx, pod, s, by)
		if err != nil {
			return nil, err
		}
		if uid != "" {
			out[uid] = append(out[uid], pod)
		}
	}
	for uid, list := range out {
		sortPods(by[uid], list)
	}
	return out, nil
}

// rootOf returns the uid of the VNF's object that a pod belongs to, "" for none.
func (c *cluster) rootOf(ctx context.Context, pod *unstructured.Unstructured, s *infra, by map[string]*object) (string, error) {
	if by[string(pod.GetUID())] != nil {
		return string(pod.GetUID()), nil
	}
	ref := metav1.GetControllerOf(pod)
	for range longestLine {
		if ref == nil {
			return "", nil
		}
		if by[string(ref.UID)] != nil {
			return string(ref.UID), nil
		}
		if !mayBe(ref, s) {
			return "", nil
		}
		next, err := c.ownerOf(ctx, ref, s.Namespace)
		if errors.Is(err, errHidden) {
			return byHash(pod, ref, s), nil
		}
		if err != nil {
			return "", err
		}
		ref = next
	}
	return "", nil
}

// mayBe tells whether what a reference names may belong to the VNF, though not directly: a ReplicaSet that is named after one
// of its Deployments, or anything at all where the VNF has objects of kinds that are not Kubernetes' own. A namespace may be full
// of pods of others.
func mayBe(ref *metav1.OwnerReference, s *infra) bool {
	return slices.ContainsFunc(s.Objects, func(o object) bool {
		switch {
		case o.Once || instant[o.groupKind()]:
			return false
		case o.groupKind() == "apps/Deployment":
			return ref.Kind == "ReplicaSet" && strings.HasPrefix(ref.Name, o.Name+"-")
		case o.groupKind() == "batch/CronJob":
			return ref.Kind == "Job" && strings.HasPrefix(ref.Name, o.Name+"-")
		}
		return rank(&o) == rankRest
	})
}

// byHash finds the Deployment of a pod where its ReplicaSet may not be read: a ReplicaSet is named after its Deployment and the
// hash that its pods are labelled with.
func byHash(pod *unstructured.Unstructured, ref *metav1.OwnerReference, s *infra) string {
	name, ok := strings.CutSuffix(ref.Name, "-"+pod.GetLabels()["pod-template-hash"])
	if !ok || ref.Kind != "ReplicaSet" {
		return ""
	}
	n := slices.IndexFunc(s.Objects, func(o object) bool { return o.groupKind() == "apps/Deployment" && o.Name == name })
	if n < 0 {
		return ""
	}
	return s.Objects[n].UID
}

// errHidden says that an owner may not be read.
var errHidden = errors.New("the owner may not be read")

// ownersKept bounds how many owners are remembered.
const ownersKept = 10000

// ownerOf returns what controls the object that a reference names; it never changes.
func (c *cluster) ownerOf(ctx context.Context, ref *metav1.OwnerReference, ns string) (*metav1.OwnerReference, error) {
	c.mu.Lock()
	known, ok := c.owners[ref.UID]
	c.mu.Unlock()
	if ok {
		return known.owner, nil
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	k, err := c.kindOf(ctx, gvk)
	if isGone(err) {
		return nil, nil //nolint:nilnil // nobody that could be found
	}
	if err != nil {
		return nil, err
	}
	o := object{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: k.resource, Namespaced: k.namespaced, Name: ref.Name}
	c.mu.Lock()
	hidden := time.Since(c.hidden[gvk]) < deniedFor
	c.mu.Unlock()
	if hidden {
		return nil, errHidden
	}
	u, err := c.get(ctx, &o, ns)
	if isForbidden(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hidden[gvk] = time.Now()
		return nil, errHidden
	}
	if err != nil {
		return nil, err
	}
	if u == nil || u.GetUID() != ref.UID {
		return nil, nil //nolint:nilnil // it has gone; the pod will go
	}
	found := metav1.GetControllerOf(u)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.owners) >= ownersKept {
		c.owners = map[types.UID]ownership{}
	}
	c.owners[ref.UID] = ownership{found}
	return found, nil
}

// sortPods orders the pods of an object as they came.
func sortPods(o *object, list []*unstructured.Unstructured) {
	ordinal := func(u *unstructured.Unstructured) int {
		if o.groupKind() != "apps/StatefulSet" {
			return 0
		}
		n, err := strconv.Atoi(u.GetName()[strings.LastIndexByte(u.GetName(), '-')+1:])
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(ordinal(a), ordinal(b)),
			a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// living leaves out pods that are going and pods that have come to an end.
func living(list []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, pod := range list {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if pod.GetDeletionTimestamp() == nil && phase != "Failed" && phase != "Succeeded" {
			out = append(out, pod)
		}
	}
	return out
}

// podTrouble tells what is the matter with a pod, "" when it is well.
func podTrouble(pod *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if phase == "Unknown" {
		return "Pod status is found Unknown"
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "status", field)
		items, _ := list.([]any)
		for _, item := range items {
			status, _ := item.(map[string]any)
			if said := containerTrouble(status); said != "" {
				return said
			}
		}
	}
	if condition(pod, "Ready") != "True" {
		if condition(pod, "PodScheduled") == "False" {
			return "condition " + told(pod, "PodScheduled")
		}
		return fmt.Sprintf("its phase is %s, condition %s", phase, told(pod, "Ready"))
	}
	return ""
}

func containerTrouble(status map[string]any) string {
	if ok, _, _ := unstructured.NestedBool(status, "ready"); ok {
		return ""
	}
	for _, at := range []string{"waiting", "terminated"} {
		reason, _, _ := unstructured.NestedString(status, "state", at, "reason")
		message, _, _ := unstructured.NestedString(status, "state", at, "message")
		if reason == "" || reason == "ContainerCreating" || reason == "PodInitializing" || reason == "Completed" {
			continue
		}
		out := fmt.Sprintf("container %v is %s: %s", status["name"], at, reason)
		if message != "" {
			out += ": " + cut(message)
		}
		if n, _, _ := unstructured.NestedInt64(status, "restartCount"); n > 0 {
			out += fmt.Sprintf(" (%d restarts)", n)
		}
		return out
	}
	return ""
}
