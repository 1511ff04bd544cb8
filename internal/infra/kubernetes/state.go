package kubernetes

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// owner names the driver's work in an op occ; fieldManager is who changes what is not applied.
const (
	owner        = "infra:kubernetes"
	fieldManager = "vnfm"
)

// managerOf is the field manager that applies an instance's objects: each instance has its own, so that two that want the same
// object are in conflict, whoever comes first.
func managerOf(instanceID string) string { return fieldManager + "-" + instanceID }

// What objects are marked with.
const (
	instanceLabel   = "vnfm/instance"
	opOccAnnotation = "vnfm/op-occ"
	// configAnnotation is on pod templates whose ConfigMaps and Secrets an operation has changed: it rolls the pods.
	configAnnotation = "vnfm/config"
)

// Where the instance's metadata show the namespace, and what the VNF has brought that stays, or will stay, without it.
const (
	namespaceKey = "namespace"
	staysKey     = "stays"
)

// stateVersion is the version of what the driver keeps about an instance and about an operation; before the second, there were no
// Helm releases.
const (
	stateVersion = 2
	plainVersion = 1
)

// infra is what the driver keeps about an instance.
type infra struct {
	V         int      `json:"v"`
	Namespace string   `json:"namespace,omitempty"`
	Objects   []object `json:"objects,omitempty"` // in the order in which they are applied
	// Going are objects that the VNF has had and is not to have any more, until they are gone.
	Going []object `json:"going,omitempty"`
	// Releases are the Helm releases that the objects are of, in the order in which they are installed, and Hooks what their charts
	// have had helm make besides; none when the VNF is made of manifests.
	Releases []release `json:"releases,omitempty"`
	Hooks    []object  `json:"hooks,omitempty"`
	// VnfdID is the VNFD whose package the objects were made from: an instance may have been given another one since.
	VnfdID string `json:"vnfdId,omitempty"`
}

// all is what is left of the instance in the cluster, what is going included.
func (s *infra) all() *infra {
	return &infra{Namespace: s.Namespace, Objects: slices.Concat(s.Objects, s.Going)}
}

// object is an object of a VNF. Its namespace is the VNF's.
type object struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"` // the kind's name in paths
	Namespaced bool   `json:"namespaced,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"` // once it has been applied
	// Once marks what is only posted and leaves nothing behind: reviews, bindings.
	Once bool `json:"once,omitempty"`
	// Status says that objects of the kind have a status of their own.
	Status bool `json:"status,omitempty"`
	// VDU is the VDU that the object's pods are VNFCs of, "" for none.
	VDU string `json:"vdu,omitempty"`
	// Replicas is how many pods it has while the VNF runs; nil: it cannot be scaled.
	Replicas *int `json:"replicas,omitempty"`
	// Claims are the names of a StatefulSet's claim templates.
	Claims []string `json:"claims,omitempty"`
	// Uses are the claims that its pods mount, when it has pods at once.
	Uses []string `json:"uses,omitempty"`
	// Config is the operation that has rolled the object's pods since the configuration that they use has changed.
	Config string `json:"config,omitempty"`
	Source string `json:"source,omitempty"` // file and line
	// Release is the Helm release that the object is of, Since when that was made ("": it is not known to be ours), and Hook says
	// that it is one of its hooks.
	Release string `json:"release,omitempty"`
	Since   string `json:"since,omitempty"`
	Hook    bool   `json:"hook,omitempty"`
	// Noted says of a hook that it runs no more, and that UID is all that is there of it.
	Noted bool `json:"noted,omitempty"`
	// Selector are the labels of the pods of a release's StatefulSet, which its claims have too; Claim marks such a claim.
	Selector map[string]string `json:"selector,omitempty"`
	Claim    bool              `json:"claim,omitempty"`
}

func (o *object) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
}

func (o *object) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
}

// groupKind names the kind without its version, as "apps/Deployment" or "Pod".
func (o *object) groupKind() string {
	if o.Group == "" {
		return o.Kind
	}
	return o.Group + "/" + o.Kind
}

