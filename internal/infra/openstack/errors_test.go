package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestWrap(t *testing.T) {
	c := &cloud{name: "VIM0"}
	answer := func(status int, body string) error {
		return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body)}
	}
	sent := func(err error) error { return &url.Error{Op: "Get", URL: "http://h/secret", Err: err} }
	heat := `{"explanation": "The server could not comply", "code": 400, "error": {"message": "The Parameter (x) was not provided.", "type": "UserParameterMissing", "traceback": null}, "title": "Bad Request"}`
	for name, tt := range map[string]struct {
		err    error
		kind   lcm.Kind
		detail string
	}{
		"Heat refuses":   {answer(400, heat), lcm.KindTerminal, "VIM VIM0: cannot act: The Parameter (x) was not provided."},
		"Nova refuses":   {answer(403, `{"forbidden": {"code": 403, "message": "Quota exceeded"}}`), lcm.KindTerminal, "VIM VIM0: cannot act: Quota exceeded"},
		"Neutron":        {answer(404, `{"NeutronError": {"type": "X", "message": "no port", "detail": ""}}`), lcm.KindTerminal, "VIM VIM0: cannot act: no port"},
		"explained":      {answer(400, `{"explanation": "so", "error": {"message": ""}}`), lcm.KindTerminal, "VIM VIM0: cannot act: so"},
		"a list":         {answer(400, `["x"]`), lcm.KindTerminal, `VIM VIM0: cannot act: ["x"]`},
		"Glance in HTML": {answer(403, "<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1>Quota &amp; so on<br/></body></html>"), lcm.KindTerminal, "VIM VIM0: cannot act: 403 Forbidden Quota & so on"},
		"a proxy": {
			answer(502, "<HTML><HEAD><TITLE>no</TITLE></HEAD>\n<style>p { a: b }</style><BODY class=x><!-- no --><p\n>bad gateway<script>if (1 < 2) {}</script></BODY>"),
			lcm.KindRetryable, "VIM VIM0: cannot act: bad gateway",
		},
		"nothing said":     {answer(404, ""), lcm.KindTerminal, "VIM VIM0: cannot act: HTTP status 404 Not Found"},
		"unavailable":      {answer(503, `{"message": "busy"}`), lcm.KindRetryable, "VIM VIM0: cannot act: busy"},
		"unauthorized":     {answer(401, `{"error": {"message": "The request you have made requires authentication."}}`), lcm.KindRetryable, "VIM VIM0: cannot act: The request you have made requires authentication."},
		"something runs":   {answer(409, `{"error": {"message": "an action is in progress"}}`), lcm.KindRetryable, "VIM VIM0: cannot act: an action is in progress"},
		"too many":         {answer(429, ""), lcm.KindRetryable, "VIM VIM0: cannot act: HTTP status 429 Too Many Requests"},
		"no new login":     {&gophercloud.ErrUnableToReauthenticate{ErrReauth: errors.New("no route"), ErrOriginal: answer(401, "")}, lcm.KindRetryable, "VIM VIM0: cannot act: logging in again failed: no route"},
		"refused again":    {&gophercloud.ErrErrorAfterReauthentication{ErrOriginal: answer(400, heat)}, lcm.KindTerminal, "VIM VIM0: cannot act: The Parameter (x) was not provided."},
		"reset":            {sent(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), lcm.KindRetryable, "VIM VIM0: cannot act: the connection was reset"},
		"refused":          {sent(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), lcm.KindRetryable, "VIM VIM0: cannot act: the connection is refused"},
		"no such host":     {sent(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "h"}}), lcm.KindRetryable, "VIM VIM0: cannot act: the host h is not known (no such host)"},
		"no connection":    {sent(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), lcm.KindRetryable, "VIM VIM0: cannot act: no connection could be made in time"},
		"closed":           {sent(io.EOF), lcm.KindRetryable, "VIM VIM0: cannot act: the connection was closed without an answer"},
		"cut off":          {io.ErrUnexpectedEOF, lcm.KindRetryable, "VIM VIM0: cannot act: the answer was cut off"},
		"another failure":  {sent(errors.New("as it is")), lcm.KindRetryable, "VIM VIM0: cannot act: as it is"},
		"not JSON":         {json.Unmarshal([]byte("<html>"), new(any)), lcm.KindRetryable, "VIM VIM0: cannot act: the answer is not JSON, as that of something in between would be"},
		"JSON of another":  {json.Unmarshal([]byte(`{"a": 1}`), &struct{ A string }{}), lcm.KindRetryable, "VIM VIM0: cannot act: the answer is not what the API gives: A is a number"},
		"a call too long":  {fmt.Errorf("call: %w", context.DeadlineExceeded), lcm.KindRetryable, "VIM VIM0: cannot act: there was no answer in time"},
		"a call too late":  {sent(context.DeadlineExceeded), lcm.KindRetryable, "VIM VIM0: cannot act: there was no answer in time"},
		"ours in the call": {sent(lcm.Errorf(lcm.KindInvalid, "as it is")), lcm.KindInvalid, "as it is"},
		"ours":             {lcm.Errorf(lcm.KindInvalid, "as it is"), lcm.KindInvalid, "as it is"},
		"canceled":         {context.Canceled, lcm.KindCanceled, "context canceled"},
	} {
		err := c.wrap("act", tt.err)
		detail := err.Error()
		var own *lcm.Error
		if errors.As(err, &own) {
			detail = own.Detail
		}
		if lcm.KindOf(err) != tt.kind || detail != tt.detail {
			t.Errorf("%s: %s, %q", name, lcm.KindOf(err), detail)
		}
	}
	if c.wrap("act", nil) != nil || statusOf(errors.New("x")) != 0 || statusOf(answer(http.StatusConflict, "")) != http.StatusConflict {
		t.Error("edge cases")
	}
}

func TestIdentityURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://k/identity/v3": "http://k/identity/v3/", "http://k/identity/v3/": "http://k/identity/v3/", "http://k/identity": "http://k/identity/v3/",
		"http://k:5000/v2.0": "http://k:5000/v3/", "http://k:5000": "http://k:5000/v3/", "http://k/vnf": "http://k/vnf/v3/",
	} {
		if got := identityURL(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestTags(t *testing.T) {
	for in, want := range map[string]string{"a,b": "a b", " , ": "", "": "", "ü": "ü"} {
		if got := tagOf(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	for raw, want := range map[string]int{`null`: 0, `[]`: 0, `["a","b"]`: 2, `"a,b,c"`: 3} {
		var tags stackTags
		if err := tags.UnmarshalJSON([]byte(raw)); err != nil || len(tags) != want {
			t.Errorf("%s: %v %v", raw, tags, err)
		}
	}
}
