package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// item is an object as a manifest has it and as it is kept.
type item struct {
	manifest
	object
	given string // the namespace that the manifest names
}

// items reads the VNF's manifests and finds out what each is, in the order in which they are applied.
func (d *Driver) items(ctx context.Context, x *lcm.Execution, c *cluster) ([]item, *params, error) {
	p, err := paramsOf(x)
	if err != nil {
		return nil, nil, err
	}
	if p.helm {
		out, err := d.charted(ctx, x, c, p)
		return out, p, err
	}
	docs, err := d.read(ctx, x, p)
	if err != nil {
		return nil, nil, err
	}
	out, err := c.identifyAll(ctx, docs, map[string]string{}, func(*item) error { return nil }, false)
	if err != nil {
		return nil, nil, err
	}
	if err := assign(out, x.Flavour, p.Mapping); err != nil {
		return nil, nil, err
	}
	sorted(out, func(i item) *object { return &i.object })
	return out, p, nil
}

// identifyAll finds out what manifests' objects are, after those that have been seen; complete is called with each. Where some may
// be unknown, objects are left out whose kind the cluster does not know yet.
func (c *cluster) identifyAll(ctx context.Context, docs []manifest, seen map[string]string, complete func(*item) error, someUnknown bool) ([]item, error) {
	defined := definitions(docs)
	out := make([]item, 0, len(docs))
	for _, doc := range docs {
		o, err := c.identify(ctx, doc, defined)
		if someUnknown && errors.Is(err, errNoKind) {
			continue
		}
		if err != nil {
			return nil, err
		}
		o.Source = doc.at
		if !o.Once {
			if at, ok := seen[o.key()]; ok {
				return nil, lcm.Errorf(lcm.KindTerminal, "%s: %s %s is there already, at %s", doc.at, o.Kind, o.Name, at)
			}
			seen[o.key()] = doc.at
		}
		i := item{manifest: doc, object: *o, given: doc.GetNamespace()}
		if err := complete(&i); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// identify finds out what a manifest's object is. Terminal: the cluster knows no such kind, or the object has no name.
func (c *cluster) identify(ctx context.Context, doc manifest, defined map[schema.GroupVersionKind]kind) (*object, error) {
	gvk := doc.GroupVersionKind()
	k, own := defined[gvk] // as it will be, whatever the cluster has now
	if !own {
		var err error
		if k, err = c.kindOf(ctx, gvk); errors.Is(err, errNoKind) {
			return nil, &lcm.Error{Kind: lcm.KindTerminal, Detail: doc.at + ": " + reason(err), Err: err}
		} else if err != nil {
			return nil, err
		}
	}
	o := &object{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: k.resource, Namespaced: k.namespaced,
		Name: doc.GetName(), Once: k.once, Status: k.status,
	}
	if o.Name == "" && !o.Once {
		return nil, lcm.Errorf(lcm.KindTerminal, "%s: the %s has no metadata.name", doc.at, o.Kind)
	}
	if len(content.IsPathSegmentName(o.Name)) > 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "%s: %q is no name of an object", doc.at, o.Name)
	}
	if k.scale {
		replicas, found, err := unstructured.NestedInt64(doc.Object, "spec", "replicas")
		n := int(replicas)
		switch {
		case err != nil:
			return nil, lcm.Errorf(lcm.KindTerminal, "%s: spec.replicas is not a number", doc.at)
		case !found && builtIn(o):
			n = 1
		case !found:
			n = unread
		}
		o.Replicas = &n
	}
	if o.groupKind() == "apps/StatefulSet" {
		each(doc.Unstructured, func(claim map[string]any) {
			if name, _, _ := unstructured.NestedString(claim, "metadata", "name"); name != "" {
				o.Claims = append(o.Claims, name)
			}
		}, "spec", "volumeClaimTemplates")
	}
	o.Uses = claimsUsed(o, doc.Unstructured)
	return o, nil
}

// claimsUsed returns the claims that an object's pods mount, of kinds that make their pods at once.
func claimsUsed(o *object, u *unstructured.Unstructured) []string {
	spec := []string{"spec", "template", "spec", "volumes"}
	switch o.groupKind() {
	case "Pod":
		spec = []string{"spec", "volumes"}
	case "batch/Job":
		if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
			return nil
		}
	case "apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "apps/DaemonSet", "ReplicationController":
	default:
		return nil
	}
	var out []string
	each(u, func(volume map[string]any) {
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		}
	}, spec...)
	return out
}

// unread stands for a number of replicas that only the cluster can tell.
const unread = -1

// builtIn tells whether a scalable kind is one of Kubernetes' own.
func builtIn(o *object) bool { return o.Group == "" || o.Group == "apps" }

