// Package crash kills the program, as kill -9 does, before and after every step of what it does, cuts its database and
// its VIM off, has fifty instances made at once, and sees that nothing is lost and nothing is done twice. It has only
// tests, which run the binary built with the tag crashpoint.
//
// Where a process dies is deterministic: every node of a cluster watches the same file (VNFM_CRASH_FILE); a test writes
// a point into it, and the first node to pass that point removes the file and dies. Whichever node happens to have
// fetched the work is the one; the others never die. In the arrangement "one node" the only node dies and a new process
// is started at once; in "one of three" the dead node stays dead until the run has been judged.
//
// What is asked of an instance is an act (acts_test.go), which begins in one shape of the instance and ends in another:
// that is how an instance is brought to where an act can be asked for. First every act is done without a death, which
// finds the points (VNFM_CRASH_POINTS) and what the act leaves behind. Then instances live through act after act, a
// node dying in each, and after each the VIM, the op occ, its journal, its triggers, the instance, the outbox and a
// subscriber are compared with what there should be.
//
// The kinds of VIM are stages (stage_test.go): a simulated OpenStack for each lane, and one real Kubernetes control plane, of
// which each lane has a namespace that others' objects are in, too. On the latter, nodes die also before and after each call
// that changes something there; what is watched is whether anything has come twice, and whether anything of others has changed.
package crash
