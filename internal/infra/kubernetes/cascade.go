package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// inNamespaces are the kinds of what somebody would miss most when a namespace goes: who makes one is to be able to tell.
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

// alone tells why an object stays: its end would take something with it that is not the VNF's, or it cannot be told whether it
// would. With a namespace goes all that is in it, with a definition all that is of the kind. "": it may go. By now what is the
// VNF's has gone.
func (d *Driver) alone(
	ctx context.Context, x *lcm.Execution, c *cluster, s *infra, o *object, u *unstructured.Unstructured,
) (string, error) {
	var found []resident
	var err error
	switch o.groupKind() {
	case "Namespace":
		found, err = c.residents(ctx, o.Name, x.Instance.ID)
	case definitionKind:
		for _, k := range defines(u) {
			found, err = c.list(ctx, &k, "", x.Instance.ID)
		}
	}
	if isForbidden(err) && !lcm.Is(err, lcm.KindRetryable) {
		return "it cannot be told whether something of others would go with it: " + reason(err), nil
	}
	if err != nil {
		return "", err
	}
	if other := foreigner(found, s, o.groupKind() == "Namespace"); other != nil {
		named := object{Kind: other.kind.Kind, Name: other.Name, Namespaced: other.Namespace != ""}
		return named.title(other.Namespace) + " would go with it, which is not of this VNF instance", nil
	}
	return "", nil
}

// worded says which objects stay, and why.
func worded(stays map[string]string) string {
	var out []string
	for _, title := range slices.Sorted(maps.Keys(stays)) {
		out = append(out, title+": "+stays[title])
	}
	return strings.Join(out, "; ")
}

// foretell has the instance's metadata show which namespaces will stay that the VNF brings: those that the account may not see all
// of. That is no reason not to make the VNF, nor is that it cannot be found out.
func (c *cluster) foretell(ctx context.Context, x *lcm.Execution, s *infra) error {
	stays := map[string]string{}
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.groupKind() != "Namespace" {
			continue
		}
		k, err := c.unseen(ctx, o.Name)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			x.Log.Warn("it cannot be found out whether a namespace will go with this VNF instance", "namespace", o.Name, "error", reason(err))
		case k != nil:
			what := right{"list", k.Group, k.Resource, "", o.Name}
			stays[o.title("")] = fmt.Sprintf("it will stay when the VNF is terminated, since the account may not see all that others may have in it: it lacks the right to %s", what)
			x.Log.Warn("a namespace that this VNF instance brings will stay when it is terminated: the account may not list all kinds",
				"namespace", o.Name, "lacks", what.String())
		}
	}
	show(x.Instance, staysKey, worded(stays))
	return nil
}

// unseen returns a kind of which the account may not list what there is in a namespace, nil when there is none.
func (c *cluster) unseen(ctx context.Context, ns string) (*object, error) {
	if ok, err := c.may(ctx, right{"list", "*", "*", "", ns}); ok || err != nil {
		return nil, err
	}
	kinds, err := c.kindsInNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	for n := range kinds {
		if ok, err := c.may(ctx, right{"list", kinds[n].Group, kinds[n].Resource, "", ns}); !ok || err != nil {
			return &kinds[n], err
		}
	}
	return nil, nil //nolint:nilnil // that there is none is no error
}

// defines returns the kind that a definition defines, in one of the versions that are served: each object is there in each of them.
func defines(definition *unstructured.Unstructured) []object {
	field := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(definition.Object, fields...)
		return s
	}
	var out []object
	each(definition, func(version map[string]any) {
		if served, _ := version["served"].(bool); served && len(out) == 0 {
			name, _ := version["name"].(string)
			out = append(out, object{
				Group: field("spec", "group"), Version: name, Kind: field("spec", "names", "kind"), Resource: field("spec", "names", "plural"),
			})
		}
	}, "spec", "versions")
	return out
}

// resident is an object that is not the instance's, and not going.
type resident struct {
	kind *object
	metav1.ObjectMeta
}

