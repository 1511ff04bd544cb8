package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxSaid bounds how much of an answer's text is taken over.
const maxSaid = 4096

func cut(s string) string {
	if len(s) > maxSaid {
		s = s[:maxSaid] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// wrap classes an error of a call to the API server. What passes (no connection, 408, 409, 429, 5xx, credentials that have
// only just begun to be refused) is retryable; what does not (other 4xx, a certificate that does not verify) is terminal.
// Errors of ours and of the context stay.
func (c *cluster) wrap(doing string, err error) error {
	var own *lcm.Error
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.As(err, &own) {
		return own
	}
	kind := lcm.KindRetryable
	status := statusOf(err)
	said := reason(err)
	switch {
	case status == http.StatusUnauthorized:
		if c.refusedFor() >= c.driver.cfg.LoginGrace {
			kind = lcm.KindTerminal
		}
		said = "the credentials are refused (" + said + ")"
	case passes(status, err), status == http.StatusForbidden && !c.settled():
	case status >= 400 && status < 500, unfit(err):
		kind = lcm.KindTerminal
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		kind = lcm.KindTerminal
	}
	return &lcm.Error{Kind: kind, Detail: "VIM " + c.name + ": cannot " + doing + ": " + said, Err: err}
}

// settledFor is how long an API server that was ready counts as so.
const settledFor = 5 * time.Second

// settled tells whether the API server is ready: one that has only just been started allows nobody anything, since it does not
// know yet who may do what. It is asked only after it has forbidden something.
func (c *cluster) settled() bool {
	c.mu.Lock()
	at := c.readyAt
	c.mu.Unlock()
	if time.Since(at) < settledFor {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.driver.cfg.DialTimeout)
	defer cancel()
	err := c.raw.Get().AbsPath("/readyz").Do(ctx).Error()
	status := statusOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil, status == http.StatusNotFound:
	case status == http.StatusForbidden: // as long as nobody is allowed anything, or because the operator wants it so
		if c.deniedSince.IsZero() {
			c.deniedSince = time.Now()
		}
		if time.Since(c.deniedSince) < c.driver.cfg.LoginGrace {
			return false
		}
	default:
		return false
	}
	c.readyAt, c.deniedSince = time.Now(), time.Time{}
	return true
}

// passes tells whether a refusal is one that passes.
func passes(status int, err error) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusConflict:
		return true
	case http.StatusForbidden:
		// A namespace that has only just been made has no default ServiceAccount yet.
		return strings.Contains(reason(err), "error looking up service account")
	}
	return false
}

// unfit tells whether the API server could not make sense of an object, which it reports as a failure of its own.
func unfit(err error) bool {
	said := err.Error()
	return strings.Contains(said, "failed to create typed patch object") || strings.Contains(said, "field not declared in schema")
}

// statusOf returns the HTTP status in an error, 0 when there is none.
func statusOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

// reason returns what the API server said, or the error's own text.
func reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return cut(status.Status().Message)
	}
	var own *lcm.Error
	if errors.As(err, &own) {
		return own.Detail
	}
	return cut(err.Error())
}

// terminating tells whether something is refused since its namespace is being deleted.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating")
}

// isGone tells whether an error says that an object is not there, its kind and its namespace included.
func isGone(err error) bool {
	return statusOf(err) == http.StatusNotFound || errors.Is(err, errNoKind)
}

func isForbidden(err error) bool { return statusOf(err) == http.StatusForbidden }

// note notes since when the credentials are refused.
func (c *cluster) note(refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !refused:
		c.refusedSince = time.Time{}
	case c.refusedSince.IsZero():
		c.refusedSince = time.Now()
	}
}

func (c *cluster) refusedFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusedSince.IsZero() {
		return 0
	}
	return time.Since(c.refusedSince)
}
