package openstack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
)

// doc is a JSON object.
type doc = map[string]any

// api is a service of a cloud, as one account uses it.
type api struct {
	name   string
	client *gophercloud.ServiceClient
}

// answer is what a service has answered.
type answer struct {
	what   string // the request
	status int
	header http.Header
	doc    doc // when the body is an object
	text   string
}

// do makes one call; the path is below the service's endpoint. A body that is no io.Reader is sent as JSON. Redirects are not
// followed, and any status is an answer.
func (a *api) do(t *testing.T, method, path string, body any, header ...string) *answer {
	t.Helper()
	r, err := a.try(method, path, body, header...)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", a.name, method, path, err)
	}
	return r
}

func (a *api) try(method, path string, body any, header ...string) (*answer, error) {
	address := path
	if !strings.HasPrefix(path, "http") {
		address = a.client.ServiceURL(path)
	}
	send := func() (*answer, error) {
		var data io.Reader
		kind := "application/json"
		switch b := body.(type) {
		case nil:
		case []byte:
			data, kind = bytes.NewReader(b), "application/octet-stream"
		default:
			raw, err := json.Marshal(b)
			if err != nil {
				return nil, err
			}
			data = bytes.NewReader(raw)
		}
		req, err := http.NewRequestWithContext(context.Background(), method, address, data)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Accept", "application/json")
		req.Header.Set("X-Auth-Token", a.client.Token())
		for n := 0; n+1 < len(header); n += 2 {
			req.Header.Set(header[n], header[n+1])
		}
		resp, err := a.client.HTTPClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		r := &answer{what: a.name + ": " + method + " " + path, status: resp.StatusCode, header: resp.Header, text: string(raw)}
		_ = json.Unmarshal(raw, &r.doc) // some answers are no JSON
		return r, nil
	}
	return send()
}

// get reads what must be there.
func (a *api) get(t *testing.T, path string, header ...string) *answer {
	t.Helper()
	return a.do(t, http.MethodGet, path, nil, header...).is(t, http.StatusOK)
}

// is fails the case unless the status is one of those.
func (r *answer) is(t *testing.T, status ...int) *answer {
	t.Helper()
	if !slices.Contains(status, r.status) {
		t.Fatalf("%s: status %d, want %v: %s", r.what, r.status, status, r.text)
	}
	return r
}

// says fails the case unless the answer has the status and its body all the texts.
func (r *answer) says(t *testing.T, status int, texts ...string) *answer {
	t.Helper()
	r.is(t, status)
	said := strings.NewReplacer("&#x27;", "'", "&quot;", `"`).Replace(r.text)
	for _, want := range texts {
		if !strings.Contains(said, want) {
			t.Errorf("%s: does not say %q: %s", r.what, want, said)
		}
	}
	return r
}

// at returns what is at a path of a document, nil when nothing is.
func at(d any, path ...string) any {
	for _, p := range path {
		m, _ := d.(doc)
		d = m[p]
	}
	return d
}

// text returns the text at a path, "" when there is none.
func text(d any, path ...string) string {
	s, _ := at(d, path...).(string)
	return s
}

// list returns the objects at a path.
func list(d any, path ...string) []doc {
	l, _ := at(d, path...).([]any)
	out := make([]doc, 0, len(l))
	for _, x := range l {
		if m, ok := x.(doc); ok {
			out = append(out, m)
		}
	}
	return out
}

// words returns the texts of a list.
func words(d any, path ...string) []string {
	l, _ := at(d, path...).([]any)
	out := make([]string, 0, len(l))
	for _, x := range l {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// one returns the only object of a list.
func one(t *testing.T, r *answer, path ...string) doc {
	t.Helper()
	l := list(r.doc, path...)
	if len(l) != 1 {
		t.Fatalf("%s: %d of %s, want one: %s", r.what, len(l), strings.Join(path, "."), r.text)
	}
	return l[0]
}

// same fails the case unless got is want.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
