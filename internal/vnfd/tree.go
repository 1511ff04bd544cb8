package vnfd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	// maxYAMLDepth bounds nesting in a file, maxNodes the values of all files
	// after aliases are expanded.
	maxYAMLDepth = 100
	maxNodes     = 500_000
)

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	list
)

// node is a YAML value with its place. Its methods work on nil, which stands
// for an absent value.
type node struct {
	pos
	kind  kind
	value any            // scalar: string, bool or json.Number
	text  string         // scalar: as written
	keys  []entry        // mapping, in file order
	at    map[string]int // mapping: where in keys a key is
	items []*node        // list
	size  int            // this value and all below, aliases expanded
}

type entry struct {
	key string
	at  pos
	val *node
}

func (n *node) isNull() bool { return n == nil || n.kind == null }
func (n *node) isMap() bool  { return n != nil && n.kind == mapping }
func (n *node) isList() bool { return n != nil && n.kind == list }

// get walks down mappings and returns the value there, or nil.
func (n *node) get(keys ...string) *node {
	for _, k := range keys {
		if n == nil || n.kind != mapping {
			return nil
		}
		i, ok := n.at[k]
		if !ok {
			return nil
		}
		n = n.keys[i].val
	}
	return n
}

// entries returns the pairs of a mapping, none of anything else.
func (n *node) entries() []entry {
	if n == nil || n.kind != mapping {
		return nil
	}
	return n.keys
}

// elems returns the items of a list, none of anything else.
func (n *node) elems() []*node {
	if n == nil || n.kind != list {
		return nil
	}
	return n.items
}

// str returns a scalar as text: strings as they are, other scalars as written.
func (n *node) str() (string, bool) {
	if n == nil || n.kind != scalar {
		return "", false
	}
	if s, ok := n.value.(string); ok {
		return s, true
	}
	return n.text, true
}

func (n *node) string() string {
	s, _ := n.str()
	return s
}

// strings returns the scalars of a list, or a lone scalar, as text.
func (n *node) strings() []string {
	if s, ok := n.str(); ok {
		return []string{s}
	}
	var out []string
	for _, item := range n.elems() {
		if s, ok := item.str(); ok {
			out = append(out, s)
		}
	}
	return out
}

// plain converts a value to what a [Tree] holds.
func (n *node) plain() any {
	if n == nil {
		return nil
	}
	switch n.kind {
	case scalar:
		return n.value
	case mapping:
		m := make(map[string]any, len(n.keys))
		for _, e := range n.keys {
			m[e.key] = e.val.plain()
		}
		return m
	case list:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.plain()
		}
		return l
	}
	return nil
}

// parser turns the YAML library's nodes into ours.
type parser struct {
	file   string
	report *report
	done   map[*yaml.Node]*node // nil while the node is being built
	budget *int
	failed bool
}

// parseYAML reads a file of exactly one document whose root is a mapping. It
// returns nil after reporting why when it cannot.
func parseYAML(file string, data []byte, rep *report, budget *int) *node {
	doc, err := loadDocument(data)
	if err != nil {
		p := pos{file: file}
		msg := err.Error()
		var le *yaml.LoadError
		if errors.As(err, &le) {
			p.line, p.col = le.Mark.Line, le.Mark.Column
			msg = le.Message
			if le.ContextMsg != "" {
				msg = le.ContextMsg + ": " + msg
			}
		}
		rep.add(p, RuleYAML, "invalid YAML: %s", msg)
		return nil
	}
	p := &parser{file: file, report: rep, done: map[*yaml.Node]*node{}, budget: budget}
	n := p.build(doc, 0)
	if p.failed {
		return nil
	}
	if n.size > *budget {
		rep.add(pos{file: file}, RuleLimit, "the descriptor has more than %d values", maxNodes)
		return nil
	}
	*budget -= n.size
	if !n.isMap() {
		rep.add(pos{file, max(n.line, 1), max(n.col, 1)}, RuleSyntax, "the file is not a TOSCA service template: its root is not a mapping")
		return nil
	}
	return n
}

// loadDocument returns the root of the only document in data. A defect of the
// YAML library that panics on hostile text becomes an error here, so that it
// cannot take the process down.
func loadDocument(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("the text cannot be parsed: %v", r)
		}
	}()
	l, err := yaml.NewLoader(bytes.NewReader(data),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxYAMLDepth))))
	if err != nil {
		return nil, err
	}
	var doc, more yaml.Node
	if err := l.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return &yaml.Node{Kind: yaml.ScalarNode}, nil
		}
		return nil, err
	}
	switch err := l.Load(&more); {
	case err == nil:
		return nil, errors.New("the file holds more than one document")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	root = &doc
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) != 1 {
			return &yaml.Node{Kind: yaml.ScalarNode}, nil
		}
		root = doc.Content[0]
	}
	return root, nil
}

func (p *parser) at(y *yaml.Node) pos { return pos{p.file, y.Line, y.Column} }

