package openstack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// wrap classes an error of a call to the VIM. What passes (no connection, a broken answer, 401 although we have logged
// in again, 408, 429, 5xx) is retryable and names the VIM; what does not (other 4xx) is terminal and is the service's
// own text, as users know it, if it has any. A certificate that does not verify does not pass either. Errors of ours and
// of the context stay.
func (c *cloud) wrap(doing string, err error) error {
	var own *lcm.Error
	if err == nil || errors.As(err, &own) || errors.Is(err, context.Canceled) {
		return err
	}
	kind := lcm.KindRetryable
	if status := statusOf(err); status >= 400 && status < 500 {
		switch status {
		case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		default:
			if said := reason(err); !strings.HasPrefix(said, silent) {
				return &lcm.Error{Kind: lcm.KindTerminal, Detail: said, Err: err}
			}
			kind = lcm.KindTerminal
		}
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		kind = lcm.KindTerminal
	}
	return &lcm.Error{Kind: kind, Detail: "VIM " + c.name + ": cannot " + doing + ": " + reason(err), Err: err}
}

// detail is what may be shown of an error: a classed one's detail without its cause, else its text.
func detail(err error) string {
	var own *lcm.Error
	if errors.As(err, &own) {
		return own.Detail
	}
	return err.Error()
}

// statusOf returns the HTTP status in an error, 0 when there is none.
func statusOf(err error) int {
	var refused *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &refused) {
		return http.StatusUnauthorized
	}
	var after *gophercloud.ErrErrorAfterReauthentication
	if errors.As(err, &after) {
		err = after.ErrOriginal
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return code.Actual
	}
	return 0
}

// silent begins the reason of an answer that says nothing.
const silent = "HTTP status "

// reason returns what a service said in an error, without headers and addresses; the error's own text when it said
// nothing.
func reason(err error) string {
	var refused *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &refused) {
		return "logging in again failed: " + reason(refused.ErrReauth)
	}
	var after *gophercloud.ErrErrorAfterReauthentication
	if errors.As(err, &after) {
		err = after.ErrOriginal
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &code) {
		return err.Error()
	}
	if said := message(code.Body); said != "" {
		return said
	}
	return silent + http.StatusText(code.Actual)
}

// maxSaid bounds how much of an answer's text is taken over.
const maxSaid = 4096

// message digs the text out of an error body: Heat's and Keystone's {"error": {"message"}}, Glance's {"message"} or
// plain text. Mark-up is of no use to anybody.
func message(body []byte) string {
	var shaped struct {
		Error       json.RawMessage `json:"error"`
		Message     string          `json:"message"`
		Explanation string          `json:"explanation"`
	}
	if json.Unmarshal(body, &shaped) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(shaped.Error, &inner) == nil && inner.Message != "" {
			return cut(inner.Message)
		}
		if shaped.Message != "" {
			return cut(shaped.Message)
		}
		return cut(shaped.Explanation)
	}
	s := strings.TrimSpace(string(body))
	if i := strings.Index(s, "<body>"); i >= 0 {
		s = s[i+len("<body>"):]
	}
	for {
		open := strings.IndexByte(s, '<')
		if open < 0 {
			break
		}
		end := strings.IndexByte(s[open:], '>')
		if end < 0 {
			break
		}
		s = s[:open] + " " + s[open+end+1:]
	}
	return cut(strings.Join(strings.Fields(s), " "))
}

func cut(s string) string {
	if len(s) > maxSaid {
		s = s[:maxSaid] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
