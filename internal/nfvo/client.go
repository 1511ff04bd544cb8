package nfvo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

const (
	// maxAnswer is the largest answer that is read, a package's content excepted, in bytes.
	maxAnswer = 4 << 20
	// maxDetail is how much of what the NFVO says is repeated, in bytes.
	maxDetail = 1000
	// maxRetryAfter is the longest that a Retry-After is heeded.
	maxRetryAfter = 10 * time.Minute
)

// peer sends requests to one collection of the NFVO's.
type peer struct {
	collection *url.URL // without a slash at its end
	client     *outbound.Client
	version    string // of the Version header, "" for none
	timeout    time.Duration
	now        func() time.Time
}

// newPeer checks the configured URL, which may be the API's or that of the collection in it.
func newPeer(base, collection string, login outbound.Config, version string, timeout time.Duration) (peer, error) {
	u, err := url.Parse(base)
	if err != nil { // its text repeats the URL
		return peer{}, lcm.Errorf(lcm.KindInvalid, "the NFVO's address is not a URL")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return peer{}, lcm.Errorf(lcm.KindInvalid, "the NFVO's address %s must be an http or https URL without user, query and fragment",
			outbound.Shown(base))
	}
	u = u.JoinPath() // cleaned
	if !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/"+collection) {
		u = u.JoinPath(collection)
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	// The operator names the NFVO. Wherever a redirect leads, our credentials and the VNF's parameters are not for there. What
	// is read of an answer is limited where it is read.
	login.Guard, login.Redirects, login.MaxBody, login.Timeout = outbound.Anywhere(), 0, -1, 0
	client, err := outbound.New(login)
	if err != nil {
		return peer{}, fmt.Errorf("prepare to call the NFVO: %w", err)
	}
	return peer{u, client, version, cmp.Or(timeout, 20*time.Second), time.Now}, nil
}

// answer is what the NFVO answered, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
}

// send sends a request and reads the answer, within the timeout. Retryable: the NFVO could not be reached, or broke off;
// terminal: it answers too much.
func (p peer) send(ctx context.Context, method string, u *url.URL, body []byte) (*answer, error) {
	inTime, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	res, err := p.open(inTime, method, u, body, "application/json, application/problem+json")
	if err != nil {
		return nil, p.unreached(ctx, u, err)
	}
	defer func() { _ = res.Body.Close() }()
	return p.read(ctx, u, res)
}

func (p peer) read(ctx context.Context, u *url.URL, res *http.Response) (*answer, error) {
	a := &answer{status: res.StatusCode, header: res.Header, at: p.now()}
	var err error
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1)); err != nil {
		return nil, p.unreached(ctx, u, err)
	}
	if len(a.body) > maxAnswer {
		return nil, lcm.Errorf(lcm.KindTerminal, "the NFVO at %s answered with more than %d bytes", p.collection.Host, maxAnswer)
	}
	return a, nil
}

// open sends a request; the caller reads and closes the answer's body.
func (p peer) open(ctx context.Context, method string, u *url.URL, body []byte, accept string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.version != "" {
		req.Header.Set("Version", p.version)
	}
	return p.client.Do(req)
}

// unreached classes an error of transport; ctx is the caller's own, without the timeout of the request.
func (p peer) unreached(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the NFVO at %s: %w", u.Host, context.Cause(ctx))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return lcm.Errorf(lcm.KindRetryable, "the NFVO at %s did not answer within %s", u.Host, p.timeout)
	}
	return lcm.Errorf(lcm.KindRetryable, "the NFVO at %s could not be reached: %w", u.Host, err)
}

// refusal classes an answer that is no success: forbidden 403, retryable 408, 429 and 5xx, else terminal.
func (a *answer) refusal(what string) error {
	says := a.detail()
	switch {
	case a.status == http.StatusForbidden:
		return lcm.Errorf(lcm.KindForbidden, "The NFVO refused %s%s", what, says)
	case a.status == http.StatusUnauthorized:
		return lcm.Errorf(lcm.KindTerminal, "The NFVO did not accept our credentials for %s%s", what, says)
	case a.status == http.StatusRequestTimeout, a.status == http.StatusTooManyRequests, a.status >= 500:
		return lcm.Errorf(lcm.KindRetryable, "The NFVO answered %d to %s%s", a.status, what, says)
	case a.status >= 300 && a.status < 400:
		return lcm.Errorf(lcm.KindTerminal, "The NFVO answered %d to %s, and redirects are not followed", a.status, what)
	default:
		return lcm.Errorf(lcm.KindTerminal, "The NFVO answered %d to %s%s", a.status, what, says)
	}
}

// detail is what the NFVO says about its answer, with a colon before; "" when it says nothing that can be repeated.
func (a *answer) detail() string {
	var p sol003.ProblemDetails
	if json.Unmarshal(a.body, &p) != nil {
		return ""
	}
	text := lcm.RedactText(strings.TrimSpace(cmp.Or(p.Detail, p.Title)))
	if len(text) > maxDetail {
		text = text[:maxDetail]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		text += "…"
	}
	if text == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// retryAfter is how long the NFVO asks us to stay away, otherwise def (RFC 9110 §10.2.3).
func (a *answer) retryAfter(def time.Duration) time.Duration {
	value := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return min(time.Duration(min(seconds, int(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(a.at), 0), maxRetryAfter)
	}
	return def
}
