package vnfd

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestConvertSize(t *testing.T) {
	for _, c := range []struct {
		value, unit string
		want        int64
	}{
		{"4 GB", "MiB", 3814}, {"45 GB", "GiB", 41}, {"512 MB", "MiB", 488}, {"1 GB", "GB", 1}, {"256 MB", "MB", 256},
		{"8192 MiB", "MiB", 8192}, {"1.5 GB", "GiB", 1}, {"0 GB", "GB", 0}, {"1 tib", "GIB", 1024}, {"3kB", "B", 3000},
	} {
		if got, err := ConvertSize(c.value, c.unit); err != nil || got != c.want {
			t.Errorf("%q in %s: %d, %v; want %d", c.value, c.unit, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"4", "MiB"}, {"GB", "MiB"}, {"", "MiB"}, {"4 GX", "MiB"}, {"4 GB", "parsec"}, {"-4 GB", "B"}, {"4 4 GB", "B"}, {"1e3 GB", "B"}} {
		if got, err := ConvertSize(c[0], c[1]); err == nil {
			t.Errorf("%q in %s: %d, want an error", c[0], c[1], got)
		}
	}
	if got, err := ScalarBytes(strings.Repeat("9", 30) + " TiB"); err == nil {
		t.Errorf("overflow gave %d", got)
	}
}

func TestSizeUnitsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<20).Draw(t, "n")
		unit := rapid.SampledFrom([]string{"B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"}).Draw(t, "unit")
		value := big.NewInt(n).String() + " " + unit
		back, err := ConvertSize(value, unit)
		if err != nil || back != n {
			t.Fatalf("%q in its own unit: %d, %v", value, back, err)
		}
		b, err := ScalarBytes(value)
		if err != nil || b != n*sizeUnits[strings.ToLower(unit)] {
			t.Fatalf("%q: %d bytes, %v", value, b, err)
		}
	})
}

func TestResolveScalar(t *testing.T) {
	num := func(s string) json.Number { return json.Number(s) }
	for in, want := range map[string]any{
		"": nil, "~": nil, "null": nil, "NULL": nil, "nUll": "nUll",
		"yes": true, "On": true, "TRUE": true, "no": false, "off": false, "False": false, "y": "y",
		"1": num("1"), "-7": num("-7"), "+7": num("7"), "-0": num("0"), "1_000": num("1000"), "0x1F": num("31"), "0b101": num("5"),
		"010": num("8"), "08": "08", "0o17": "0o17", "1:30": num("90"), "-1:0:1": num("-3601"), "1:30.5": num("90.5"),
		"1.0": num("1.0"), "1.": num("1.0"), ".5": num("0.5"), "-.5": num("-0.5"), "1.5e+3": num("1500.0"), "1.5e3": "1.5e3", "1e3": "1e3",
		"2.6.1": "2.6.1", "2024-01-01": "2024-01-01", ".inf": ".inf", ".nan": ".nan", "0.5.2": "0.5.2",
		"1.0e+999": "1.0e+999", "123456789012345678901234567890": num("123456789012345678901234567890"),
		"0x": "0x", "_1": "_1", "--1": "--1", "1 GB": "1 GB", "0x_": "0x_", "0b_": "0b_", "0_": num("0"),
	} {
		if got := resolveScalar(in); got != want {
			t.Errorf("%q: %#v, want %#v", in, got, want)
		}
	}
}

// Whatever a scalar becomes, JSON has to carry it.
func TestScalarsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[-+]?[0-9_.:exb]{0,12}`).Draw(t, "s")
		v := resolveScalar(s)
		data, err := json.Marshal(map[string]any{"v": v})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var back Tree
		if err := json.Unmarshal(data, &back); err != nil || back["v"] != v {
			t.Fatalf("%q: %#v became %#v, %v", s, v, back["v"], err)
		}
	})
}

func TestMergeKeysAndAliases(t *testing.T) {
	rep, budget := report{}, maxNodes
	n := parseYAML("f", []byte("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nmany: {<<: [{z: 1}, *b]}\nsame: *b\n? yes\n: 1\n? !!str 5\n: 2\n"), &rep, &budget)
	if len(rep.list) > 0 {
		t.Fatal(rep.list)
	}
	one, two, three := json.Number("1"), json.Number("2"), json.Number("3")
	diff(t, "tree", map[string]any{
		"base": map[string]any{"x": one, "y": two},
		"use":  map[string]any{"x": one, "y": three},
		"many": map[string]any{"x": one, "y": two, "z": one},
		"same": map[string]any{"x": one, "y": two},
		"true": one, "5": two,
	}, n.plain().(map[string]any))
	for _, bad := range []string{"a: {<<: 3}", "? [a]\n: b", "a: *gone", "a: !!set {x}"} {
		rep, budget := report{}, maxNodes
		if parseYAML("f", []byte(bad), &rep, &budget) != nil || len(rep.list) == 0 {
			t.Errorf("%q was accepted", bad)
		}
	}
}
