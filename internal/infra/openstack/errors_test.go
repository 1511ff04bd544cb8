package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestWrap(t *testing.T) {
	c := &cloud{name: "VIM0"}
	answer := func(status int, body string) error {
		return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body)}
	}
	heat := `{"explanation": "The server could not comply", "code": 400, "error": {"message": "The Parameter (x) was not provided.", "type": "UserParameterMissing", "traceback": null}, "title": "Bad Request"}`
	for name, tt := range map[string]struct {
		err    error
		kind   lcm.Kind
		detail string
	}{
		"Heat refuses":    {answer(400, heat), lcm.KindTerminal, "The Parameter (x) was not provided."},
		"Glance in HTML":  {answer(403, "<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1>Quota &amp; so on<br/></body></html>"), lcm.KindTerminal, "403 Forbidden Quota &amp; so on"},
		"nothing said":    {answer(404, ""), lcm.KindTerminal, "VIM VIM0: cannot act: HTTP status Not Found"},
		"unavailable":     {answer(503, `{"message": "busy"}`), lcm.KindRetryable, "VIM VIM0: cannot act: busy"},
		"unauthorized":    {answer(401, `{"error": {"message": "The request you have made requires authentication."}}`), lcm.KindRetryable, "VIM VIM0: cannot act: The request you have made requires authentication."},
		"too many":        {answer(429, ""), lcm.KindRetryable, "VIM VIM0: cannot act: HTTP status Too Many Requests"},
		"no new login":    {&gophercloud.ErrUnableToReauthenticate{ErrReauth: errors.New("no route"), ErrOriginal: answer(401, "")}, lcm.KindRetryable, "VIM VIM0: cannot act: logging in again failed: no route"},
		"refused again":   {&gophercloud.ErrErrorAfterReauthentication{ErrOriginal: answer(400, heat)}, lcm.KindTerminal, "The Parameter (x) was not provided."},
		"no connection":   {errors.New("connection reset by peer"), lcm.KindRetryable, "VIM VIM0: cannot act: connection reset by peer"},
		"a call too long": {fmt.Errorf("call: %w", context.DeadlineExceeded), lcm.KindRetryable, "VIM VIM0: cannot act: call: context deadline exceeded"},
		"ours":            {lcm.Errorf(lcm.KindInvalid, "as it is"), lcm.KindInvalid, "as it is"},
		"canceled":        {context.Canceled, lcm.KindCanceled, "context canceled"},
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
