package httpapi

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// listParameters are the query parameters that lists know.
var listParameters = []string{
	"filter", "all_fields", "fields", "exclude_fields", "exclude-fields", "exclude_default", "nextpage_opaque_marker", "all_records",
}

// lister reads the resources that a query selects.
type lister func(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]

// list answers a list request (SOL013 v2.6.1 §5.2-5.4). A page is written in full before it is sent, since its Link says
// whether there is a further one; a list without pages is streamed.
func (s *server) list(ctx context.Context, res *resource, read lister) (response, error) {
	c := callOf(ctx)
	raw := c.req.URL.RawQuery
	q, err := parseQuery(raw)
	if err != nil {
		return response{}, err
	}
	if err := res.checkParameters(q); err != nil {
		return response{}, err
	}
	after := ""
	all := strings.EqualFold(q.get("all_records"), "yes")
	if q.has("nextpage_opaque_marker") {
		m, err := decodeMarker(q.get("nextpage_opaque_marker"), res.path, s.cfg.MarkerKey, s.cfg.Now())
		if err != nil {
			return response{}, err
		}
		// The marker holds all that was asked for; what the link's query repeats of it is the same.
		after, raw = m.After, m.Query
		if q, err = parseQuery(raw); err != nil {
			return response{}, err
		}
	}
	attributes := schemas()[res.schema]
	if res.emptyFilter && q.has("filter") && q.get("filter") == "" {
		return response{}, lcm.Errorf(lcm.KindInvalid, "Invalid input for field/attribute filter. Value: . '' is too short")
	}
	conditions, err := parseFilters(q["filter"], res.filterable())
	if err != nil {
		return response{}, err
	}
	var shown selection
	if !res.plain {
		if shown, err = parseSelectors(q).selection(attributes, res.complex); err != nil {
			return response{}, err
		}
	}
	query := lcm.Query{Filter: res.resolve(conditions), After: after}
	if all || s.cfg.PageSize < 0 {
		return s.stream(ctx, res, read(ctx, c.scope, query), shown)
	}
	query.Limit = s.cfg.PageSize + 1 // one more tells whether there is a further page
	return s.page(ctx, res, read(ctx, c.scope, query), shown, raw)
}

func parseFilters(filters []string, attributes *schema) ([]lcm.Condition, error) {
	var all []lcm.Condition
	for _, f := range filters {
		conditions, err := parseFilter(f, attributes)
		if err != nil {
			return nil, err
		}
		if all = append(all, conditions...); len(all) > maxConditions {
			return nil, invalidFilter("The filter has more than %d expressions.", maxConditions)
		}
	}
	return all, nil
}

func (res *resource) checkParameters(q query) error {
	if !res.strict {
		return nil
	}
	var unknown []string
	for name := range q {
		if !slices.Contains(listParameters, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return lcm.Errorf(lcm.KindInvalid, "Not supported parameters: %s", clip(strings.Join(unknown, ", ")))
}

func (s *server) page(_ context.Context, res *resource, bodies iter.Seq2[lcm.Body, error], shown selection, raw string) (response, error) {
	out := &reply{status: http.StatusOK, body: []byte{'['}}
	count, last := 0, ""
	for b, err := range bodies {
		if err != nil {
			return response{}, err
		}
		if count == s.cfg.PageSize {
			link, err := marker{Resource: res.path, Query: raw, After: last, Until: s.cfg.Now().Add(markerLife).Unix()}.encode(s.cfg.MarkerKey)
			if err != nil {
				return response{}, err
			}
			out.link = "<" + s.cfg.EndpointURL + res.path + "?nextpage_opaque_marker=" + url.QueryEscape(link) + `>; rel="next"`
			break
		}
		if count > 0 {
			out.body = append(out.body, ',')
		}
		out.body = res.appendRepresentation(out.body, s.endpoint, b.ID, b.JSON, shown)
		count++
		last = b.ID
	}
	out.body = append(out.body, ']')
	return response{out}, nil
}

// stream answers a list of any length. What fails before the first resource is there becomes an error response; what
// fails later cuts the connection, so that nobody takes a part for the whole.
func (s *server) stream(ctx context.Context, res *resource, bodies iter.Seq2[lcm.Body, error], shown selection) (response, error) {
	next, stop := iter.Pull2(bodies)
	first, err, ok := next()
	if ok && err != nil {
		stop()
		return response{}, err
	}
	return response{writerFunc(func(w http.ResponseWriter) error {
		defer stop()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		out := s.patientWriter(w)
		defer out.done()
		buf := append(make([]byte, 0, 64<<10), '[')
		for n, b := 0, first; ok; n++ {
			if n > 0 {
				buf = append(buf, ',')
			}
			buf = res.appendRepresentation(buf, s.endpoint, b.ID, b.JSON, shown)
			if len(buf) >= 32<<10 {
				if _, err := out.Write(buf); err != nil {
					panic(http.ErrAbortHandler)
				}
				buf = buf[:0]
			}
			if b, err, ok = next(); ok && err != nil {
				s.cfg.Log.LogAttrs(ctx, errorLevel(http.StatusInternalServerError), "list broke off", requestAttrs(callOf(ctx).req, http.StatusOK, err)...)
				panic(http.ErrAbortHandler)
			}
		}
		_, _ = out.Write(append(buf, ']')) // the caller has gone away; there is nobody to tell
		return nil
	})}, nil
}

// writerFunc is a response that a function writes.
type writerFunc func(w http.ResponseWriter) error

func (f writerFunc) write(w http.ResponseWriter) error { return f(w) }

// show answers a representation, or that it is the one that the caller has. variant tells representations of one
// version apart.
func (s *server) show(res *resource, b lcm.Body, ifNoneMatch, variant string) response {
	tag := etag(b.Version, variant)
	if tag != "" && ifNoneMatch != "" && matches(ifNoneMatch, tag, true) {
		return response{&reply{status: http.StatusNotModified, etag: tag}}
	}
	buf := make([]byte, 0, len(b.JSON)+640)
	return response{&reply{status: http.StatusOK, etag: tag, body: res.appendRepresentation(buf, s.endpoint, b.ID, b.JSON, selection{})}}
}
