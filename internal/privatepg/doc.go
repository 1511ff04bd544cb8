// Package privatepg runs a PostgreSQL of our own: a child process made from the server binaries that the machine
// already has, which listens on a Unix socket inside its folder and nowhere else, runs as an unprivileged user when we
// are root, and goes away when we go away, however we go.
//
// A folder given to [Start] is laid out as
//
//	lock           held (flock) by the process that owns the folder
//	data/          the cluster, owned by the user the server runs as
//	run/           the socket, reachable by that user and by us
//	postgres.log   what the server said
//
// It is meant for a quickstart, for single-machine use and for tests; a deployment of several nodes brings its own
// database.
package privatepg
