package vnfd

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Plain scalars are typed by YAML 1.1, as the scripts in VNF packages expect:
// they were written against a reader for which yes is true, 010 is eight and
// 1e3, which has no dot, is a string.
var (
	yamlInt = regexp.MustCompile(`^[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$`)
	yamlB60 = regexp.MustCompile(`^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+$`)
	yamlFlt = regexp.MustCompile(`^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)$`)
	yamlF60 = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*$`)
)

// maxNumeral bounds the digits that are taken for a number.
const maxNumeral = 400

// resolveScalar returns a plain scalar's value: nil, bool, json.Number or
// string. Infinities and NaN, which JSON lacks, stay strings.
func resolveScalar(s string) any {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	}
	if len(s) > maxNumeral || !strings.ContainsAny(s[:1], "+-.0123456789") {
		return s
	}
	switch {
	case yamlInt.MatchString(s):
		if n, ok := parseInt(s); ok {
			return n
		}
	case yamlB60.MatchString(s):
		return base60Int(s)
	case yamlFlt.MatchString(s):
		if f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil {
			return floatNumber(f)
		}
	case yamlF60.MatchString(s):
		if f, ok := base60Float(s); ok {
			return floatNumber(f)
		}
	}
	return s
}

func parseInt(s string) (json.Number, bool) {
	t := strings.ReplaceAll(s, "_", "")
	sign := ""
	switch t[0] {
	case '-':
		sign, t = "-", t[1:]
	case '+':
		t = t[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(t, "0b"):
		base, t = 2, t[2:]
	case strings.HasPrefix(t, "0x"):
		base, t = 16, t[2:]
	case len(t) > 1 && t[0] == '0':
		base, t = 8, t[1:]
	}
	n, ok := new(big.Int).SetString(t, base)
	if !ok {
		return "", false
	}
	if n.Sign() == 0 {
		sign = ""
	}
	return json.Number(sign + n.String()), true
}

func base60Int(s string) json.Number {
	t := strings.ReplaceAll(s, "_", "")
	negative := t[0] == '-'
	t = strings.TrimLeft(t, "+-")
	total, sixty := new(big.Int), big.NewInt(60)
	for part := range strings.SplitSeq(t, ":") {
		d, _ := new(big.Int).SetString(part, 10)
		total.Add(total.Mul(total, sixty), d)
	}
	if negative {
		total.Neg(total)
	}
	return json.Number(total.String())
}

func base60Float(s string) (float64, bool) {
	t := strings.ReplaceAll(s, "_", "")
	negative := t[0] == '-'
	t = strings.TrimLeft(t, "+-")
	total := 0.0
	for part := range strings.SplitSeq(t, ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		total = total*60 + f
	}
	if negative {
		total = -total
	}
	return total, !math.IsInf(total, 0)
}

// floatNumber writes a float so that it reads back as one: 1.0, not 1.
func floatNumber(f float64) json.Number {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return json.Number(s)
}
