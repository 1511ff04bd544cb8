package nfvo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// catalogue reads the NFVO's VNF packages.
type catalogue struct{ nfvo peer }

// find returns the onboarded package that holds the VNFD, an enabled one before others, with its checksum when the NFVO
// tells it; nil when the NFVO has none.
func (c catalogue) find(ctx context.Context, vnfdID string) (*sol003.VnfPkgInfo, error) {
	u := *c.nfvo.collection
	u.RawQuery = "filter=" + url.QueryEscape("(eq,vnfdId,"+quoted(vnfdID)+")")
	const what = "the list of VNF packages"
	a, err := c.nfvo.send(ctx, http.MethodGet, &u, nil)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, a.refusal(what)
	}
	var list []sol003.VnfPkgInfo
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "The NFVO answered with what is no list of VNF packages: %w", err)
	}
	// The filter is repeated: not every NFVO heeds it, and what it lists besides is not meant.
	var found *sol003.VnfPkgInfo
	for n := range list {
		p := &list[n]
		if p.VnfdId != vnfdID || p.OnboardingState != "" && p.OnboardingState != sol003.PackageOnboardingStateTypeOnboarded {
			continue
		}
		if found == nil || found.OperationalState == sol003.PackageOperationalStateTypeDisabled {
			found = p
		}
	}
	if found == nil || found.Checksum != nil {
		return found, nil
	}
	// Lists leave the checksum out unless they are asked for it (SOL003 §10.4.2.3.2).
	at, err := c.resource(found.Id)
	if err != nil {
		return nil, err
	}
	if a, err = c.nfvo.send(ctx, http.MethodGet, at, nil); err != nil {
		return nil, err
	}
	var whole sol003.VnfPkgInfo
	switch {
	case a.status == http.StatusOK && json.Unmarshal(a.body, &whole) == nil:
		found.Checksum = whole.Checksum
	case lcm.Is(a.refusal(what), lcm.KindRetryable):
		return nil, a.refusal("VNF package " + found.Id)
	} // an NFVO that has but the list has no checksum for us
	return found, nil
}

// quoted writes a filter's value (SOL013 v2.6.1 §5.2.2).
func quoted(value string) string {
	if !strings.ContainsAny(value, "',)") && strings.TrimSpace(value) == value {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// resource is the URL of a package, or of what is below it. Terminal: an id that is no part of a path.
func (c catalogue) resource(id string, below ...string) (*url.URL, error) {
	if id == "" || id == "." || id == ".." || len(id) > 255 {
		return nil, lcm.Errorf(lcm.KindTerminal, "The NFVO lists a VNF package whose id cannot be: %q", id)
	}
	u, err := url.Parse(c.nfvo.collection.String() + "/" + strings.Join(append([]string{url.PathEscape(id)}, below...), "/"))
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "The NFVO lists a VNF package whose id cannot be: %q", id)
	}
	return u, nil
}

// localID is the id that a package of the NFVO's has here: the same, so that both speak of one thing, or one made of it
// where the NFVO's is no UUID.
func (c catalogue) localID(id string) string {
	if u, err := uuid.Parse(id); err == nil {
		return u.String()
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.nfvo.collection.String()+"/"+id)).String()
}

// content opens a package's zip (SOL003 v2.6.1 §10.4.5.3.2). Reading fails when nothing comes for the peer's timeout.
func (c catalogue) content(ctx context.Context, id string) (io.ReadCloser, error) {
	u, err := c.resource(id, "package_content")
	if err != nil {
		return nil, err
	}
	stalled := lcm.Errorf(lcm.KindRetryable, "the NFVO at %s sent nothing for %s", u.Host, c.nfvo.timeout)
	moving, stop := context.WithCancelCause(ctx)
	watch := time.AfterFunc(c.nfvo.timeout, func() { stop(stalled) })
	t := &transfer{ctx: moving, watch: watch, stop: stop, stall: c.nfvo.timeout}
	const accept = "application/zip, application/octet-stream, application/problem+json"
	res, err := c.nfvo.open(moving, http.MethodGet, u, nil, accept) //nolint:bodyclose // closed with the transfer
	watch.Stop()
	if err != nil {
		defer stop(nil)
		if ctx.Err() == nil && moving.Err() != nil {
			return nil, stalled
		}
		return nil, c.nfvo.unreached(ctx, u, err)
	}
	t.body = res.Body
	if res.StatusCode == http.StatusOK {
		return t, nil
	}
	defer func() { _ = t.Close() }()
	a, err := c.nfvo.read(ctx, u, &http.Response{StatusCode: res.StatusCode, Header: res.Header, Body: t})
	if err != nil {
		return nil, err
	}
	return nil, a.refusal("the content of VNF package " + id)
}

// transfer is a body that comes within time or fails.
type transfer struct {
	ctx   context.Context // of the request, done when the transfer stands still
	body  io.ReadCloser
	watch *time.Timer
	stop  context.CancelCauseFunc
	stall time.Duration
}

func (t *transfer) Read(p []byte) (int, error) {
	t.watch.Reset(t.stall)
	n, err := t.body.Read(p)
	t.watch.Stop() // storing takes its own time, which does not count
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(t.ctx); cause != nil {
			return n, cause
		}
		return n, fmt.Errorf("read the VNF package from the NFVO: %w", err)
	}
	return n, err
}

func (t *transfer) Close() error {
	t.watch.Stop()
	defer t.stop(nil)
	return t.body.Close()
}
