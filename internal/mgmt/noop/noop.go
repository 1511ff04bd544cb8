// Package noop is the management driver that does nothing: a hook that names it succeeds at once. VNFs that need no
// configuration declare it as vnflcm_noop.
package noop

import "github.com/seed-f1a0ccf1/vnfm/internal/lcm"

// Driver implements lcm.MgmtDriver.
type Driver struct{}

var _ lcm.MgmtDriver = Driver{}

// Steps implements lcm.MgmtDriver: there are none.
func (Driver) Steps(string, *lcm.Execution) ([]lcm.Step, error) { return nil, nil }