// residents returns what there is in a namespace that is not the instance's, of all kinds that somebody can make.
func (c *cluster) residents(ctx context.Context, ns, instanceID string) ([]resident, error) {
	kinds, err := c.kindsInNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	var out []resident
	for n := range kinds {
		found, err := c.list(ctx, &kinds[n], ns, instanceID)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// list returns the objects of a kind, in a namespace or everywhere, that are not the instance's and are not going: what they are
// called and whose they are.
func (c *cluster) list(ctx context.Context, k *object, ns, instanceID string) ([]resident, error) {
	where := object{Group: k.Group, Version: k.Version, Resource: k.Resource, Namespaced: ns != ""}
	path := where.path(ns)
	path = path[:len(path)-1]
	var out []resident
	for from := ""; ; {
		var page struct {
			Metadata metav1.ListMeta                `json:"metadata"`
			Items    []metav1.PartialObjectMetadata `json:"items"`
		}
		bounded, cancel := c.call(ctx)
		raw, err := c.raw.Get().AbsPath(path...).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json").
			Param("labelSelector", instanceLabel+"!="+instanceID).Param("limit", strconv.Itoa(500)).Param("continue", from).Do(bounded).Raw()
		cancel()
		if status := statusOf(err); status == http.StatusNotFound || status == http.StatusMethodNotAllowed { // there is none of the kind
			return out, nil
		}
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		if err != nil {
			return nil, c.wrap("find out what would go with it: list "+k.Resource, err)
		}
		for _, m := range page.Items {
			if m.DeletionTimestamp == nil {
				out = append(out, resident{k, m.ObjectMeta})
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return out, nil
		}
	}
}

// kindsInNamespaces returns the kinds of objects that somebody can make in a namespace, but for those that the cluster makes of
// others: each once, whatever its versions.
func (c *cluster) kindsInNamespaces(ctx context.Context) ([]object, error) {
	bounded, cancel := c.call(ctx)
	defer cancel()
	raw, err := c.raw.Get().AbsPath("/apis").SetHeader("Accept", "application/json").Do(bounded).Raw()
	var groups metav1.APIGroupList
	if err == nil {
		err = json.Unmarshal(raw, &groups)
	}
	if err != nil {
		return nil, c.wrap("find out which kinds there are", err)
	}
	versions := []schema.GroupVersion{{Version: "v1"}}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions = append(versions, schema.GroupVersion{Group: g.Name, Version: v.Version})
		}
	}
	var out []object
	for _, gv := range versions {
		if gv.Group == "events.k8s.io" || gv.Group == "coordination.k8s.io" || gv.Group == "discovery.k8s.io" {
			continue
		}
		found, err := c.served(ctx, gv)
		if err != nil {
			return nil, err
		}
		for _, r := range found.resources {
			made := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "create") && slices.Contains(r.Verbs, "delete")
			if !r.Namespaced || !made || strings.Contains(r.Name, "/") || gv.Group == "" && (r.Kind == "Event" || r.Kind == "Endpoints") {
				continue
			}
			if !slices.ContainsFunc(out, func(o object) bool { return o.Group == gv.Group && o.Resource == r.Name }) {
				out = append(out, object{Group: gv.Group, Version: gv.Version, Kind: r.Kind, Resource: r.Name, Namespaced: true})
			}
		}
	}
	return out, nil
}

// foreigner returns one of the residents that is neither made by the cluster itself nor by what is, or was, the VNF's; nil when
// there is none. With all, the residents are all that there is in a namespace, and what is not among them is not there.
func foreigner(found []resident, s *infra, all bool) *resident {
	ours, there := map[types.UID]bool{}, map[types.UID]*resident{}
	for _, o := range s.all().Objects {
		ours[types.UID(o.UID)] = true
	}
	for n := range found {
		there[found[n].UID] = &found[n]
	}
	// What somebody else's object owns goes with its owner, which is found itself; what nobody's owns any more is being collected.
	for n := range found {
		r := &found[n]
		owned := ours[r.UID] || slices.ContainsFunc(r.OwnerReferences, func(o metav1.OwnerReference) bool {
			return ours[o.UID] || there[o.UID] != nil || all && inNamespace(o)
		})
		if !owned && !r.everywhere() {
			return r
		}
	}
	return nil
}

// inNamespace tells whether an owner is certainly of a kind that is in namespaces: one that is not found there is gone.
func inNamespace(o metav1.OwnerReference) bool {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	switch (&object{Group: gvk.Group, Kind: gvk.Kind}).groupKind() {
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "batch/CronJob",
		"ReplicationController", "Pod", "Service":
		return true
	}
	return false
}

// everywhere tells whether an object is one that the cluster puts into every namespace.
func (r *resident) everywhere() bool {
	switch r.kind.groupKind() {
	case "ServiceAccount":
		return r.Name == "default"
	case "ConfigMap":
		return r.Name == "kube-root-ca.crt" || r.Name == "openshift-service-ca.crt" || r.Name == "istio-ca-root-cert"
	case "Secret": // of clusters before 1.24
		return strings.HasPrefix(r.Name, "default-token-") && r.Annotations["kubernetes.io/service-account.name"] == "default"
	}
	return false
}
