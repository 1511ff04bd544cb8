package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Client sends the requests of the command line to a VNF manager.
type Client struct {
	auth      Auth
	http      *http.Client
	endpoint  string
	token     string
	userAgent string
	major     string
	sleep     func(ctx context.Context, d time.Duration) error
	now       func() time.Time
}

// New makes a client. Nothing is sent before the first request, which logs in when the auth type asks for it. Errors
// are incomplete credentials and TLS files that cannot be read.
func New(auth Auth) (*Client, error) {
	if err := auth.check(); err != nil {
		return nil, err
	}
	h, err := auth.httpClient()
	if err != nil {
		return nil, err
	}
	c := &Client{auth: auth, http: h, userAgent: "vnfm", major: auth.APIVersion, sleep: sleep, now: time.Now}
	if c.major == "" {
		c.major = "1"
	}
	if auth.kind() != "password" {
		c.endpoint = strings.TrimRight(auth.Endpoint, "/")
		if c.endpoint == "" {
			c.endpoint = DefaultEndpoint
		}
	}
	return c, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// request is one call of the API.
type request struct {
	method, path string
	query        string
	body         *Object   // sent as JSON
	stream       io.Reader // sent as it is, with its length
	length       int64
	contentType  string // of stream
	accept       string // application/json when empty
	version      string // Version header, none when empty
}

// answer is a success. Value is its JSON, nil for 202 and 204; raw its body when it is not JSON.
type answer struct {
	status int
	header http.Header
	value  any
	raw    []byte
}

// prepare makes the HTTP request.
func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	if c.auth.kind() == "password" && c.token == "" {
		if err := c.login(ctx); err != nil {
			return nil, err
		}
	}
	target := c.endpoint + r.path
	if r.query != "" {
		target += "?" + r.query
	}
	var body io.Reader
	if r.body != nil {
		body = strings.NewReader(pyJSON(r.body, 0))
	} else if r.stream != nil {
		body = r.stream
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if r.stream != nil {
		req.ContentLength = r.length
		req.Header.Set("Content-Type", r.contentType)
	} else if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
		if r.method == http.MethodPatch {
			req.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.version != "" {
		req.Header.Set("Version", r.version)
	}
	switch c.auth.kind() {
	case "none":
		req.Header.Set("X-Auth-Token", "notused")
	case "admin_token":
		req.Header.Set("X-Auth-Token", c.auth.Token)
	case "password":
		req.Header.Set("X-Auth-Token", c.token)
	case "http_basic":
		req.SetBasicAuth(c.auth.Username, c.auth.Password)
	}
	return req, nil
}

// open sends a request and returns the open answer of a success. A token that Keystone no longer honours is renewed
// once.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	for try := 0; ; try++ {
		req, err := c.prepare(ctx, r)
		if err != nil {
			return nil, err
		}
		resp, err := c.send(req)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
			return resp, nil
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if err != nil {
			return nil, &ConnectError{URL: req.URL.Redacted(), Err: err}
		}
		renew := resp.StatusCode == http.StatusUnauthorized && c.auth.kind() == "password" && try == 0
		if renew && r.stream != nil {
			seeker, ok := r.stream.(io.Seeker)
			if renew = ok; ok {
				if _, err := seeker.Seek(0, io.SeekStart); err != nil {
					return nil, fmt.Errorf("send the file again: %w", err)
				}
			}
		}
		if !renew {
			return nil, answerError(resp.StatusCode, resp.Header, body)
		}
		c.token = ""
	}
}

// call sends a request and reads the answer.
func (c *Client) call(ctx context.Context, r request) (*answer, error) {
	resp, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return nil, &ConnectError{URL: c.endpoint + r.path, Err: err}
	}
	if a.status == http.StatusAccepted || a.status == http.StatusNoContent {
		return a, nil
	}
	if a.value, err = ParseJSON(a.raw); err != nil {
		return nil, errors.New("Malformed response body: Cannot understand JSON")
	}
	return a, nil
}

// object makes a call whose answer is one JSON object.
func (c *Client) object(ctx context.Context, r request) (*Object, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	o, ok := a.value.(*Object)
	if !ok {
		return nil, fmt.Errorf("%s %s: the answer is not a JSON object", r.method, r.path)
	}
	return o, nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?next"?`)

// list makes a call whose answer is a list, and follows its pages (SOL013 §5.4.2.3). Of a link to the next page only
// the query counts.
func (c *Client) list(ctx context.Context, r request, wrapped string) ([]*Object, error) {
	out := []*Object{}
	seen := map[string]bool{r.query: true}
	for {
		a, err := c.call(ctx, r)
		if err != nil {
			return nil, err
		}
		items, ok := a.value.([]any)
		if o, isObject := a.value.(*Object); isObject && wrapped != "" {
			items, ok = o.Values[wrapped].([]any)
		}
		if !ok {
			return nil, fmt.Errorf("GET %s: the answer is not a list", r.path)
		}
		for _, i := range items {
			o, ok := i.(*Object)
			if !ok {
				return nil, fmt.Errorf("GET %s: an entry of the list is not an object", r.path)
			}
			out = append(out, o)
		}
		m := nextLink.FindStringSubmatch(strings.Join(a.header.Values("Link"), ", "))
		if m == nil {
			return out, nil
		}
		u, err := url.Parse(m[1])
		if err != nil {
			return nil, fmt.Errorf("GET %s: link to the next page: %w", r.path, err)
		}
		if seen[u.RawQuery] {
			return nil, fmt.Errorf("GET %s: the pages go round in a circle", r.path)
		}
		seen[u.RawQuery] = true
		r.query = u.RawQuery
	}
}

// lcm returns the path of the vnflcm API of the major version in use, and the Version header that goes with it.
func (c *Client) lcm(path string) (string, string) {
	if c.major == "2" {
		return "/vnflcm/v2" + path, "2.0.0"
	}
	return "/vnflcm/v1" + path, "1.3.0"
}

// seg makes one path segment of an id, so that no id can reach another resource.
func seg(id string) string { return url.PathEscape(id) }

// ReadParamFile reads a JSON parameter file: an object that is not empty. Errors are *[InputError].
func ReadParamFile(path string) (*Object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("File %s does not exist or user does not have read privileges to it", path)}
	}
	v, err := ParseJSON(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("Failed to load parameter file. Error: %v", err)}
	}
	if o, ok := v.(*Object); ok && len(o.Keys) > 0 {
		return o, nil
	}
	if list, ok := v.([]any); v == nil || v == "" || v == false || ok && len(list) == 0 || isEmptyObject(v) {
		return nil, &InputError{Reason: "The parameter file is empty"}
	}
	return nil, &InputError{Reason: "The parameter file is not a JSON object"}
}

func isEmptyObject(v any) bool {
	o, ok := v.(*Object)
	return ok && len(o.Keys) == 0
}

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func firstSegment(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}
