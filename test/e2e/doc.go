// Package e2e tests the built binary as its users meet it: driven by the real openstack client of Debian, without
// authentication and with a Keystone, over VNF packages of our own and, where VNFM_SAMPLES names them, of others; and by
// bare requests that break every rule there is.
package e2e
