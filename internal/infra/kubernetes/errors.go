package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	case status >= 400 && status < 500, unfit(err), unsent(err):
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

// unsent tells whether a request was not even made, since what it is to carry is none of what the API knows.
func unsent(err error) bool {
	said := err.Error()
	return statusOf(err) == 0 && (strings.HasPrefix(said, "invalid namespace ") || strings.HasPrefix(said, "invalid resource name ") || strings.HasPrefix(said, "name is required") ||
		strings.HasPrefix(said, "resource name may not be empty") || strings.Contains(said, "unsupported protocol scheme"))
}

// discreet returns an error of applying an object that says nothing of what a Secret holds, which the API server may quote.
func discreet(i *item, err error) error {
	if err == nil || i.groupKind() != "Secret" || errors.Is(err, context.Canceled) {
		return err
	}
	status := statusOf(err)
	if status == 0 {
		return err
	}
	quoted := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || unfit(err)
	for _, field := range []string{"data", "stringData"} {
		quoted = quoted || quotes(err.Error(), i.Object[field])
	}
	if !quoted {
		return err
	}
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return err
	}
	clean := metav1.Status{Status: metav1.StatusFailure, Code: said.Status().Code, Reason: said.Status().Reason}
	clean.Message = fmt.Sprintf("the API server refuses it (%d %s); what it says is left out, since it may quote the Secret", clean.Code, clean.Reason)
	if unfit(err) { // by this the error is classed
		clean.Code, clean.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	}
	var fields []string
	if details := said.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field != "" && !quotes(cause.Field, i.Object["data"]) && !quotes(cause.Field, i.Object["stringData"]) {
				fields = append(fields, cause.Field)
			}
		}
	}
	if len(fields) > 0 {
		clean.Message += ": " + cut(strings.Join(fields, ", "))
	}
	return &apierrors.StatusError{ErrStatus: clean}
}

// quotes tells whether a text holds a value that is in v, as it is or decoded.
func quotes(said string, v any) bool {
	switch t := v.(type) {
	case nil:
		return false
	case map[string]any:
		for _, e := range t {
			if quotes(said, e) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(t, func(e any) bool { return quotes(said, e) })
	}
	value := strings.TrimSpace(fmt.Sprint(v))
	if value == "" {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(value)
	return strings.Contains(said, value) || err == nil && len(plain) > 0 && strings.Contains(said, string(plain))
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