// definitions returns the kinds that CustomResourceDefinitions among the manifests define.
func definitions(docs []manifest) map[schema.GroupVersionKind]kind {
	out := map[schema.GroupVersionKind]kind{}
	for _, doc := range docs {
		gvk := doc.GroupVersionKind()
		if gvk.Group != "apiextensions.k8s.io" || gvk.Kind != "CustomResourceDefinition" {
			continue
		}
		field := func(fields ...string) string {
			s, _, _ := unstructured.NestedString(doc.Object, fields...)
			return s
		}
		group, name := field("spec", "group"), field("spec", "names", "kind")
		each(doc.Unstructured, func(version map[string]any) {
			v, _ := version["name"].(string)
			_, scale, _ := unstructured.NestedFieldNoCopy(version, "subresources", "scale")
			_, status, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
			out[schema.GroupVersionKind{Group: group, Version: v, Kind: name}] = kind{
				resource: field("spec", "names", "plural"), namespaced: field("spec", "scope") == "Namespaced", scale: scale, status: status,
			}
		}, "spec", "versions")
	}
	return out
}

// runsPods tells whether the object's pods may be VNFCs.
func runsPods(o *object) bool {
	switch o.groupKind() {
	case "Pod", "ReplicationController", "apps/Deployment", "apps/DaemonSet", "apps/StatefulSet", "apps/ReplicaSet":
		return true
	}
	return o.Replicas != nil
}

// assign finds out which VDU each workload is: by the mapping, else by the name that the VNFD gives the VDU. Terminal: the
// mapping lacks a VDU, or a workload.
func assign(items []item, f *vnfd.Flavour, mapping map[string]mapped) error {
	if f == nil {
		return nil
	}
	if len(mapping) == 0 {
		for n := range items {
			for _, vdu := range f.VDUs {
				if runsPods(&items[n].object) && vdu.PropName != "" && vdu.PropName == items[n].Name {
					items[n].VDU = vdu.Name
				}
			}
		}
		return nil
	}
	var missing []string
	for _, vdu := range f.VDUs {
		if _, ok := mapping[vdu.Name]; !ok {
			missing = append(missing, vdu.Name)
		}
	}
	if len(missing) > 0 {
		return lcm.Errorf(lcm.KindTerminal, "Parameter input values missing 'vdu_id={%s}' in vdu_mapping", strings.Join(missing, ", "))
	}
	for n := range items {
		o := &items[n].object
		if !runsPods(o) {
			continue
		}
		for _, vdu := range f.VDUs {
			if to := mapping[vdu.Name]; to.Name == o.Name && (to.Kind == o.Kind || to.Kind == "") {
				o.VDU = vdu.Name
			}
		}
		if o.VDU == "" {
			return lcm.Errorf(lcm.KindTerminal, "Parameter input values missing resource info '%s:%s' in vdu_mapping", o.Kind, o.Name)
		}
	}
	for vdu, to := range mapping {
		if !slices.ContainsFunc(items, func(i item) bool { return i.VDU == vdu }) {
			return lcm.Errorf(lcm.KindTerminal, "vdu_mapping: there is no workload '%s:%s' for VDU %s in the manifests", to.Kind, to.Name, vdu)
		}
	}
	return nil
}

// namespaces returns the namespaces that the objects of namespaced kinds name.
func namespaces(items []item) []string {
	var out []string
	for _, i := range items {
		if i.Namespaced {
			out = append(out, i.given)
		}
	}
	return out
}

// references returns what moves to the VNF's namespace.
func references(items []item) map[reference]bool {
	out := map[reference]bool{}
	for _, i := range items {
		if !i.Namespaced {
			continue
		}
		out[reference{i.Kind, i.given, i.Name}] = true
		if i.given == "" {
			out[reference{i.Kind, defaultNamespace, i.Name}] = true
		}
	}
	return out
}

// desired makes an item what is to be applied: in the VNF's namespace, marked as the VNF's, with as many replicas as it is to
// have.
func desired(x *lcm.Execution, i *item, o *object, s *infra, moved map[reference]bool) *unstructured.Unstructured {
	u := i.DeepCopy()
	place(u, o, s.Namespace, moved)
	if o.Once {
		return u
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[instanceLabel] = x.Instance.ID
	u.SetLabels(labels)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[opOccAnnotation] = x.Op.ID
	u.SetAnnotations(annotations)
	if _, given, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas"); o.Replicas != nil && *o.Replicas != unread &&
		(given || builtIn(o) && requestOf(x).InstantiationLevelId != "" && o.VDU != "") {
		n := *o.Replicas
		if stopped(x.Instance) {
			n = 0
		}
		_ = unstructured.SetNestedField(u.Object, int64(n), "spec", "replicas")
	}
	if len(o.Claims) > 0 { // so that what is made of them is known to be the VNF's
		each(u, func(claim map[string]any) {
			metadata, _ := claim["metadata"].(map[string]any)
			if metadata == nil {
				return
			}
			labels, _ := metadata["labels"].(map[string]any)
			if labels == nil {
				labels = map[string]any{}
				metadata["labels"] = labels
			}
			labels[instanceLabel] = x.Instance.ID
		}, "spec", "volumeClaimTemplates")
	}
	if o.Config != "" {
		_ = unstructured.SetNestedField(u.Object, o.Config, "spec", "template", "metadata", "annotations", configAnnotation)
	}
	return u
}

// asked makes what an item is to be known by in messages.
func (i *item) asked(ns string) string { return fmt.Sprintf("%s (%s)", i.title(ns), i.at) }
