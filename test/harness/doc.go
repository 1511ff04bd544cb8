// Package harness sets up what the tests of the whole program run against: the built binary as any number of server
// processes over a private PostgreSQL, with a simulated OpenStack in the test's own process, and a REST client to drive
// them. Processes are killed, stopped and started again as a test likes; all of them go when the test binary goes,
// however it goes.
//
// A test package calls [Main] from its TestMain and [New] where it needs a cluster. What has no testing.TB uses [Start]
// and [Cleanup] instead.
package harness
