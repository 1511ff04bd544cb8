// Package kubernetes deploys CNFs on a Kubernetes VIM: an [lcm.InfraDriver] for packages whose additionalParams name manifest
// files (lcm-kubernetes-def-files), in the package or at addresses that the operator allows.
//
// An instance is the objects of its manifests, in one namespace. Each of them carries the label vnfm/instance with the
// instance's id and the annotation vnfm/op-occ with the operation that has applied it last; they are applied server-side by
// a field manager of the instance's own. What is applied is recorded before it is, and every step finds by the label what an
// earlier try has made, so that it may run any number of times, on any node. What does not carry the label is never touched,
// nor taken along by a namespace or a definition of the VNF's: these stay while they hold something of others.
//
// Nothing asks for more than a Role in the namespace gives, unless a manifest holds objects of the whole cluster: namespaces
// are not listed, and nothing is looked for outside the namespace. What is lacking is told before the first object is made.
//
// A wait reads what shared watches have seen, one for each kind, namespace and VIM, which end when nobody looks any more;
// where many namespaces are looked at, one of the whole cluster, if the account may have that. Where it may not watch, objects
// are read one by one.
//
// With use_helm, an instance is the releases of Helm charts instead (using_helm_install_param), which the package helm has the
// operator's helm make: from charts of the package, or of repositories on the hosts that manifests may be fetched from. A
// release's Secret carries the same label, and says by vnfm/op-occ which step has made the revision; its objects are known by how
// helm marks them, and only while the release is ours. What is applied, scaled and removed is so by helm; all else, readiness
// above all, is as for manifests.
//
// What is shut down gracefully is told to end at once, and has the time that the request gives; see [Driver.ShutsDown].
package kubernetes
