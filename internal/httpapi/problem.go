package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// statuses maps the kind of an error to the HTTP status that it has unless it brings its own (SOL013 v2.6.1 §6.4).
var statuses = map[lcm.Kind]int{
	lcm.KindInternal:     http.StatusInternalServerError,
	lcm.KindInvalid:      http.StatusBadRequest,
	lcm.KindNotFound:     http.StatusNotFound,
	lcm.KindConflict:     http.StatusConflict,
	lcm.KindPrecondition: http.StatusPreconditionFailed,
	lcm.KindForbidden:    http.StatusForbidden,
	lcm.KindUnauthorized: http.StatusUnauthorized,
	lcm.KindUnsupported:  http.StatusBadRequest,
	lcm.KindTooLarge:     http.StatusRequestEntityTooLarge,
	lcm.KindMediaType:    http.StatusUnsupportedMediaType,
	lcm.KindNotAccepted:  http.StatusNotAcceptable,
	lcm.KindRange:        http.StatusRequestedRangeNotSatisfiable,
	lcm.KindTerminal:     http.StatusInternalServerError,
	lcm.KindRetryable:    http.StatusServiceUnavailable,
	lcm.KindCanceled:     http.StatusServiceUnavailable,
	lcm.KindStale:        http.StatusConflict,
	lcm.KindUnavailable:  http.StatusServiceUnavailable,
}

const generalDetail = "The server has either erred or is incapable of performing the requested operation."

// problem is what the caller is told: ProblemDetails of three attributes.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// problemOf classes err. Only a *lcm.Error's text is told; another error is a defect and says nothing to callers.
func problemOf(err error) problem {
	var e *lcm.Error
	var tooLarge *http.MaxBytesError
	p := problem{}
	switch {
	case errors.As(err, &e):
		p = problem{Title: e.Title, Status: e.Status, Detail: e.Detail}
		if p.Status < 400 || p.Status > 599 {
			p.Status = statuses[e.Kind]
		}
	case errors.As(err, &tooLarge):
		p.Status, p.Detail = http.StatusRequestEntityTooLarge, "The request body is larger than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes."
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Detail = http.StatusServiceUnavailable, "The request was not finished in time."
	case lcm.Is(err, lcm.KindUnavailable):
		p.Status, p.Detail = http.StatusServiceUnavailable, "The database cannot be reached at the moment. Try again."
	}
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	if p.Detail == "" {
		p.Detail = generalDetail
	}
	return p
}

// tackerErrorTypes are the class names that the clients of the VIM API know, by a part of the message.
var tackerErrorTypes = []struct{ part, class string }{
	{"already exist with given", "DuplicateEntity"},
	{"Default VIM already exists", "VimDefaultDuplicateException"},
	{"still in use", "VimInUseException"},
	{"Specified VIM id", "VimNotFoundException"},
	{"Malformed request body", "MalformedRequestBody"},
}

func tackerErrorType(p problem) string {
	for _, t := range tackerErrorTypes {
		if strings.Contains(p.Detail, t.part) {
			return t.class
		}
	}
	return "HTTP" + strings.ReplaceAll(http.StatusText(p.Status), " ", "")
}

// legacy tells the API whose errors are TackerError objects.
func legacy(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1.0") }

// fail answers err: the one place where an error becomes a response. A repeated request is answered as the first was.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	first, ok, err := s.again(r, err)
	if ok {
		_ = first.write(w) // as every reply
		return
	}
	p := problemOf(err)
	if p.Status == http.StatusBadRequest && errors.Is(err, os.ErrDeadlineExceeded) {
		p = problem{Title: http.StatusText(http.StatusRequestTimeout), Status: http.StatusRequestTimeout, Detail: "The request's body did not come in in time."}
		w.Header().Set("Connection", "close")
	}
	s.refused(r, p.Status)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.cfg.Log.LogAttrs(r.Context(), errorLevel(p.Status), "request failed",
			requestAttrs(r, p.Status, err)...)
	}
	var u *Unauthorized
	if errors.As(err, &u) {
		for _, challenge := range u.Challenges {
			w.Header().Add("WWW-Authenticate", challenge)
		}
	}
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	writeProblem(w, r, p)
}

func writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	var body any = p
	contentType := "application/problem+json"
	if legacy(r) {
		contentType = "application/json"
		body = map[string]any{"TackerError": map[string]string{"type": tackerErrorType(p), "message": p.Detail, "detail": ""}}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		raw = []byte(`{"status":500,"title":"Internal Server Error","detail":"` + generalDetail + `"}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(raw) // the caller has gone away; there is nobody to tell
}

func writeJSON(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the caller has gone away; there is nobody to tell
}
