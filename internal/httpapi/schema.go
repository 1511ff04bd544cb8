package httpapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi"
)

// schema is a schema object of the OpenAPI documents, as far as ours use them.
type schema struct {
	Ref        string             `yaml:"$ref"`
	Type       string             `yaml:"type"`
	Format     string             `yaml:"format"`
	Pattern    string             `yaml:"pattern"`
	Enum       []string           `yaml:"enum"`
	Required   []string           `yaml:"required"`
	Properties map[string]*schema `yaml:"properties"`
	Additional any                `yaml:"additionalProperties"`
	Items      *schema            `yaml:"items"`
	AllOf      []*schema          `yaml:"allOf"`
	MinLength  *int               `yaml:"minLength"`
	MaxLength  *int               `yaml:"maxLength"`
	MinItems   *int               `yaml:"minItems"`
	MaxItems   *int               `yaml:"maxItems"`
	Minimum    *int64             `yaml:"minimum"`
	Nullable   bool               `yaml:"nullable"`

	pattern *regexp.Regexp
	names   []string // of Properties, sorted
	null    []string // those of them that may be null
	// freeForm marks the maps of strings to any value (SOL003 v2.6.1 §4.4.1.2).
	freeForm bool
}

// schemas returns the schemas of sol003.yaml and vnfm.yaml by name. The documents are embedded: that they can be read is
// a fact of the build, which the tests look after.
var schemas = sync.OnceValue(func() map[string]*schema {
	all := make(map[string]*schema)
	for _, name := range []string{"sol003.yaml", "vnfm.yaml"} {
		raw, err := openapi.Documents.ReadFile(name)
		if err != nil {
			panic("httpapi: the embedded " + name + ": " + err.Error())
		}
		s, err := readSchemas(raw)
		if err != nil {
			panic("httpapi: the embedded " + name + ": " + err.Error())
		}
		maps.Copy(all, s)
	}
	return all
})

func readSchemas(raw []byte) (map[string]*schema, error) {
	var doc struct {
		Components struct {
			Schemas map[string]*schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read schemas: %w", err)
	}
	all := doc.Components.Schemas
	if kv := all["KeyValuePairs"]; kv != nil {
		kv.freeForm = true
	}
	for name, s := range all {
		if err := s.link(all); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return all, nil
}

// link makes references direct. A schema of one allOf is that one.
func (s *schema) link(all map[string]*schema) error {
	resolve := func(p **schema) error {
		for {
			c := *p
			if len(c.AllOf) == 1 {
				*p = c.AllOf[0]
				continue
			}
			if c.Ref == "" {
				return c.link(all)
			}
			named, ok := all[strings.TrimPrefix(c.Ref, "#/components/schemas/")]
			if !ok {
				return fmt.Errorf("no schema %s", c.Ref)
			}
			*p = named // linked in its own turn
			return nil
		}
	}
	s.names, s.null = s.names[:0], s.null[:0]
	for name, p := range s.Properties {
		if p.Nullable { // said beside a reference, not by what it refers to
			s.null = append(s.null, name)
		}
		if err := resolve(&p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Properties[name] = p
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	if s.Items != nil {
		if err := resolve(&s.Items); err != nil {
			return err
		}
	}
	if s.Pattern != "" && s.pattern == nil {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		s.pattern = re
	}
	if open, ok := s.Additional.(bool); ok && open && len(s.Properties) == 0 {
		s.freeForm = true
	}
	return nil
}

// at returns the schema at a path of attribute names; arrays are descended into, and beneath a free-form map every name
// is known. It is nil when there is none.
func (s *schema) at(path []string) *schema {
	for _, name := range path {
		for s.Items != nil {
			s = s.Items
		}
		if s.freeForm {
			return &schema{}
		}
		next, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = next
	}
	for s.Items != nil {
		s = s.Items
	}
	return s
}
