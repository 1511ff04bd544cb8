package client

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode"
)

// Cell is one value of the output.
type Cell struct {
	// Value is a JSON value, "" when the attribute is absent.
	Value any
	// Complex values show as indented JSON in tables.
	Complex bool
	// Model values are attributes of a resource shown alone: objects print as "k=v".
	Model bool
}

// human is the cell in a table.
func (c Cell) human() string {
	if !c.Complex {
		return pyStr(c.Value, c.Model)
	}
	if c.Value == nil {
		return "None"
	}
	return pyJSON(c.Value, 4)
}

// plain is the cell as a single text.
func (c Cell) plain() string { return pyStr(c.Value, c.Model) }

// rightAligned tells whether a list's column that begins with this cell holds numbers.
func (c Cell) rightAligned() bool {
	_, num := c.Value.(json.Number)
	return num && !c.Complex
}

// Table is what a command shows: for a list each row is a resource; for a single resource there is one row, shown as
// field and value.
type Table struct {
	// Columns are the labels.
	Columns []string
	// Rows hold a cell for each column.
	Rows [][]Cell
	// Single marks the show of one resource.
	Single bool
}

// column maps an attribute to the label it is shown under.
type column struct{ attr, label string }

// ShowSpec says how a command shows one resource.
type ShowSpec struct {
	columns []column
	complex []string // attributes shown as JSON
	mixed   []string // attributes looked up as they are spelt; all others in lower case
	texts   []string // attributes turned into JSON text in every format
}

func has(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// cell looks an attribute up. Absent ones are empty.
func (s ShowSpec) cell(o *Object, attr string, model bool) Cell {
	key := strings.ReplaceAll(attr, " ", "_")
	if !has(s.mixed, attr) {
		key = strings.ToLower(key)
	}
	v, ok := o.Get(key)
	if !ok {
		v = ""
	}
	if has(s.texts, attr) && v != nil {
		return Cell{Value: pyJSON(v, 4), Model: model}
	}
	return Cell{Value: v, Complex: has(s.complex, attr), Model: model}
}

// ShowTable makes the rows of one resource: every attribute it has and every mapped one, sorted by label.
func ShowTable(o *Object, spec ShowSpec) Table {
	attrOf := map[string]string{}
	labels := append([]string(nil), o.Keys...)
	for _, c := range spec.columns {
		for i, l := range labels {
			if l == c.attr {
				attrOf[c.label] = c.attr
				labels = append(labels[:i], labels[i+1:]...)
				break
			}
		}
		if !has(labels, c.label) {
			labels = append(labels, c.label)
		}
	}
	sort.Strings(labels)
	t := Table{Columns: labels, Single: true, Rows: [][]Cell{{}}}
	for _, l := range labels {
		attr, ok := attrOf[l]
		if !ok {
			attr = l
		}
		t.Rows[0] = append(t.Rows[0], spec.cell(o, attr, true))
	}
	return t
}

// RawTable shows an object's own keys in their own order.
func RawTable(o *Object) Table {
	t := Table{Columns: append([]string(nil), o.Keys...), Single: true, Rows: [][]Cell{{}}}
	for _, k := range o.Keys {
		t.Rows[0] = append(t.Rows[0], Cell{Value: o.Values[k]})
	}
	return t
}

// ListTable makes one row for each resource.
func ListTable(list []*Object, spec ShowSpec) Table {
	t := Table{}
	for _, c := range spec.columns {
		t.Columns = append(t.Columns, c.label)
	}
	for _, o := range list {
		row := make([]Cell, len(spec.columns))
		for i, c := range spec.columns {
			row[i] = spec.cell(o, c.attr, false)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Select keeps the named columns (all when none are named), in the table's order. None of the names being a column is
// an error.
func (t Table) Select(names []string) (Table, error) {
	if len(names) == 0 {
		return t, nil
	}
	out := Table{Single: t.Single}
	var keep []int
	for i, c := range t.Columns {
		if has(names, c) {
			keep = append(keep, i)
			out.Columns = append(out.Columns, c)
		}
	}
	if len(keep) == 0 {
		all := pyRepr(t.Columns)
		if t.Single || len(t.Columns) == 0 {
			all = pyTuple(t.Columns)
		}
		return t, fmt.Errorf("No recognized column names in %s. Recognized columns are %s.", pyRepr(names), all)
	}
	for _, r := range t.Rows {
		row := make([]Cell, len(keep))
		for i, k := range keep {
			row[i] = r[k]
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

func pyTuple(list []string) string {
	s := pyRepr(list)
	s = "(" + s[1:len(s)-1]
	if len(list) == 1 {
		s += ","
	}
	return s + ")"
}

// Sort orders the rows by columns, the first named weighing most; unknown columns are passed over, and so are columns
// whose values cannot be compared. Nulls come last (first when descending).
func (t Table) Sort(columns []string, descending bool) {
	for i := len(columns) - 1; i >= 0; i-- {
		at := -1
		for j, c := range t.Columns {
			if c == columns[i] {
				at = j
			}
		}
		if at < 0 || !sortable(t.Rows, at) {
			continue
		}
		sort.SliceStable(t.Rows, func(a, b int) bool {
			if descending {
				return cellLess(t.Rows[b][at], t.Rows[a][at])
			}
			return cellLess(t.Rows[a][at], t.Rows[b][at])
		})
	}
}

func sortable(rows [][]Cell, at int) bool {
	kind := ""
	for _, r := range rows {
		if r[at].Value == nil {
			continue
		}
		k := fmt.Sprintf("%T", r[at].Value)
		if r[at].Complex || k == "*client.Object" || k == "[]interface {}" || kind != "" && k != kind {
			return false
		}
		kind = k
	}
	return true
}

func cellLess(a, b Cell) bool {
	if a.Value == nil || b.Value == nil {
		return a.Value != nil && b.Value == nil
	}
	switch x := a.Value.(type) {
	case string:
		return x < b.Value.(string)
	case bool:
		return !x && b.Value.(bool)
	case json.Number:
		fx, errX := x.Float64()
		fy, errY := b.Value.(json.Number).Float64()
		return errX == nil && errY == nil && fx < fy
	}
	return false
}

// titleCase makes a label of an attribute: vnfProductName is Vnf Product Name.
func titleCase(attr string) string {
	var b strings.Builder
	start := true
	for i, r := range attr {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
			start = true
		}
		switch {
		case !unicode.IsLetter(r):
			start = true
			b.WriteRune(r)
		case start:
			b.WriteRune(unicode.ToUpper(r))
			start = false
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
