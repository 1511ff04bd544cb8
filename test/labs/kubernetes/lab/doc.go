// Package lab runs a real Kubernetes control plane for tests: etcd, the API server, the controller manager and the
// scheduler, with KWOK in the place of the nodes. Whatever the control plane decides is real; only containers are not
// there, and what becomes of them is told by annotations (see [ReadyAfter] and its neighbours).
//
// A test package calls [Main] from its TestMain and [Start] where it needs a cluster: the first call joins the one that
// `make lab-kubernetes` has left running, or starts one in a temporary folder, on free ports of the loopback, which all
// tests of the binary share and which ends with it, however it ends. Tests that disturb a cluster ([Plane.Kill],
// [Plane.Pause]) ask for one of their own with [StartOwn]. What has no testing.TB uses [Up] and [Plane.Close].
//
// A [Plane] hands out what a manager of CNFs is given in the field: namespaces, ServiceAccounts under a ClusterRole or
// under a Role in one namespace, their tokens, client certificates and kubeconfigs. It reads the API server's audit log
// back, so that requests can be counted by who sent them ([Plane.Requests]).
package lab
