// Package lcm is the domain of the VNF manager: VNF instances, lifecycle management operation occurrences and their
// state machine, operations as journaled steps, grants, and the ports that the rest of the program implements (Store,
// InfraDriver, MgmtDriver, Granter, Packages, VIMs).
//
// It knows the standard's information model (package sol003) and VNFDs (package vnfd), and no database, router, cloud
// or cluster library.
//
// # How an operation lives
//
// A task request (SOL003 v2.6.1 §5.4.4 and following) is accepted in one transaction that checks the instance's state,
// inserts the op occ in STARTING, its START notification and its trigger. The op occ row is the truth: who runs it
// (owner), under which fence, at which step, with which driver state. A trigger only names an op occ and a fence; a
// trigger whose fence is stale does nothing. The [Engine] runs the operation's [Step]s; each step's intent is committed
// before it has an effect outside and its result after, both only while the fence is still ours. A step may run any
// number of times and so looks for what an earlier try has made before it makes anything.
package lcm
