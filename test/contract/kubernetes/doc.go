// Package kubernetes holds the Kubernetes driver to a real control plane (test/labs/kubernetes): the built program is told what
// to do by its API, and what it has made is read back from the API server after every step. Nothing may be left when a VNF is
// terminated or rolled back, and nothing of others may have been touched.
//
// When VNFM_SAMPLES names a folder of packages from outside, those among them that are CNFs (cnf_resources, cnf_scale) are
// tried beside our own.
package kubernetes
