package httpapi

import (
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// names is a tree of attribute names; a leaf means the attribute with all that is in it.
type names struct {
	leaf bool
	sub  map[string]*names
}

func (n *names) add(path []string) {
	for _, p := range path {
		if n.leaf {
			return
		}
		if n.sub == nil {
			n.sub = map[string]*names{}
		}
		next := n.sub[p]
		if next == nil {
			next = &names{}
			n.sub[p] = next
		}
		n = next
	}
	n.leaf, n.sub = true, nil
}

// spare takes out of what is to be left out whatever its structure must have (SOL013 v2.6.1 §5.3.2.2).
func (n *names) spare(resource *schema) {
	for name, sub := range n.sub {
		member := resource.at([]string{name})
		switch {
		case sub.leaf && slices.Contains(resource.Required, name):
			delete(n.sub, name)
		case !sub.leaf && member != nil:
			sub.spare(member)
		}
	}
}

// selection says what of a representation to show: all but drop, and of that what is in keep after all. The zero value
// shows everything.
type selection struct {
	drop, keep *names
}

func (s selection) everything() bool { return s.drop == nil }

// selectors are the attribute selectors of a list request (SOL013 v2.6.1 §5.3).
type selectors struct {
	allFields, excludeDefault bool
	fields, excludeFields     string
	clientsExclude            string // what python-tackerclient means by exclude_fields: its columns' names may be among it
	hasFields, hasExclude     bool
}

// parseSelectors reads the selectors out of a query.
func parseSelectors(q query) selectors {
	var s selectors
	s.allFields = q.has("all_fields")
	s.excludeDefault = q.has("exclude_default")
	s.fields, s.hasFields = q.get("fields"), q.has("fields")
	s.excludeFields, s.hasExclude = q.get("exclude_fields"), q.has("exclude_fields")
	if q.has("exclude-fields") { // as python-tackerclient sends it
		s.clientsExclude, s.hasExclude = q.get("exclude-fields"), true
	}
	return s
}

// selection turns the selectors into what to show of a resource with the schema, of which complex is what is left out
// unless asked for.
func (s selectors) selection(resource *schema, complexNames []string) (selection, error) {
	conflict := func(name, others string) error {
		return lcm.Errorf(lcm.KindInvalid, "Invalid query parameter combination: '%s' cannot be combined with %s", name, others)
	}
	switch {
	case s.allFields && (s.hasFields || s.hasExclude || s.excludeDefault):
		return selection{}, conflict("all_fields", "'fields' or 'exclude_fields' or 'exclude_default'")
	case s.hasFields && s.hasExclude:
		return selection{}, conflict("fields", "'all_fields' or 'exclude_fields'")
	case s.hasExclude && s.excludeDefault:
		return selection{}, conflict("exclude_fields", "'all_fields' or 'fields' or 'exclude_default'")
	case s.allFields:
		return selection{}, nil
	case s.hasExclude:
		for name := range strings.SplitSeq(s.clientsExclude, ",") {
			if top, _, _ := strings.Cut(name, "/"); resource.Properties[top] != nil {
				s.excludeFields = strings.TrimPrefix(s.excludeFields+","+name, ",")
			}
		}
		if s.excludeFields == "" && s.clientsExclude != "" {
			break // nothing of the resource's: as if it were not there
		}
		drop, err := parseNames("exclude_fields", s.excludeFields, resource)
		if err != nil {
			return selection{}, err
		}
		drop.spare(resource)
		return selection{drop: drop}, nil
	}
	out := selection{drop: &names{}}
	for _, c := range complexNames {
		out.drop.add([]string{c})
	}
	if s.hasFields {
		var err error
		if out.keep, err = parseNames("fields", s.fields, resource); err != nil {
			return selection{}, err
		}
	}
	return out, nil
}

func parseNames(parameter, text string, resource *schema) (*names, error) {
	out := &names{}
	for name := range strings.SplitSeq(text, ",") {
		path := strings.Split(strings.TrimSpace(name), "/")
		for i := range path {
			path[i] = nameEscapes.Replace(path[i])
		}
		if name == "" || len(path) > maxPath || resource.at(path) == nil {
			return nil, lcm.Errorf(lcm.KindInvalid, "Invalid query parameter '%s'. Value: %s", parameter, clip(text))
		}
		out.add(path)
	}
	return out, nil
}
