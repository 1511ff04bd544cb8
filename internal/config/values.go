package config

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Redacted is what is printed in place of a secret.
const Redacted = "[redacted]"

// Secret is a text that never shows itself in logs, errors or prints. Reveal gives the text.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler with the redacted form.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Bytes is a size in bytes. It is written as a number with or without one of the units B, kB, MB, GB, TB (powers of
// 1000) and KiB, MiB, GiB, TiB (powers of 1024).
type Bytes int64

const (
	kib Bytes = 1 << 10
	mib Bytes = 1 << 20
	gib Bytes = 1 << 30
	tib Bytes = 1 << 40
)

var byteUnits = []struct {
	name string
	size Bytes
}{
	{"TiB", tib}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// String writes the size with the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits[:4] {
		if b >= u.size && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size such as 512, 16MiB or 1.5GB. It refuses negative sizes and such that no int64 holds.
func ParseBytes(text string) (Bytes, error) {
	num, unit := strings.TrimSpace(text), Bytes(1)
	for _, u := range byteUnits {
		if rest, ok := cutSuffixFold(num, u.name); ok {
			num, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	if n, err := strconv.ParseInt(num, 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/int64(unit) {
			return 0, fmt.Errorf("the size %q is out of range", text)
		}
		return Bytes(n) * unit, nil
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("%q is not a size (such as 16MiB)", text)
	}
	f *= float64(unit)
	if f < 0 || f >= math.MaxInt64 {
		return 0, fmt.Errorf("the size %q is out of range", text)
	}
	return Bytes(f), nil
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) > len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s[:len(s)-len(suffix)], true
	}
	return s, false
}
