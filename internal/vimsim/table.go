package vimsim

import (
	"slices"
	"strings"
)

// table holds the documents of one collection by id, in creation order.
type table struct {
	rows map[string]*row
	next int64
}

func newTable() *table { return &table{rows: map[string]*row{}} }

func (t *table) put(id string, d doc) {
	if r := t.rows[id]; r != nil {
		r.doc = d
		return
	}
	t.next++
	t.rows[id] = &row{seq: t.next, doc: d}
}

func (t *table) get(id string) (doc, bool) {
	if r := t.rows[id]; r != nil {
		return r.doc, true
	}
	return nil, false
}

func (t *table) del(id string) { delete(t.rows, id) }

func (t *table) len() int { return len(t.rows) }

// list returns the documents that keep accepts, oldest first; nil accepts all.
func (t *table) list(keep func(doc) bool) []doc {
	rows := make([]*row, 0, len(t.rows))
	for _, r := range t.rows {
		if keep == nil || keep(r.doc) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return int(a.seq - b.seq) })
	out := make([]doc, len(rows))
	for i, r := range rows {
		out[i] = r.doc
	}
	return out
}

// find returns the documents that have the id, or else the name.
func (t *table) find(nameOrID string, keep func(doc) bool) []doc {
	if d, ok := t.get(nameOrID); ok && (keep == nil || keep(d)) {
		return []doc{d}
	}
	return t.list(func(d doc) bool { return str(d, "name") == nameOrID && (keep == nil || keep(d)) })
}

func (t *table) count(project string) int {
	n := 0
	for _, r := range t.rows {
		if str(r.doc, "project_id") == project {
			n++
		}
	}
	return n
}

// public strips the simulator's own keys, which start with an underscore.
func public(d doc) doc {
	n := make(doc, len(d))
	for k, v := range d {
		if !strings.HasPrefix(k, "_") {
			n[k] = v
		}
	}
	return n
}
