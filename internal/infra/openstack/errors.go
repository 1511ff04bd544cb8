package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// wrap classes an error of a call to the VIM, and words it: the VIM, what was being done, and what the service said or how
// the call broke. What passes (no connection, a broken answer, 401 although we have logged in again, 408, 409 while
// something else goes on, 429, 5xx) is retryable; what does not (other 4xx, a certificate that does not verify) is
// terminal. Errors of ours and of the context stay.
func (c *cloud) wrap(doing string, err error) error {
	var own *lcm.Error
	if err == nil || errors.As(err, &own) || errors.Is(err, context.Canceled) {
		return err
	}
	kind := lcm.KindRetryable
	if status := statusOf(err); status >= 400 && status < 500 {
		switch status {
		case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		default:
			kind = lcm.KindTerminal
		}
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		kind = lcm.KindTerminal
	}
	return &lcm.Error{Kind: kind, Detail: "VIM " + c.name + ": cannot " + doing + ": " + reason(err), Err: err, Again: again(err)}
}

// again is for how long the service of an error is not to be called, 0 when nothing is known of that.
func again(err error) time.Duration {
	var uncalled *uncalledError
	if errors.As(err, &uncalled) {
		return uncalled.again
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &code) {
		return 0
	}
	d, _ := parseRetryAfter(code.ResponseHeader.Get("Retry-After"))
	return d
}

// againOf is for how long a classed error says that it is of no use to try again.
func againOf(err error) time.Duration {
	var own *lcm.Error
	if errors.As(err, &own) {
		return own.Again
	}
	return 0
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

// reason returns what a service said in an error, without headers and addresses, or how the call broke.
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
		return breakage(err)
	}
	if said := message(code.Body); said != "" {
		return said
	}
	return fmt.Sprintf("HTTP status %d %s", code.Actual, http.StatusText(code.Actual))
}

// breakage words how a call broke that has no answer, or one that cannot be read.
func breakage(err error) string {
	var own *lcm.Error
	var network net.Error
	var dial *net.OpError
	var unknown *net.DNSError
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	var around *url.Error
	sent := errors.As(err, &around)
	switch {
	case errors.As(err, &own):
		return own.Detail
	case errors.As(err, &unknown):
		return fmt.Sprintf("the host %s is not known (%s)", unknown.Name, unknown.Err)
	case errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout():
		return "no connection could be made in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "there was no answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF) && !sent:
		return "the answer was cut off"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed without an answer"
	case errors.As(err, &syntax):
		return "the answer is not JSON, as that of something in between would be"
	case errors.As(err, &shape):
		return "the answer is not what the API gives: " + cmp.Or(shape.Field, "it") + " is a " + shape.Value
	case sent:
		return around.Err.Error() // without the address
	}
	return err.Error()
}

// maxSaid bounds how much of an answer's text is taken over.
const maxSaid = 4096

// message digs the text out of an error body: Heat's and Keystone's {"error": {"message"}}, Nova's and Cinder's {"<fault>":
// {"message"}}, Neutron's {"NeutronError": {"message"}}, Glance's {"message"}, a page or plain text. Mark-up is of no use to
// anybody.
func message(body []byte) string {
	var shaped map[string]json.RawMessage
	if json.Unmarshal(body, &shaped) != nil {
		return cut(pageText(string(body)))
	}
	text := func(in map[string]json.RawMessage, key string) string {
		var s string
		_ = json.Unmarshal(in[key], &s) // it may be of another type
		return s
	}
	for _, key := range slices.Sorted(maps.Keys(shaped)) {
		var inner map[string]json.RawMessage
		if json.Unmarshal(shaped[key], &inner) == nil {
			if said := text(inner, "message"); said != "" {
				return cut(said)
			}
		}
	}
	return cut(cmp.Or(text(shaped, "message"), text(shaped, "explanation")))
}

// unseen are the parts of a page that nobody reads.
var unseen = regexp.MustCompile(`(?is)<(head|script|style)\b.*?</(head|script|style)\s*>|<!--.*?-->|<[^>]*>`)

// pageText is the text of a page.
func pageText(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(unseen.ReplaceAllString(page, " "))), " ")
}

func cut(s string) string {
	if len(s) > maxSaid {
		s = s[:maxSaid] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
