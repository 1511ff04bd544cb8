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
// where the account may not watch, objects are read one by one.
package kubernetes
