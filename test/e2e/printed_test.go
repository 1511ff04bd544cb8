package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// ours is the lab with our own client in place of openstack. What both must print is written down once.
func (l *lab) ours(ctx context.Context, t *testing.T) *lab {
	t.Helper()
	path, err := harness.Binary(ctx)
	must(t, err)
	same := *l
	same.client = path
	return &same
}

// prints runs the client, which must succeed without a word on standard error and print exactly the text.
func (l *lab) prints(ctx context.Context, t *testing.T, text string, args ...string) {
	t.Helper()
	if diff := difference(text, l.ok(ctx, t, args...)); diff != "" {
		t.Errorf("%s prints %s", strings.Join(args, " "), diff)
	}
}

// difference says where two texts differ first, "" when they do not; blanks in a row, which tables are full of, are one.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	line := func(of []string, n int) string {
		if n >= len(of) {
			return "nothing"
		}
		return strings.Join(strings.Fields(of[n]), " ")
	}
	for n := range wants {
		if n >= len(gots) || wants[n] != gots[n] {
			return fmt.Sprintf("in line %d of %d\n\t%s\nwant, of %d\n\t%s", n+1, len(gots), line(gots, n), len(wants), line(wants, n))
		}
	}
	return fmt.Sprintf("%d lines, want %d; the first too many is\n\t%s", len(gots), len(wants), line(gots, len(wants)))
}

// refuses runs the client, which must fail with exit code 1, print nothing, and say exactly the message.
func (l *lab) refuses(ctx context.Context, t *testing.T, message string, args ...string) {
	t.Helper()
	r := l.openstack(ctx, t, args...)
	if diff := cmp.Diff(message+"\n", r.err); diff != "" || r.code != 1 || strings.TrimSpace(r.out) != "" {
		t.Errorf("%s: exit code %d, output %q, and says (- want, + got):\n%s", strings.Join(args, " "), r.code, r.out, diff)
	}
}

// drawn is a table as PrettyTable draws it, all cells aligned to the left.
func drawn(header []string, rows [][]string) string {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for n, cell := range row {
			for line := range strings.SplitSeq(cell, "\n") {
				widths[n] = max(widths[n], utf8.RuneCountInString(line))
			}
		}
	}
	var out strings.Builder
	edge := func() {
		for _, w := range widths {
			out.WriteString("+" + strings.Repeat("-", w+2))
		}
		out.WriteString("+\n")
	}
	draw := func(row []string) {
		cells, height := make([][]string, len(row)), 0
		for n, cell := range row {
			cells[n] = strings.Split(cell, "\n")
			height = max(height, len(cells[n]))
		}
		for h := range height {
			for n, w := range widths {
				line := ""
				if h < len(cells[n]) {
					line = cells[n][h]
				}
				out.WriteString("| " + line + strings.Repeat(" ", w-utf8.RuneCountInString(line)+1))
			}
			out.WriteString("|\n")
		}
	}
	edge()
	draw(header)
	edge()
	for _, row := range rows {
		draw(row)
	}
	edge()
	return out.String()
}

// layout says how a command shows an object: the label of each attribute that it knows, and those it prints as JSON.
type layout struct {
	labels map[string]string
	asJSON []string
}

var (
	createdInstance = layout{map[string]string{
		"id": "ID", "vnfInstanceName": "VNF Instance Name", "vnfInstanceDescription": "VNF Instance Description", "vnfdId": "VNFD ID",
		"vnfProvider": "VNF Provider", "vnfProductName": "VNF Product Name", "vnfSoftwareVersion": "VNF Software Version",
		"vnfdVersion": "VNFD Version", "instantiationState": "Instantiation State", "_links": "Links",
		"vnfConfigurableProperties": "VNF Configurable Properties",
	}, []string{"_links"}}
	shownInstance = layout{also(createdInstance.labels, "vimConnectionInfo", "VIM Connection Info"), []string{"_links", "vimConnectionInfo"}}
	liveInstance  = layout{
		also(shownInstance.labels, "instantiatedVnfInfo", "Instantiated Vnf Info"), []string{"_links", "vimConnectionInfo", "instantiatedVnfInfo"},
	}
	failedOp = layout{map[string]string{
		"id": "ID", "operationState": "Operation State", "stateEnteredTime": "State Entered Time", "startTime": "Start Time",
		"vnfInstanceId": "VNF Instance ID", "operation": "Operation", "isAutomaticInvocation": "Is Automatic Invocation",
		"isCancelPending": "Is Cancel Pending", "error": "Error", "_links": "Links",
	}, []string{"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity", "_links"}}
	shownOp = layout{also(failedOp.labels, "operationParams", "Operation Parameters", "grantId", "Grant ID", "resourceChanges", "Resource Changes",
		"changedInfo", "Changed Info", "cancelMode", "Cancel Mode", "changedExtConnectivity", "Changed External Connectivity"), failedOp.asJSON}
	shownSubscription = layout{
		map[string]string{"id": "ID", "filter": "Filter", "callbackUri": "Callback URI", "_links": "Links"}, []string{"filter", "_links"},
	}
)

// also is a map with more pairs in it.
func also(m map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(m)
	for n := 0; n < len(pairs); n += 2 {
		out[pairs[n]] = pairs[n+1]
	}
	return out
}

// rows are the labels and attributes that an object has in this layout, in the order in which they are shown.
func (y layout) rows(object map[string]json.RawMessage) (labels []string, attribute map[string]string) {
	attribute = map[string]string{}
	for name, label := range y.labels {
		attribute[label] = name
	}
	for name := range object {
		if y.labels[name] == "" {
			attribute[name] = name
		}
	}
	return slices.Sorted(maps.Keys(attribute)), attribute
}

