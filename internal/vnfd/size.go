package vnfd

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// scalarUnit matches a number and a unit, the blank between being optional
// (TOSCA Simple Profile 1.2 §3.3.6).
var scalarUnit = regexp.MustCompile(`^\s*([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\s*([A-Za-z]{1,8})\s*$`)

var sizeUnits = map[string]int64{
	"b":  1,
	"kb": 1e3, "kib": 1 << 10,
	"mb": 1e6, "mib": 1 << 20,
	"gb": 1e9, "gib": 1 << 30,
	"tb": 1e12, "tib": 1 << 40,
}

// splitScalar returns the number, exactly, and the unit in lower case.
func splitScalar(s string) (*big.Rat, string, error) {
	m := scalarUnit.FindStringSubmatch(s)
	if m == nil {
		return nil, "", fmt.Errorf("%q is not a number and a unit", clip(s))
	}
	n, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return nil, "", fmt.Errorf("%q is not a number", m[1])
	}
	return n, strings.ToLower(m[2]), nil
}

func sizeInBytes(s string) (*big.Rat, error) {
	n, unit, err := splitScalar(s)
	if err != nil {
		return nil, err
	}
	factor, ok := sizeUnits[unit]
	if !ok {
		return nil, fmt.Errorf("%q has no unit of size (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)", clip(s))
	}
	return n.Mul(n, new(big.Rat).SetInt64(factor)), nil
}

func truncate(n *big.Rat, s string) (int64, error) {
	q := new(big.Int).Quo(n.Num(), n.Denom())
	if !q.IsInt64() {
		return 0, fmt.Errorf("%q is too large", clip(s))
	}
	return q.Int64(), nil
}

// ScalarBytes converts a TOSCA scalar-unit.size such as "2 GB" to bytes,
// truncated to an integer. Both parts are needed; units are those of TOSCA
// Simple Profile 1.2 §3.3.6.4 in any case.
func ScalarBytes(s string) (int64, error) {
	n, err := sizeInBytes(s)
	if err != nil {
		return 0, err
	}
	return truncate(n, s)
}

// ConvertSize converts a size such as "4 GB" to another unit, e.g. "MiB",
// truncated to an integer.
func ConvertSize(value, unit string) (int64, error) {
	n, err := sizeInBytes(value)
	if err != nil {
		return 0, err
	}
	factor, ok := sizeUnits[strings.ToLower(strings.TrimSpace(unit))]
	if !ok {
		return 0, fmt.Errorf("%q is not a unit of size", clip(unit))
	}
	return truncate(n.Quo(n, new(big.Rat).SetInt64(factor)), value)
}
