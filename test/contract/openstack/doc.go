// Package openstack holds OpenStack, and the simulator that stands in for it, to what the OpenStack driver relies on: one
// suite, two targets. Cases run on internal/vimsim, each on a cloud of its own; when VNFM_OPENSTACK_AUTH_URL is set they run
// on that OpenStack instead, each in a project of its own. Where the two disagree, the simulator is wrong.
//
// The OpenStack is told by the environment:
//
//	VNFM_OPENSTACK_AUTH_URL                                 Keystone's v3 endpoint
//	VNFM_OPENSTACK_USERNAME, _PASSWORD, _PROJECT            the account whose roles cases have in their projects
//	VNFM_OPENSTACK_ADMIN_USERNAME, _PASSWORD, _PROJECT      the account that makes projects and sees hosts
//	VNFM_OPENSTACK_REGION                                   the region; the only one when empty
//
// It has the networks net0 and net1 (shared), the flavors m1.tiny and m1.small, the image cirros-0.5.2-x86_64-disk and
// three hosts; see test/labs/openstack.
//
// Above the cases of the services stand whole lives: the built program is driven over its API, and after every step what it
// says of a VNF is held against what the services say (lives_*_test.go). VNFM_SAMPLES names a folder of packages from outside
// that are tried too; without it the project's own packages cover the same ground. TestManyAtOnce prints what many instances
// at once cost: VNFM_CONTRACT_INSTANCES of them, and VNFM_OPENSTACK_HEAT_PIDS are Heat's processes, to say what they cost.
package openstack
