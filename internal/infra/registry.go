// Package infra holds the InfraDrivers of the program by the type of VIM that they serve.
package infra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Registry maps VIM types ("openstack", "kubernetes", "fake") to their drivers.
type Registry map[string]lcm.InfraDriver

// NewRegistry returns a registry of the drivers by their types. Two of one type are a defect of the caller and an error.
func NewRegistry(drivers ...lcm.InfraDriver) (Registry, error) {
	r := make(Registry, len(drivers))
	for _, d := range drivers {
		if _, twice := r[d.Type()]; twice {
			return nil, fmt.Errorf("two infra drivers for VIMs of type %q", d.Type())
		}
		r[d.Type()] = d
	}
	return r, nil
}

// Driver returns the driver for VIMs of a type. Unknown types are a terminal error that names those that are known.
func (r Registry) Driver(vimType string) (lcm.InfraDriver, error) {
	if d, ok := r[vimType]; ok {
		return d, nil
	}
	return nil, lcm.Errorf(lcm.KindTerminal, "there is no infra driver for VIMs of type %q; there are %s", vimType, strings.Join(r.Types(), ", "))
}

// Types returns the types that have a driver, sorted.
func (r Registry) Types() []string { return slices.Sorted(maps.Keys(r)) }
