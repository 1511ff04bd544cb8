package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi"
)

// document reads one of the OpenAPI documents with what it refers to.
func document(name string) (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, at *url.URL) ([]byte, error) { return openapi.Documents.ReadFile(at.Path) }
	doc, err := loader.LoadFromURI(&url.URL{Path: name})
	if err == nil {
		err = doc.Validate(loader.Context)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return doc, nil
}

// contract holds what goes to and fro against an OpenAPI document.
type contract struct {
	router  routers.Router
	problem *openapi3.SchemaRef
}

func newContract(name string) (*contract, error) {
	doc, err := document(name)
	if err != nil {
		return nil, err
	}
	c := &contract{problem: doc.Components.Responses["Problem"].Value.Content.Get("application/problem+json").Schema}
	if c.router, err = legacy.NewRouter(doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func (c *contract) input(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	copied := r.Clone(context.Background())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	copied.ContentLength = int64(len(body))
	copied.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	route, params, err := c.router.FindRoute(copied)
	if err != nil {
		return nil, fmt.Errorf("%s %s is in no document: %w", r.Method, r.URL.Path, err)
	}
	o := &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true}
	o.WithCustomSchemaErrorFunc(func(err *openapi3.SchemaError) string { // without the whole schema
		return "/" + strings.Join(err.JSONPointer(), "/") + ": " + err.Reason
	})
	return &openapi3filter.RequestValidationInput{Request: copied, PathParams: params, Route: route, Options: o}, nil
}

// request holds a request against the document.
func (c *contract) request(r *http.Request, body []byte) error {
	in, err := c.input(r, body)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// response holds a response to a request against the document. What is answered to a method that is not there must be a
// problem.
func (c *contract) response(r *http.Request, a *answer) error {
	if a.status == http.StatusMethodNotAllowed {
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			return fmt.Errorf("no problem: %w", err)
		}
		return c.problem.Value.VisitJSON(v)
	}
	in, err := c.input(r, nil)
	if err != nil {
		return err
	}
	if len(a.body) == 0 {
		if a.status >= http.StatusBadRequest {
			return fmt.Errorf("status %d has no body", a.status)
		}
		documented := in.Route.Operation.Responses.Status(a.status)
		if documented == nil || len(documented.Value.Content) > 0 {
			return fmt.Errorf("status %d with no body is not documented", a.status)
		}
		return nil
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Options: in.Options,
	})
}