// table is what the client prints of an object that the server answers as raw.
func (y layout) table(t *testing.T, raw []byte) string {
	t.Helper()
	object := members(t, raw)
	labels, attribute := y.rows(object)
	var rows [][]string
	for _, label := range labels {
		name := attribute[label]
		value, there := object[name]
		cell := ""
		switch {
		case !there:
		case slices.Contains(y.asJSON, name):
			var out bytes.Buffer
			must(t, json.Indent(&out, value, "", "    "))
			cell = ascii(out.String())
		case y.labels[name] != "" || name == strings.ToLower(name): // others it looks for by another name, and finds nothing
			cell = plain(t, value)
		}
		rows = append(rows, []string{label, cell})
	}
	return drawn([]string{"Field", "Value"}, rows)
}

// json is what the client prints of the object with -f json.
func (y layout) json(t *testing.T, raw []byte) string {
	t.Helper()
	object := members(t, raw)
	labels, attribute := y.rows(object)
	var lines []string
	for _, label := range labels {
		name := attribute[label]
		value := json.RawMessage(`""`)
		if v, there := object[name]; there && (y.labels[name] != "" || slices.Contains(y.asJSON, name) || name == strings.ToLower(name)) {
			value = v
		}
		key, err := json.Marshal(label)
		must(t, err)
		lines = append(lines, string(key)+": "+string(value))
	}
	var out bytes.Buffer
	must(t, json.Indent(&out, []byte("{"+strings.Join(lines, ",")+"}"), "", "  "))
	return ascii(out.String()) + "\n"
}

// ascii has every character beyond ASCII escaped, as Python does in JSON.
func ascii(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&out, "\\u%04x", r)
		}
	}
	return out.String()
}

func members(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatalf("no JSON object (%v): %s", err, raw)
	}
	return object
}

// plain is a value as the client prints it in a cell: a map as its pairs, sorted.
func plain(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal(raw, &v))
	return plainValue(v)
}

func plainValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case map[string]any:
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, k+"="+plainValue(v[k]))
		}
		return strings.Join(pairs, ", ")
	default:
		return fmt.Sprint(v)
	}
}

// column says which attribute a list shows under which label.
type column struct{ attribute, label string }

var (
	instanceColumns = []column{
		{"id", "ID"}, {"vnfInstanceName", "VNF Instance Name"}, {"instantiationState", "Instantiation State"}, {"vnfProvider", "VNF Provider"},
		{"vnfSoftwareVersion", "VNF Software Version"}, {"vnfProductName", "VNF Product Name"}, {"vnfdId", "VNFD ID"},
	}
	opColumns           = []column{{"id", "ID"}, {"operationState", "Operation State"}, {"vnfInstanceId", "VNF Instance ID"}, {"operation", "Operation"}}
	subscriptionColumns = []column{{"id", "ID"}, {"callbackUri", "Callback URI"}}
)

// listed is a list of objects as the client prints it in each of its formats.
type listed struct {
	columns []column
	objects []map[string]any
}

func (l listed) cells(absent, null string) [][]string {
	var rows [][]string
	for _, o := range l.objects {
		var row []string
		for _, c := range l.columns {
			v, there := o[c.attribute]
			switch {
			case !there:
				row = append(row, absent)
			case v == nil:
				row = append(row, null)
			default:
				row = append(row, plainValue(v))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (l listed) header() []string {
	var out []string
	for _, c := range l.columns {
		out = append(out, c.label)
	}
	return out
}

func (l listed) table() string {
	if len(l.objects) == 0 {
		return "\n"
	}
	return drawn(l.header(), l.cells("", "None"))
}

func (l listed) value() string {
	var out strings.Builder
	for _, row := range l.cells("", "None") {
		out.WriteString(strings.Join(row, " ") + "\n")
	}
	return out.String()
}

// csv is for texts only.
func (l listed) csv() string {
	var out strings.Builder
	for _, row := range append([][]string{l.header()}, l.cells("", "")...) {
		out.WriteString(`"` + strings.Join(row, `","`) + "\"\n")
	}
	return out.String()
}

func (l listed) json(t *testing.T) string {
	t.Helper()
	var objects []string
	for _, o := range l.objects {
		var pairs []string
		for _, c := range l.columns {
			v, there := o[c.attribute]
			if !there {
				v = ""
			}
			pair, err := json.Marshal(map[string]any{c.label: v})
			must(t, err)
			pairs = append(pairs, string(pair[1:len(pair)-1]))
		}
		objects = append(objects, "{"+strings.Join(pairs, ",")+"}")
	}
	var out bytes.Buffer
	if len(objects) == 0 {
		return "[]\n"
	}
	must(t, json.Indent(&out, []byte("["+strings.Join(objects, ",")+"]"), "", "  "))
	return ascii(out.String()) + "\n"
}

// get reads a resource as the server answers it.
func (l *lab) get(ctx context.Context, t *testing.T, path string) []byte {
	t.Helper()
	r, err := l.api.Call(ctx, "GET", path, nil, nil)
	must(t, err)
	return r.Body
}

// read lists a collection whole, whatever the size of its pages.
func (l *lab) read(ctx context.Context, t *testing.T, path string) []map[string]any {
	t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	var out []map[string]any
	_, err := l.api.Call(ctx, "GET", path+join+"all_records=yes", nil, &out)
	must(t, err)
	return out
}
