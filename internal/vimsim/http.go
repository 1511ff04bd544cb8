package vimsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// maxBody bounds a JSON request; image uploads are streamed and bounded apart.
const maxBody = 32 << 20

// svcErr is an error answer of a service before it takes the service's shape.
type svcErr struct {
	status int
	kind   string // exception or fault name where the service shows one
	msg    string
}

func (e *svcErr) Error() string { return e.msg }

func fail(status int, kind, msg string) *svcErr { return &svcErr{status, kind, msg} }

// reply is a successful answer. A nil body sends none.
type reply struct {
	status int
	body   any
	header http.Header
	raw    []byte // sent instead of body if not nil
}

func ok(body any) (reply, error)            { return reply{status: 200, body: body}, nil }
func status(s int, body any) (reply, error) { return reply{status: s, body: body}, nil }

// request is what a handler gets.
type request struct {
	*http.Request
	s *session
	// root is the listener's base URL without a trailing slash.
	root string
}

func (r *request) arg(name string) string {
	v := chi.URLParam(r.Request, name)
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}

// json reads the request body as a JSON object.
func (r *request) json() (map[string]any, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fail(400, "HTTPBadRequest", "The request body could not be read.")
	}
	if len(b) > maxBody {
		return nil, fail(413, "HTTPRequestEntityTooLarge", "The request body is too large.")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, fail(400, "HTTPBadRequest", "JSON body is not in a valid format: "+err.Error())
	}
	m, _ := hot.Normalize(v).(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m, nil
}

// object reads the body's one member called name.
func (r *request) object(name string) (doc, error) {
	m, err := r.json()
	if err != nil {
		return nil, err
	}
	d, ok := m[name].(map[string]any)
	if !ok {
		return nil, fail(400, "HTTPBadRequest", "Unable to find '"+name+"' in request body")
	}
	return d, nil
}

type handlerFunc func(*request) (reply, error)

// errorShape writes a service's error body.
type errorShape func(w http.ResponseWriter, e *svcErr)

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b, code = []byte(`{}`), http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	_, _ = w.Write(b)
}

func keystoneShape(w http.ResponseWriter, e *svcErr) {
	writeJSON(w, e.status, doc{"error": doc{"code": e.status, "message": e.msg, "title": http.StatusText(e.status)}})
}

func glanceShape(w http.ResponseWriter, e *svcErr) {
	t := strconv.Itoa(e.status) + " " + http.StatusText(e.status)
	b := "<html>\n <head>\n  <title>" + t + "</title>\n </head>\n <body>\n  <h1>" + t + "</h1>\n  " + htmlText.Replace(e.msg) + "<br /><br />\n\n\n </body>\n</html>"
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(e.status)
	_, _ = io.WriteString(w, b)
}

var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func novaShape(w http.ResponseWriter, e *svcErr) {
	kind := map[int]string{
		400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest",
		413: "overLimit", 429: "overLimit", 503: "serviceUnavailable",
	}[e.status]
	if kind == "" {
		kind = "computeFault"
	}
	writeJSON(w, e.status, doc{kind: doc{"code": e.status, "message": e.msg}})
}

func neutronShape(w http.ResponseWriter, e *svcErr) {
	kind := e.kind
	if kind == "" {
		kind = "HTTP" + strings.ReplaceAll(http.StatusText(e.status), " ", "")
	}
	writeJSON(w, e.status, doc{"NeutronError": doc{"type": kind, "message": e.msg, "detail": ""}})
}

func heatShape(w http.ResponseWriter, e *svcErr) {
	expl := map[int]string{
		400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
		403: "Access was denied to this resource.", 404: "The resource could not be found.",
		409: "There was a conflict when trying to complete your request.",
		500: "The server has either erred or is incapable of performing the requested operation.",
	}[e.status]
	kind := e.kind
	if kind == "" {
		kind = "HTTP" + strings.ReplaceAll(http.StatusText(e.status), " ", "")
	}
	writeJSON(w, e.status, doc{
		"code": e.status, "title": http.StatusText(e.status), "explanation": expl,
		"error": doc{"type": kind, "message": e.msg, "traceback": nil},
	})
}

