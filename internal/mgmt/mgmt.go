// Package mgmt is the registry of management drivers: which names that VNFDs give as the implementation of a hook are
// served by which built-in driver.
package mgmt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Registry maps the built-in drivers by their own names.
type Registry map[string]lcm.MgmtDriver

// Serve returns the drivers by the names that VNFDs use, from names (VNFD's name → built-in driver's name). Invalid: a
// built-in driver that does not exist, with the list of those that do.
func (r Registry) Serve(names map[string]string) (map[string]lcm.MgmtDriver, error) {
	out := make(map[string]lcm.MgmtDriver, len(names))
	for name, builtin := range names {
		d, ok := r[builtin]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(r)), ", ")
			return nil, fmt.Errorf("mgmt.drivers: %s is to be served by %q, which is no built-in management driver (there are: %s)", name, builtin, known)
		}
		out[name] = d
	}
	return out, nil
}
