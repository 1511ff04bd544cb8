// Package openstack deploys VNFs on an OpenStack VIM through Heat: an [lcm.InfraDriver] for packages whose Base HOT is
// filled in by an LCM user data script (package userdata).
//
// An instance is one stack, vnflcm_<vnfInstanceId>, which carries the instance's id as a tag; software images that the
// package brings are Glance images that carry instance and node as properties. Every step finds what an earlier try has
// made by these marks, so that it may run any number of times, on any node.
package openstack