// handle adapts f: token check, error shape, JSON out. open skips the check.
func (c *Cloud) handle(shape errorShape, open bool, f handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, root: rootOf(hr)}
		rid := "req-" + newID()
		w.Header().Set("X-Openstack-Request-Id", rid)
		if !open {
			s, found := c.session(hr.Header.Get("X-Auth-Token"))
			if !found || s.project == nil {
				w.Header().Set("WWW-Authenticate", `Keystone uri="`+r.root+`/identity"`)
				keystoneShape(w, fail(401, "", "The request you have made requires authentication."))
				return
			}
			r.s = s
		}
		rep, err := f(r)
		if err != nil {
			var se *svcErr
			if !errors.As(err, &se) {
				se = fail(500, "", err.Error())
			}
			shape(w, se)
			return
		}
		for k, v := range rep.header {
			w.Header()[k] = v
		}
		switch {
		case rep.raw != nil:
			if w.Header().Get("Content-Type") == "" {
				w.Header().Set("Content-Type", "application/json")
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(rep.raw)))
			w.WriteHeader(rep.status)
			_, _ = w.Write(rep.raw)
		case rep.body == nil:
			w.WriteHeader(rep.status)
		default:
			writeJSON(w, rep.status, rep.body)
		}
	}
}

type rootKey struct{}

func rootOf(r *http.Request) string { s, _ := r.Context().Value(rootKey{}).(string); return s }

// serviceOf names the API that a path belongs to.
func serviceOf(p string) string {
	for prefix, name := range map[string]string{
		"/identity": "keystone", "/image": "glance", "/orchestration": "heat",
		"/compute": "nova", "/network": "neutron", "/volume": "cinder",
	} {
		if strings.HasPrefix(p, prefix) {
			return name
		}
	}
	return ""
}

func shapeOf(service string) errorShape {
	switch service {
	case "glance":
		return glanceShape
	case "heat":
		return heatShape
	case "nova", "cinder":
		return novaShape
	case "neutron":
		return neutronShape
	}
	return keystoneShape
}

func actionOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut, http.MethodPatch:
		return "update"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}

// outer journals changing requests and applies request faults.
func (c *Cloud) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service := serviceOf(r.URL.Path)
		if service == "" {
			next.ServeHTTP(w, r)
			return
		}
		action := actionOf(r.Method)
		names := c.requestNames(service, r)
		if action != "get" {
			sw := &statusWriter{ResponseWriter: w}
			seq := c.record(service, r, names)
			defer func() { c.recordStatus(seq, sw.code) }()
			w = sw
		}
		f := c.requestFault(service, action, r, names)
		if f == nil {
			next.ServeHTTP(w, r)
			return
		}
		c.misbehave(w, r, next, service, f)
	})
}

func (c *Cloud) requestFault(service, action string, r *http.Request, names []string) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults.list) == 0 {
		return nil
	}
	return c.faults.take(func(f *Fault) bool {
		if !f.onRequest() || !f.asks(r.Method, r.URL.Path) {
			return false
		}
		stacks := strings.Contains(r.URL.Path, "/stacks")
		hit := f.ResourceType == "*" || f.ResourceType == service || f.ResourceType == "stack" && stacks
		return hit && f.matches(action, names)
	})
}

