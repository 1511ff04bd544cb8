package nfvotest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi"
)

// document reads grant.yaml with what it refers to, once.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, at *url.URL) ([]byte, error) { return openapi.Documents.ReadFile(at.Path) }
	doc, err := loader.LoadFromURI(&url.URL{Path: "grant.yaml"})
	if err != nil {
		return nil, fmt.Errorf("read grant.yaml: %w", err)
	}
	return doc, doc.Validate(loader.Context)
})

// Valid holds a JSON text against the schema of a message of the grant API: "GrantRequest" or "Grant".
func Valid(message string, raw []byte) error {
	doc, err := document()
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	post := doc.Paths.Value("/grant/v1/grants").Post
	var schema *openapi3.SchemaRef
	switch message {
	case "GrantRequest":
		schema = post.RequestBody.Value.Content.Get("application/json").Schema
	case "Grant":
		schema = post.Responses.Value("201").Value.Content.Get("application/json").Schema
	default:
		return fmt.Errorf("the grant API has no message %q", message)
	}
	return schema.Value.VisitJSON(v, openapi3.MultiErrors())
}