// key tells the object from the VNF's others.
func (o *object) key() string { return o.groupKind() + "/" + o.Name }

// same tells whether two are the same object, whatever its version and its uid.
func (o *object) same(p *object) bool {
	return o.Group == p.Group && o.Kind == p.Kind && o.Name == p.Name && !o.Once && !p.Once
}

// in returns the namespace of the object, "" for one of the whole cluster, when ns is the VNF's.
func (o *object) in(ns string) string {
	if !o.Namespaced {
		return ""
	}
	return ns
}

// title names the object for people.
func (o *object) title(ns string) string {
	if ns = o.in(ns); ns != "" {
		return fmt.Sprintf("%s %s/%s", o.Kind, ns, o.Name)
	}
	return o.Kind + " " + o.Name
}

// find returns the object that is the same as o, nil when there is none.
func (s *infra) find(o *object) *object {
	for n := range s.Objects {
		if s.Objects[n].same(o) {
			return &s.Objects[n]
		}
	}
	return nil
}

// work is what the steps of one operation leave for one another.
type work struct {
	V int `json:"v"`
	// Applied counts the objects that have been applied.
	Applied int `json:"applied,omitempty"`
	// Held says that the next one is not applied yet since what is there of it must go first.
	Held bool `json:"held,omitempty"`
	// Written are the resource versions that our last writes brought, by uid: what a watch has seen must not be older.
	Written map[string]string `json:"written,omitempty"`
	// Wave counts the waves of objects that are gone; Asked are the objects whose deletion has been asked for, Gone those of the
	// wave that are.
	Wave  int             `json:"wave,omitempty"`
	Asked map[string]bool `json:"asked,omitempty"`
	Gone  map[string]bool `json:"gone,omitempty"`
	// Stays are objects that the VNF has brought and that stay, by what they are called, with why they do.
	Stays map[string]string `json:"stays,omitempty"`
	// Uninstalled are the Helm releases that have been.
	Uninstalled map[string]bool `json:"uninstalled,omitempty"`
	// Unhelmed are those that helm cannot uninstall, for it does not know their objects' kinds any more: they go without it.
	Unhelmed map[string]bool `json:"unhelmed,omitempty"`
	// Victims are the pods that a heal removes.
	Victims []victim `json:"victims,omitempty"`
	// Had is how many pods objects had before the heal that do not say themselves how many they are to have, by uid.
	Had map[string]int `json:"had,omitempty"`
	// Digest is the SHA-256 of the definition files as they were when it was settled what the VNF consists of.
	Digest string `json:"digest,omitempty"`
	// Updating says that the manifests are applied anew since they have changed.
	Updating bool `json:"updating,omitempty"`
}

// victim is a pod that is to be made anew.
type victim struct {
	VNFC string `json:"vnfc"`
	Pod  string `json:"pod"`
	UID  string `json:"uid,omitempty"` // "" when it was gone already
}

// wrote notes what a write has brought.
func (w *work) wrote(uid, resourceVersion string) {
	if w.Written == nil {
		w.Written = map[string]string{}
	}
	w.Written[uid] = resourceVersion
}

func loadWork(x *lcm.Execution) (*work, error) {
	w := new(work)
	return w, x.WorkUpTo(stateVersion, owner, w)
}

func saveWork(x *lcm.Execution, w *work) error {
	w.V = plainVersion
	return x.SetWork(owner, w)
}

func loadInfra(i *lcm.Instance) (*infra, error) {
	s := new(infra)
	return s, i.LoadInfra(stateVersion, s)
}

func saveInfra(i *lcm.Instance, s *infra) error {
	if s.V = plainVersion; len(s.Releases) > 0 {
		s.V = stateVersion
	}
	return i.SaveInfra(s)
}

// keep saves both and ends a step with p.
func keep(x *lcm.Execution, s *infra, w *work, p lcm.Progress) (lcm.Progress, error) {
	if err := saveInfra(x.Instance, s); err != nil {
		return lcm.Progress{}, err
	}
	return p, saveWork(x, w)
}
