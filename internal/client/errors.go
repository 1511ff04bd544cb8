package client

import (
	"errors"
	"fmt"
	"net/http"
)

// Error is an answer of the server that is no success.
type Error struct {
	// Status is the HTTP status code.
	Status int
	// Message is what the answer says about it, in the words that python-tackerclient prints.
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// ErrUsage is in the chain of errors about how a command was called.
var ErrUsage = errors.New("usage")

// InputError is wrong input that was found before anything was sent.
type InputError struct{ Reason string }

// Error implements error.
func (e *InputError) Error() string { return "Invalid input: " + e.Reason }

// faultKeys are the keys that OpenStack services wrap an error of a status in.
var faultKeys = map[int]string{
	400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
	409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 429: "overLimit", 501: "notImplemented",
	503: "serviceUnavailable",
}

// answerError makes the error of an answer from its body: ProblemDetails (SOL013 §6.3), Tacker's legacy form, or that
// of OpenStack services.
func answerError(status int, header http.Header, body []byte) *Error {
	fail := func(msg string) *Error { return &Error{Status: status, Message: msg} }
	if header.Get("Content-Type") == "text/plain" {
		return fail(fmt.Sprintf("%d-%s", status, body))
	}
	v, err := ParseJSON(body)
	if err != nil {
		return fail(fmt.Sprintf("%d-tackerFault", status))
	}
	o, ok := v.(*Object)
	if !ok {
		return fail(fmt.Sprintf("%d-%s", status, pyStr(v, false)))
	}
	if te, ok := o.Get("TackerError"); ok {
		if text, ok := te.(string); ok {
			return fail(text)
		}
		if t, ok := te.(*Object); ok {
			msg := t.Text("message")
			if d := t.Text("detail"); d != "" {
				msg += "\n" + d
			}
			return fail(msg)
		}
	}
	if d := o.Text("detail"); d != "" {
		if st, ok := o.Get("status"); ok && st != nil && pyStr(st, false) != "0" {
			return fail(d)
		}
	}
	if f, ok := o.Values[faultKeys[status]].(*Object); ok && f.Text("message") != "" {
		return fail(f.Text("message"))
	}
	return fail(fmt.Sprintf("%d-tackerFault", status))
}
