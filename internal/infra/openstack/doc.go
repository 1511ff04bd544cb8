// Package openstack deploys VNFs on an OpenStack VIM through Heat: an [lcm.InfraDriver] for packages whose Base HOT is
// filled in by an LCM user data script (package userdata), and for those that bring none: what instantiates a VNF without naming
// a script has the VNFD translated to templates (package toscahot), anew for every operation, from the VNFD, the request as it
// is kept up to date and the stack's parameters.
//
// An instance is one stack, vnflcm_<vnfInstanceId>, which carries the instance's id as a tag, and the id of the operation that
// has asked for it last; software images that the package brings are Glance images that carry instance and node as properties.
// Every step finds what an earlier try has made by these marks, so that it may run any number of times, on any node.
//
// A scaling aspect is an AutoScalingGroup of the template. It is scaled by its policies' signals, one for each step, and by an
// update of the stack where a signal would not bring the size that the step is to bring. Every update writes the present size
// of every group into the template: Heat would set the groups to what the package says.
//
// VIMs do not get into one another's way. An account is one login to a VIM, for all its regions and for all who use it. Before
// every service of a region stands a circuit, which fails calls at once while the service does not answer. A VIM has its own
// queue, and a crew shares the process's workers out: a step whose turn with a VIM does not come waits without one.
package openstack
