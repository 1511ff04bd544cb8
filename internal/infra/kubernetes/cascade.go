package kubernetes

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// inNamespaces are the kinds of what somebody would miss when a namespace goes.
var inNamespaces = []object{
	{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "DaemonSet", Resource: "daemonsets", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Namespaced: true},
	{Version: "v1", Kind: "ReplicationController", Resource: "replicationcontrollers", Namespaced: true},
	{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespaced: true},
	{Group: "batch", Version: "v1", Kind: "CronJob", Resource: "cronjobs", Namespaced: true},
	pods,
	{Version: "v1", Kind: "Service", Resource: "services", Namespaced: true},
}

const definitionKind = "apiextensions.k8s.io/CustomResourceDefinition"

// alone makes sure that the end of an object takes nothing with it that is not the VNF's: with a namespace goes all that is in it,
// with a definition all that is of the kind. By then what is the VNF's has gone. Terminal: there is something, which is named.
func (d *Driver) alone(ctx context.Context, x *lcm.Execution, c *cluster, o *object, u *unstructured.Unstructured) error {
	ns, kinds := "", []object(nil)
	switch o.groupKind() {
	case "Namespace":
		ns, kinds = o.Name, inNamespaces
	case definitionKind:
		kinds = defines(u)
	}
	for n := range kinds {
		k := &kinds[n]
		other, err := c.other(ctx, k, ns, x.Instance.ID)
		if err != nil {
			return err
		}
		if other != nil {
			named := object{Kind: k.Kind, Name: other.GetName(), Namespaced: other.GetNamespace() != ""}
			return lcm.Errorf(lcm.KindTerminal, "CNF Delete Failed with reason: %s is not deleted, since %s in VIM %s would go with it, which is not of this VNF instance: "+
				"it has no label %s=%s", o.title(""), named.title(other.GetNamespace()), c.name, instanceLabel, x.Instance.ID)
		}
	}
	return nil
}

// defines returns the kind that a definition defines, in the versions that are served: each object is there in each of them.
func defines(definition *unstructured.Unstructured) []object {
	field := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(definition.Object, fields...)
		return s
	}
	var out []object
	each(definition, func(version map[string]any) {
		if served, _ := version["served"].(bool); served && len(out) == 0 {
			name, _ := version["name"].(string)
			out = append(out, object{Group: field("spec", "group"), Version: name, Kind: field("spec", "names", "kind"), Resource: field("spec", "names", "plural")})
		}
	}, "spec", "versions")
	return out
}

// other finds an object of a kind that is not the instance's, and is not going anyway; nil when there is none.
func (c *cluster) other(ctx context.Context, k *object, ns, instanceID string) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	options := metav1.ListOptions{LabelSelector: instanceLabel + "!=" + instanceID, Limit: 100}
	for {
		list, err := c.objects.Resource(k.gvr()).Namespace(ns).List(ctx, options)
		if isGone(err) { // the kind is not served, so that there is none
			return nil, nil //nolint:nilnil // as said
		}
		if err != nil {
			return nil, c.wrap("find out what would go with it: list "+k.Resource, err)
		}
		n := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetDeletionTimestamp() == nil })
		if n >= 0 {
			return &list.Items[n], nil
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil, nil //nolint:nilnil // as said
		}
	}
}
