package store

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Digests of attributes find the rows of a filter, under one index: a digest stands for a value with its path, texts without
// case, or for a name with its path beneath the maps whose names are the caller's own. 64 bits tell them apart.
// attribute_digests in the database makes the same of a body (migrations/000003).

// callersNames are the attributes whose content has names of the caller's own choice.
var callersNames = []string{"metadata", "extensions", "vnfConfigurableProperties", "operationParams"}

// ownIndex are the attributes that have no digests, since columns with indexes hold them.
var ownIndex = []string{"id", "vnfPkgId", "vnfInstanceId", "startTime", "stateEnteredTime"}

var nameEscapes = strings.NewReplacer("~", "~0", "/", "~1", "=", "~2", ":", "~3")

// pathOf writes names as the path that digests begin with.
func pathOf(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(nameEscapes.Replace(n))
	}
	return b.String()
}

func textDigest(path, text string) int64 { return digest(path + "=" + lowerASCII(text)) }

// numberDigest is the digest of a number that plainNumber has written.
func numberDigest(path, number string) int64 { return digest(path + ":" + number) }

// nameDigest is the digest of a name in the map at a path.
func nameDigest(path, name string) int64 {
	return digest("#" + path + "/" + lowerASCII(nameEscapes.Replace(name)))
}

// attributeDigests returns the digests of a body, a JSON object, sorted, each once; nil, which leaves them to the database, of
// what is no JSON.
func attributeDigests(body []byte) []int64 {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil
	}
	out := appendDigests(make([]int64, 0, 64), "", doc, false)
	slices.Sort(out)
	return slices.Compact(out)
}

func appendDigests(out []int64, path string, value any, named bool) []int64 {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if path == "" && slices.Contains(ownIndex, name) {
				continue
			}
			if named {
				out = append(out, nameDigest(path, name))
			}
			out = appendDigests(out, path+"/"+nameEscapes.Replace(name), member, named || path == "" && slices.Contains(callersNames, name))
		}
	case []any:
		for _, element := range v {
			out = appendDigests(out, path, element, named)
		}
	case string:
		out = append(out, textDigest(path, v))
	case bool:
		out = append(out, textDigest(path, strconv.FormatBool(v)))
	case json.Number:
		if n, ok := plainNumber(v.String()); ok {
			out = append(out, numberDigest(path, n))
		}
	}
	return out
}

// maxExponent bounds the powers of ten of numbers that are compared as numbers.
const maxExponent = 999

// plainNumber writes a decimal number without exponent and without zeros that say nothing, so that equal numbers are equal
// texts. ok is false for what is no number by JSON's grammar (leading zeros are let pass) or is beyond all measure.
func plainNumber(s string) (plain string, ok bool) {
	digits, negative := strings.CutPrefix(s, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(digits[i+1:]); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return "", false
		}
		digits = digits[:i]
	}
	whole, fraction, pointed := strings.Cut(digits, ".")
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	if whole == "" || pointed && fraction == "" || strings.TrimLeftFunc(whole+fraction, isDigit) != "" {
		return "", false
	}
	all, point := whole+fraction, len(whole)+exponent
	if point < 0 {
		all, point = strings.Repeat("0", -point)+all, 0
	}
	if point > len(all) {
		all += strings.Repeat("0", point-len(all))
	}
	whole, fraction = strings.TrimLeft(all[:point], "0"), strings.TrimRight(all[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		whole = "-" + whole
	}
	return whole, true
}

// lowerASCII makes the letters A to Z small, as lower() does with the collation "C" on every database.
func lowerASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// digest is PostgreSQL's hashtextextended(s, 0): Bob Jenkins' lookup3 over the bytes, both halves of its result kept.
func digest(s string) int64 {
	word := func(i, n int) (w uint32) {
		for j := range n {
			w |= uint32(s[i+j]) << (8 * j)
		}
		return w
	}
	a := uint32(0x9e3779b9) + uint32(len(s)) + 3923095 //nolint:gosec // the sum wraps, as it is meant to
	b, c := a, a
	i := 0
	for ; len(s)-i >= 12; i += 12 {
		a, b, c = a+word(i, 4), b+word(i+4, 4), c+word(i+8, 4)
		a, c = (a-c)^bits.RotateLeft32(c, 4), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 6), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 8), b+a
		a, c = (a-c)^bits.RotateLeft32(c, 16), c+b
		b, a = (b-a)^bits.RotateLeft32(a, 19), a+c
		c, b = (c-b)^bits.RotateLeft32(b, 4), b+a
	}
	left := len(s) - i
	a += word(i, min(left, 4))
	if left > 4 {
		b += word(i+4, min(left-4, 4))
	}
	if left > 8 {
		c += word(i+8, left-8) << 8 // its lowest byte is the length's
	}
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return int64(uint64(b)<<32 | uint64(c)) //nolint:gosec // the bits, whatever their sign
}