func (p *parser) fail(y *yaml.Node, rule, format string, args ...any) *node {
	p.failed = true
	p.report.add(p.at(y), rule, format, args...)
	return &node{pos: p.at(y), size: 1}
}

// build converts y. An alias shares the node it stands for, so that memory
// stays in proportion to the text; size tells what expanding it would cost.
func (p *parser) build(y *yaml.Node, depth int) *node {
	if depth > maxYAMLDepth {
		return p.fail(y, RuleLimit, "values are nested deeper than %d", maxYAMLDepth)
	}
	if y.Kind == yaml.AliasNode {
		if y.Alias == nil {
			return p.fail(y, RuleYAML, "unknown alias")
		}
		n, ok := p.done[y.Alias]
		switch {
		case !ok:
			return p.fail(y, RuleYAML, "unknown alias %q", y.Value)
		case n == nil:
			return p.fail(y, RuleYAML, "the alias %q contains itself", y.Value)
		}
		return n
	}
	if y.Anchor != "" {
		p.done[y] = nil
	}
	n := &node{pos: p.at(y), size: 1}
	if tag := explicitTag(y); y.Kind != yaml.ScalarNode && tag != "" && tag != "map" && tag != "seq" && tag != "!" {
		return p.fail(y, RuleYAML, "unknown tag %q", y.Tag)
	}
	switch y.Kind {
	case yaml.ScalarNode:
		p.scalar(y, n)
	case yaml.SequenceNode:
		n.kind = list
		n.items = make([]*node, 0, len(y.Content))
		for _, c := range y.Content {
			p.grow(y, n, p.build(c, depth+1), func(v *node) { n.items = append(n.items, v) })
		}
	case yaml.MappingNode:
		n.kind = mapping
		p.pairs(y, n, depth)
	default:
		return p.fail(y, RuleYAML, "unexpected YAML construct")
	}
	if y.Anchor != "" {
		p.done[y] = n
	}
	return n
}

// grow adds v below n unless the expanded size gets out of hand.
func (p *parser) grow(y *yaml.Node, n, v *node, add func(*node)) {
	n.size += v.size
	if n.size > *p.budget {
		n.size = *p.budget + 1
		if !p.failed {
			p.fail(y, RuleLimit, "the descriptor has more than %d values after aliases are expanded", maxNodes)
		}
		return
	}
	add(v)
}

func (p *parser) pairs(y *yaml.Node, n *node, depth int) {
	at := make(map[string]int, len(y.Content)/2)
	n.at = at
	var merges []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, c := y.Content[i], y.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.Style&^yaml.TaggedStyle == 0 && k.Value == "<<" {
			merges = append(merges, p.build(c, depth+1))
			continue
		}
		kn := p.build(k, depth+1)
		if kn.kind != scalar && kn.kind != null {
			p.fail(k, RuleYAML, "a mapping's key is not a scalar")
			continue
		}
		key := keyText(kn)
		if _, dup := at[key]; dup {
			p.fail(k, RuleDuplicate, "the key %q is given twice", key)
			continue
		}
		p.grow(y, n, p.build(c, depth+1), func(v *node) {
			at[key] = len(n.keys)
			n.keys = append(n.keys, entry{key, p.at(k), v})
		})
	}
	for _, m := range merges {
		sources := []*node{m}
		if m.isList() {
			sources = m.items
		}
		for _, s := range sources {
			if !s.isMap() {
				p.fail(y, RuleYAML, `the value of "<<" is not a mapping`)
				return
			}
			for _, e := range s.keys {
				if _, has := at[e.key]; has {
					continue
				}
				p.grow(y, n, e.val, func(v *node) {
					at[e.key] = len(n.keys)
					n.keys = append(n.keys, entry{e.key, e.at, v})
				})
			}
		}
	}
}

// keyText is how a scalar key looks once it is a JSON object's key.
func keyText(n *node) string {
	switch v := n.value.(type) {
	case string:
		return v
	case bool:
		if v {
			return "true"
		}
		return "false"
	case json.Number:
		return v.String()
	}
	return "null"
}

// explicitTag returns the tag that the text gives a value, in short form.
func explicitTag(y *yaml.Node) string {
	if y.Style&yaml.TaggedStyle == 0 {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(y.Tag, "tag:yaml.org,2002:"), "!!")
}

func (p *parser) scalar(y *yaml.Node, n *node) {
	n.text = strings.ToValidUTF8(y.Value, "\uFFFD")
	n.kind = scalar
	quoted := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch explicitTag(y) {
	case "":
		if quoted {
			n.value = n.text
			return
		}
		n.value = resolveScalar(n.text)
	case "str", "!", "binary", "timestamp":
		n.value = n.text
	case "null":
		n.value = nil
	case "int", "bool", "float":
		n.value = resolveScalar(n.text)
	default:
		p.fail(y, RuleYAML, "unknown tag %q", y.Tag)
	}
	if n.value == nil {
		n.kind = null
	}
}
