// Package helm runs the operator's helm program: it renders charts, and installs, upgrades, rolls back and uninstalls releases.
//
// The program is run and not its library linked, which would bring more than a hundred modules, double the server's size and tie
// its client of Kubernetes to the one that the library wants. The program has its own releases, and an operator's security
// updates of it need no new VNF manager; what it is told is a command line that has been stable for years. One major version is
// supported, [Major]; another is refused with what to do about it.
//
// A run has a private directory, which holds all that helm reads and writes, and goes with it: the chart, helm's own folders, so
// that neither the plugins nor the repositories of whoever runs the server count, and a kubeconfig and charts' values for nobody
// else's eyes. The VIM's credentials are in no argument and in no environment variable, and neither are charts' values, but for
// whole numbers, which helm takes for others from a file. No shell is involved. helm calls nobody but the VIM: charts are fetched
// by who calls this package, and rendering asks no name server. A run has a deadline, and is asked to end before it is killed; what
// it says is bounded, and shown without the VIM's credentials and without values that look like secrets.
//
// A release that a run has been killed in is left in a pending state, which the release's Secret tells: see the package kubernetes.
package helm