func (c *Cloud) misbehave(w http.ResponseWriter, r *http.Request, next http.Handler, service string, f *Fault) {
	reason := f.Reason
	if reason == "" {
		reason = "An injected fault."
	}
	shape := shapeOf(service)
	switch f.Effect {
	case EffectSlow, EffectHang:
		d := time.Duration(f.Delay)
		if f.Effect == EffectHang && d == 0 {
			d = 24 * time.Hour
		}
		select {
		case <-c.clk.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-c.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	case EffectFail:
		shape(w, fail(500, "", reason))
	case EffectQuota:
		shape(w, quotaError(service, reason))
	case EffectReset:
		reset(w)
	case EffectLost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		route := chi.NewRouteContext() // the request's own goes to others when it ends
		route.Routes = chi.RouteContext(r.Context()).Routes
		again := r.Clone(context.WithValue(context.WithoutCancel(r.Context()), chi.RouteCtxKey, route))
		again.Body = io.NopCloser(bytes.NewReader(body))
		c.mu.Lock()
		c.goFunc(func() {
			if c.sleep(c.ctx, time.Duration(f.Delay)) == nil {
				next.ServeHTTP(httptest.NewRecorder(), again)
			}
		})
		c.mu.Unlock()
		reset(w)
	case EffectLate:
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r.WithContext(context.WithoutCancel(r.Context())))
		select {
		case <-c.clk.After(time.Duration(f.Delay)):
		case <-r.Context().Done():
			return
		case <-c.ctx.Done():
			panic(http.ErrAbortHandler)
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	case EffectTruncate:
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		b := rec.Body.Bytes()
		w.Header().Set("Content-Length", strconv.Itoa(max(len(b), 2)))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(b[:len(b)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		code := f.Status
		if code == 0 {
			code = http.StatusServiceUnavailable
		}
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.Page != "" {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, f.Page)
			return
		}
		shape(w, fail(code, "", reason))
	}
}

func quotaError(service, reason string) *svcErr {
	switch service {
	case "neutron":
		return fail(409, "OverQuota", reason)
	case "cinder":
		return fail(413, "", reason)
	}
	return fail(403, "Forbidden", reason)
}

// reset drops the connection with a TCP reset where that is possible.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = conn.Close()
}

// requestNames are the names that a fault's glob is held against: the stack's
// or image's name, from the path or from a JSON body.
func (c *Cloud) requestNames(service string, r *http.Request) []string {
	var names []string
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, p := range parts {
		if (p == "stacks" || p == "images") && i+1 < len(parts) {
			names = append(names, parts[i+1:]...)
		}
	}
	if r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err == nil {
			r.Body = io.NopCloser(bytes.NewReader(b))
			var n struct {
				StackName string `json:"stack_name"`
				Name      string `json:"name"`
			}
			// Faults and journal want the name; a bad body is the handler's business.
			if json.Unmarshal(b, &n) == nil {
				names = append(names, n.StackName, n.Name)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		if s := c.heat.byID[n]; s != nil {
			names = append(names, s.name, s.root().name)
		}
		if service == "glance" {
			if d, ok := c.images.get(n); ok {
				names = append(names, str(d, "name"))
			}
		}
	}
	return names
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Handler serves all services. baseURL gives the absolute URL at which it is
// reached, without a trailing slash; it is asked at each request because the
// address may be known only after listening.
func (c *Cloud) Handler(baseURL func() string) http.Handler {
	r := chi.NewRouter()
	r.Use(c.outer)
	c.routeKeystone(r)
	c.routeGlance(r)
	c.routeHeat(r)
	c.routeNova(r)
	c.routeNeutron(r)
	c.routeCinder(r)
	c.routeAdmin(r)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q = q.WithContext(contextWithRoot(q, strings.TrimSuffix(baseURL(), "/")))
		if p := q.URL.Path; len(p) > 1 && strings.HasSuffix(p, "/") && q.URL.RawPath == "" {
			q.URL.Path = strings.TrimRight(p, "/")
			if q.URL.Path == "" {
				q.URL.Path = "/"
			}
		}
		r.ServeHTTP(w, q)
	})
}

// page applies limit and marker to documents that are in order already.
func page(l []doc, q url.Values, key string) ([]doc, bool, error) {
	if m := q.Get("marker"); m != "" {
		i := 0
		for i < len(l) && str(l[i], key) != m {
			i++
		}
		if i == len(l) {
			return nil, false, fail(400, "", "marker ["+m+"] not found")
		}
		l = l[i+1:]
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, false, fail(400, "", "Only integer is allowed by filter limit.")
		}
		if n < len(l) {
			return l[:n], n > 0, nil
		}
	}
	return l, false, nil
}

// filter keeps the documents whose members equal the query's values; names in
// skip are not filters. Several values of one name are alternatives.
func filter(l []doc, q url.Values, skip ...string) []doc {
	out := make([]doc, 0, len(l))
	for _, d := range l {
		keep := true
		for k, vals := range q {
			if contains(skip, k) || k == "fields" || k == "limit" || k == "marker" || k == "sort_key" || k == "sort_dir" || k == "page_reverse" || strings.HasPrefix(k, "_") {
				continue
			}
			hit := false
			for _, v := range vals {
				hit = hit || equalText(d[k], v)
			}
			keep = keep && hit
		}
		if keep {
			out = append(out, d)
		}
	}
	return out
}

func equalText(v any, s string) bool {
	if b, ok := v.(bool); ok {
		return strings.EqualFold(strconv.FormatBool(b), s)
	}
	return hot.String(v) == s
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}
