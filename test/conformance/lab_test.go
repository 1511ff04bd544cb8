package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// site is one server that cases are run against, prepared as it needs.
type site struct {
	url    string
	caller []string // headers of a caller who may do what is to be prepared
	vimID  string
	// The VNFDs of a package that scales and has two flavours, of one that has neither, and of one that is disabled.
	vnfdID, plainVnfdID, disabledVnfdID string
}

// lab is all that the cases have in common.
type lab struct {
	contract *contract
	issuer   *issuer
	callback *callbacks
	// open asks nobody who they are; guarded asks for a password or a token; granted asks an NFVO before it acts; crowded
	// serves one request at a time; strict serves each caller once.
	open, guarded, granted, crowded, strict *site

	nfvo *nfvo
	held net.Conn // on which the crowded server is given a request that does not end
}

// release ends the request that the crowded server is waiting for.
func (l *lab) release() {
	if l.held != nil {
		_ = l.held.Close()
		l.held = nil
	}
}

const basicUsers = "admin=admin-secret,operator=operator-secret,reader=reader-secret,stranger=stranger-secret"

func newLab(t *testing.T) *lab {
	t.Helper()
	c, err := newContract("vnflcm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{contract: c, issuer: newIssuer(t), callback: newCallbacks(t), nfvo: newNFVO(t)}
	t.Cleanup(l.release)
	fake := "VNFM_VIM_ALLOW_FAKE=true"
	l.open = l.site(t, true, nil, fake, "VNFM_PAGING_PAGE_SIZE=3", "VNFM_LIMITS_BODY=4MiB", "VNFM_NOTIFY_ALLOW=127.0.0.0/8")
	l.guarded = l.site(t, true, basic("operator"), fake, "VNFM_AUTH_MODES=basic,bearer", "VNFM_AUTH_BASIC_USERS="+basicUsers,
		"VNFM_AUTH_ROLES=admin=admin,operator=operator,reader=reader,stranger=operator",
		"VNFM_AUTH_PROJECTS=operator=p1,reader=p1,stranger=p2",
		"VNFM_AUTH_BEARER_ISSUER="+l.issuer.url, "VNFM_AUTH_BEARER_SCOPES=vnfm:all=admin", "VNFM_NOTIFY_ALLOW=127.0.0.0/8")
	l.granted = l.site(t, true, nil, fake, "VNFM_NFVO_GRANT_BASE_URL="+l.nfvo.GrantURL())
	l.crowded = l.site(t, false, nil, "VNFM_LIMITS_MAX_CONCURRENT=1", "VNFM_LIMITS_BODY_TIMEOUT=1h")
	l.strict = l.site(t, false, nil, "VNFM_LIMITS_REQUESTS_PER_SECOND=0.0001", "VNFM_LIMITS_BURST=1")
	return l
}

// site starts a server and, if it is to be worked with, registers the instant VIM and onboards the packages.
func (l *lab) site(t *testing.T, prepared bool, caller []string, env ...string) *site {
	t.Helper()
	cluster := harness.New(t, harness.Options{Env: env})
	s := &site{url: cluster.Nodes[0].URL, caller: caller}
	if !prepared {
		return s
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var vim struct{ Vim struct{ ID string } }
	s.must(ctx, t, "POST", "/v1.0/vims", "application/json",
		[]byte(`{"vim":{"type":"fake","auth_url":"http://fake","name":"f","is_default":true,"vim_project":{"name":"p"},"auth_cred":{"username":"u","password":"p"}}}`), &vim)
	s.vimID = vim.Vim.ID
	s.vnfdID = s.onboard(ctx, t, "kubernetes-cluster", true)
	s.plainVnfdID = s.onboard(ctx, t, "multi-port", true)
	s.disabledVnfdID = s.onboard(ctx, t, "", false)
	return s
}

// onboard has a package onboarded, and returns its VNFD's id. The one without a name is a copy under another id.
func (s *site) onboard(ctx context.Context, t *testing.T, name string, enabled bool) string {
	t.Helper()
	var zip []byte
	var err error
	if name == "" {
		zip = copied(t, "multi-port")
	} else if zip, err = deploy.Package(name); err != nil {
		t.Fatal(err)
	}
	const packages = "/vnfpkgm/v1/vnf_packages"
	var pkg sol003.VnfPkgInfo
	s.must(ctx, t, "POST", packages, "application/json", []byte(`{}`), &pkg)
	s.must(ctx, t, "PUT", packages+"/"+pkg.Id+"/package_content", "application/zip", zip, nil)
	err = harness.Await(ctx, "package "+name+" is onboarded", func(ctx context.Context) (bool, error) {
		s.must(ctx, t, "GET", packages+"/"+pkg.Id, "", nil, &pkg)
		if pkg.OnboardingFailureDetails != nil {
			return false, fmt.Errorf("it is refused: %s", pkg.OnboardingFailureDetails.Detail)
		}
		return pkg.OnboardingState == sol003.PackageOnboardingStateTypeOnboarded, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !enabled {
		s.must(ctx, t, "PATCH", packages+"/"+pkg.Id, "application/json", []byte(`{"operationalState":"DISABLED"}`), nil)
	}
	return pkg.VnfdId
}

// must sends what is no case of ours, and wants success.
func (s *site) must(ctx context.Context, t *testing.T, method, path, contentType string, body []byte, out any) {
	t.Helper()
	a, _, err := s.send(ctx, method, path, body, append([]string{"Content-Type: " + contentType}, s.caller...))
	if err != nil {
		t.Fatal(err)
	}
	if a.status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	if out != nil {
		if err := json.Unmarshal(a.body, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// text is a header.
func (a *answer) text(name string) string { return a.header.Get(name) }

// decode reads the body.
func decode[T any](x *exam, a *answer) T {
	x.t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		x.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

var client = &http.Client{
	Timeout:       5 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send sends a request; headers are given as "Name: value", and one without a value is left out.
func (s *site) send(ctx context.Context, method, path string, body []byte, headers []string) (*answer, *http.Request, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, in)
	if err != nil {
		return nil, nil, err
	}
	for _, line := range headers {
		if name, value, _ := strings.Cut(line, ": "); value != "" {
			r.Header.Add(name, value)
		}
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: raw}, r, nil
}

// exam is one case that is being run.
type exam struct {
	*lab
	t   *testing.T
	ctx context.Context
}

// request is what a case asks.
type request struct {
	on      *site // the open one when nil
	path    string
	body    string // none when empty
	headers []string
	// stretched says that the request is not as the document has it, and is taken all the same.
	stretched bool
}

const (
	jsonType  = "Content-Type: application/json"
	patchType = "Content-Type: application/merge-patch+json"
	// absent is an id that nothing has.
	absent = "99999999-9999-4999-8999-999999999999"
)

// malformed are the statuses of requests that do not keep to the document.
func malformed(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// ask sends a request, and holds it and its answer against the documents.
func (x *exam) ask(method string, q request) *answer {
	x.t.Helper()
	if q.on == nil {
		q.on = x.open
	}
	var body []byte
	if q.body != "" {
		body = []byte(q.body)
		if !named(q.headers, "Content-Type") {
			q.headers = append([]string{jsonType}, q.headers...)
		}
	}
	if !named(q.headers, "Authorization") {
		q.headers = append(q.headers, q.on.caller...)
	}
	a, r, err := q.on.send(x.ctx, method, q.path, body, q.headers)
	if err != nil {
		x.t.Fatal(err)
	}
	shown := fmt.Sprintf("%s %.200s", method, q.path)
	if err := x.contract.response(r, a); err != nil {
		x.t.Errorf("%s: the answer is not as the document says: %v\n%d %s", shown, err, a.status, a.body)
	}
	if !malformed(a.status) && !q.stretched {
		if err := x.contract.request(r, body); err != nil {
			x.t.Errorf("%s: the request is not as the document says, and is answered %d: %v\n%s", shown, a.status, err, body)
		}
	}
	x.common(shown, a)
	return a
}

func named(headers []string, name string) bool {
	for _, h := range headers {
		if strings.HasPrefix(h, name+":") {
			return true
		}
	}
	return false
}

// common is what holds of every answer.
func (x *exam) common(shown string, a *answer) {
	x.t.Helper()
	// Before it is known which API is meant there is no Version, and 304 has no content to have a type.
	early := a.status == http.StatusMethodNotAllowed || a.status == http.StatusRequestURITooLong || a.status == http.StatusServiceUnavailable
	if !strings.HasPrefix(a.text("X-Openstack-Request-Id"), "req-") || !early && a.text("Version") == "" ||
		a.text("Content-Type") == "" && a.status != http.StatusNotModified {
		x.t.Errorf("%s: headers %v", shown, a.header)
	}
	if a.status < 400 {
		return
	}
	p := decode[sol003.ProblemDetails](x, a)
	if ct := a.text("Content-Type"); ct != "application/problem+json" || p.Status != a.status || p.Detail == "" {
		x.t.Errorf("%s: %d with Content-Type %s: %s", shown, a.status, ct, a.body)
	}
	if strings.Contains(string(a.body), "secret") {
		x.t.Errorf("%s tells a secret: %s", shown, a.body)
	}
}

// want asks and wants a status.
func (x *exam) want(status int, method string, q request) *answer {
	x.t.Helper()
	a := x.ask(method, q)
	if a.status != status {
		x.t.Fatalf("%s %s with %.300s: %d %s, want %d", method, q.path, q.body, a.status, a.body, status)
	}
	return a
}

// at fills an id into a route that takes one.
func at(route, id string) string {
	before, rest, ok := strings.Cut(route, "{")
	if !ok {
		return route
	}
	_, after, _ := strings.Cut(rest, "}")
	return before + id + after
}
