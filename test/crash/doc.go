// Package crash kills the program, as kill -9 does, before and after every step of what it does, cuts its database and
// its VIM off, has fifty instances made at once, and sees that nothing is lost and nothing is done twice. It has only
// tests, which run the binary built with the tag crashpoint.
//
// Where a process dies is deterministic: every node of a cluster watches the same file (VNFM_CRASH_FILE); a test writes
// a point into it, and the first node to pass that point removes the file and dies. Whichever node happens to have
// fetched the work is the one; the others never die. In the arrangement "one node" the only node dies and a new process
// is started at once; in "one of three" the dead node stays dead until the run has been judged.
package crash
