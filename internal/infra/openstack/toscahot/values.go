package toscahot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// raw returns what the VNFD says at a place of a node, as it is written: functions are not resolved.
func (t *translation) raw(node string, at ...string) any {
	topology, _ := t.Flavour.Dict["topology_template"].(map[string]any)
	nodes, _ := topology["node_templates"].(map[string]any)
	v := nodes[node]
	for _, key := range at {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

// input returns the name of the input that a value is taken from.
func input(v any) (string, bool) {
	call, _ := v.(map[string]any)
	name, ok := call["get_input"].(string)
	return name, ok && len(call) == 1
}

// given returns the value that additionalParams give for an input that the VNFD takes a property from; false when they do
// not: then the descriptor has the input's default already.
func (t *translation) given(node string, at ...string) (any, bool) {
	name, ok := input(t.raw(node, at...))
	if !ok {
		return nil, false
	}
	v, ok := t.Request.AdditionalParams[name]
	return v, ok && v != nil
}

// number is a count that the descriptor has as value, or additionalParams give.
func (t *translation) number(node string, value int64, at ...string) (int64, error) {
	v, ok := t.given(node, at...)
	if !ok {
		return value, nil
	}
	n, err := strconv.ParseInt(written(v), 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("additionalParams give %q, which is no number", written(v))
	}
	return n, nil
}

// size is a size that the descriptor has in bytes, or additionalParams give, in the unit: rounded down.
func (t *translation) size(node string, bytes int64, unit string, at ...string) (int64, error) {
	if v, ok := t.given(node, at...); ok {
		return vnfd.ConvertSize(written(v), unit)
	}
	return vnfd.ConvertSize(strconv.FormatInt(bytes, 10)+" B", unit)
}

// written is a scalar as it would be written.
func written(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// layer3 is one entry of a virtual link's protocol data that has l3_protocol_data.
type layer3 struct {
	cidr, version, gateway, mode6 string
	dhcp                          *bool
	pools                         [][2]string
}

// protocols returns the layer 3 data of a virtual link. The descriptor has the first; what it leaves out is read from the
// VNFD's text.
func (t *translation) protocols(vl *vnfd.VirtualLink) []layer3 {
	var out []layer3
	list, _ := t.raw(vl.Name, "properties", "vl_profile", "virtual_link_protocol_data").([]any)
	for n := range list {
		at := []string{"properties", "vl_profile", "virtual_link_protocol_data", strconv.Itoa(n), "l3_protocol_data"}
		data, ok := t.raw(vl.Name, at...).(map[string]any)
		if !ok {
			continue
		}
		l := layer3{
			cidr: t.textOf(data["cidr"]), version: t.textOf(data["ip_version"]),
			gateway: t.textOf(data["gateway_ip"]), mode6: t.textOf(data["ipv6_address_mode"]),
		}
		if dhcp, ok := t.valueOf(data["dhcp_enabled"]).(bool); ok {
			l.dhcp = &dhcp
		}
		pools, _ := data["ip_allocation_pools"].([]any)
		for _, p := range pools {
			pool, _ := p.(map[string]any)
			l.pools = append(l.pools, [2]string{t.textOf(pool["start_ip_address"]), t.textOf(pool["end_ip_address"])})
		}
		out = append(out, l)
	}
	if len(out) == 0 && vl.CIDR != "" { // from the type's default, or no text at hand
		out = append(out, layer3{cidr: vl.CIDR, version: vl.IPVersion, gateway: vl.Gateway, dhcp: vl.DHCP})
	}
	return out
}

// maxInputs bounds a chain of inputs whose defaults are inputs.
const maxInputs = 10

// valueOf resolves get_input: additionalParams before the input's default. nil for other functions.
func (t *translation) valueOf(v any) any {
	topology, _ := t.Flavour.Dict["topology_template"].(map[string]any)
	inputs, _ := topology["inputs"].(map[string]any)
	for range maxInputs {
		name, ok := input(v)
		if !ok {
			return v
		}
		if p := t.Request.AdditionalParams[name]; p != nil {
			return p
		}
		def, _ := inputs[name].(map[string]any)
		v = def["default"]
	}
	return nil
}

// textOf is valueOf as text, "" when it is no scalar.
func (t *translation) textOf(v any) string {
	switch v := t.valueOf(v).(type) {
	case nil, map[string]any, []any:
		return ""
	default:
		return written(v)
	}
}

// maxUserData is what Nova takes: 65535 bytes in base64.
const maxUserData = 65535 / 4 * 3

// bootData returns what a VDU's servers get at their first boot (SOL001 v2.6.1 §6.8.3, boot_data): the text itself, or the
// content of the package's file that it names.
func (t *translation) bootData(vdu string) (string, error) {
	v := t.valueOf(t.raw(vdu, "properties", "boot_data"))
	if v == nil {
		return "", nil
	}
	text, ok := v.(string)
	if !ok {
		return "", errors.New("it is no text")
	}
	if t.Package != nil && len(text) < 1000 && !strings.ContainsAny(text, "\n\\") {
		content, found, err := t.file(text)
		if err != nil {
			return "", err
		}
		if found {
			text = content
		}
	}
	switch {
	case len(text) > maxUserData:
		return "", fmt.Errorf("it is larger than the %d bytes that Nova takes", maxUserData)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", errors.New("it is not UTF-8 text")
	}
	return text, nil
}

// file reads the package's file that a reference in the VNFD means: relative to the VNFD, to the package, or after "../".
func (t *translation) file(ref string) (string, bool, error) {
	candidates := []string{path.Join(path.Dir(t.Flavour.File), ref), path.Clean(ref)}
	if n := strings.LastIndex(ref, "../"); n >= 0 {
		candidates = append(candidates, path.Clean(ref[n+len("../"):]))
	}
	for _, name := range candidates {
		if !fs.ValidPath(name) || name == "." {
			continue
		}
		info, err := fs.Stat(t.Package, name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := t.Package.Open(name)
		if err != nil {
			return "", false, fmt.Errorf("open file %s of the VNF package: %w", name, err)
		}
		content, err := io.ReadAll(io.LimitReader(f, maxUserData+1))
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return "", false, fmt.Errorf("read file %s of the VNF package: %w", name, err)
		}
		return string(content), true, nil
	}
	return "", false, nil
}
