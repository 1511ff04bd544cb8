// Package openstack holds the fault suite: every fault that an OpenStack is known for, in the middle of every operation, and of
// the rollbacks. Each pair is run by the built program over PostgreSQL, against a simulated OpenStack of its own. What is to
// come of a pair is written down in a table; a pair without a line there fails the suite. A fault that passes is to be waited
// out; one that does not is to be told in words that lead to its cause, and both ways on are to work once it is gone. At the end nothing is left in the
// cloud.
//
// All pairs of a fault are run by -run 'TestFaults/pairs/a_quota', one by -run 'TestFaults/pairs/a_quota.*/HEAL_one'.
package openstack
