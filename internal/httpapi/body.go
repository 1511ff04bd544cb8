package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxDepth is how deep arrays and objects of a body may be nested.
const maxDepth = 100

// prepared reads and checks the JSON body of a request that has one, and leaves it, normalised, in the call and as the
// request's body. It looks at the content type of a package that is uploaded. Bodies of other requests are ignored.
func (s *server) prepared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			next.ServeHTTP(w, r)
			return
		}
		rules, ok := bodies[r.Method+" "+chi.RouteContext(r.Context()).RoutePattern()]
		var err error
		if ok {
			err = s.readBody(w, r, rules)
		} else if r.Method == http.MethodPut {
			err = s.checkPackage(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mediaType returns a request's content type without parameters, and refuses those not listed. None is the first.
func mediaType(r *http.Request, allowed ...string) error {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	given, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	if err == nil && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		for _, a := range allowed {
			if given == a {
				return nil
			}
		}
	}
	return lcm.Errorf(lcm.KindMediaType, "Unsupported Content-Type %s; it should be %s.", clip(header), strings.Join(allowed, " or "))
}

func (s *server) checkPackage(w http.ResponseWriter, r *http.Request) error {
	if err := mediaType(r, "application/zip"); err != nil {
		return err
	}
	if limit := s.cfg.MaxPackage; limit > 0 {
		if r.ContentLength > limit {
			return lcm.Errorf(lcm.KindTooLarge, "The package of %d bytes is larger than the %d bytes that are allowed.", r.ContentLength, limit)
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	return nil
}

func (s *server) readBody(w http.ResponseWriter, r *http.Request, rules bodyRules) error {
	types := []string{"application/json"}
	if rules.patch {
		types = append(types, "application/merge-patch+json")
	}
	if err := mediaType(r, types...); err != nil {
		return err
	}
	if r.ContentLength > s.cfg.MaxBody {
		return &http.MaxBytesError{Limit: s.cfg.MaxBody} // said beforehand: nothing need come
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return lcm.Errorf(lcm.KindInvalid, "Malformed request body: it could not be read: %w", err)
	}
	tree, err := decode(raw)
	if err != nil {
		if legacy(r) && len(bytes.TrimSpace(raw)) == 0 {
			return lcm.Errorf(lcm.KindInvalid, "Resource body required")
		}
		return err
	}
	m, isObject := tree.(map[string]any)
	switch {
	case !isObject && rules.schema == "":
		return lcm.Errorf(lcm.KindInvalid, "Malformed request body: %s is not of type 'object'", repr(tree, false))
	case !isObject:
		return (&violation{rule: repr(tree, false) + " is not of type 'object'"}).err()
	}
	if rules.normalise != nil && rules.normalise(m) {
		if raw, err = json.Marshal(m); err != nil {
			return fmt.Errorf("write the normalised body: %w", err)
		}
	}
	if rules.schema != "" {
		if v := schemas()[rules.schema].check(tree, nil); v != nil {
			return v.err()
		}
	}
	if rules.rule != nil {
		if v := rules.rule(m); v != nil {
			return v.err()
		}
	}
	c := callOf(r.Context())
	c.raw, c.tree = raw, tree
	if legacy(r) {
		if err := normaliseVIM(c); err != nil {
			return err
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(c.raw))
	r.Header.Set("Content-Type", "application/json")
	return nil
}

// decode reads one JSON value, its numbers as json.Number. Errors name the place by line and column.
func decode(raw []byte) (any, error) {
	malformed := func(at int, format string, args ...any) error {
		line, column := position(raw, at)
		return lcm.Errorf(lcm.KindInvalid, "Malformed request body: %s at line %d, column %d (offset %d)",
			fmt.Sprintf(format, args...), line, column, at)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, lcm.Errorf(lcm.KindInvalid, "Malformed request body: it is empty, a JSON object is required")
	}
	if at := tooDeep(raw); at >= 0 {
		return nil, malformed(at, "nested deeper than %d levels", maxDepth)
	}
	if at := invalidUTF8(raw); at >= 0 {
		return nil, malformed(at, "not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			return nil, malformed(max(int(syntax.Offset)-1, 0), "%s", syntax.Error())
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, malformed(len(raw), "unexpected end")
		default:
			return nil, malformed(int(d.InputOffset()), "%s", err.Error())
		}
	}
	end := int(d.InputOffset())
	if rest := bytes.TrimLeft(raw[end:], " \t\r\n"); len(rest) > 0 {
		return nil, malformed(len(raw)-len(rest), "something follows the JSON value")
	}
	if hasNUL(tree) {
		// PostgreSQL keeps no such text.
		return nil, lcm.Errorf(lcm.KindInvalid, "Malformed request body: a text holds the character U+0000")
	}
	return tree, nil
}

// tooDeep returns where the nesting passes maxDepth, or -1.
func tooDeep(raw []byte) int {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

func invalidUTF8(raw []byte) int {
	if utf8.Valid(raw) {
		return -1
	}
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func hasNUL(v any) bool {
	switch t := v.(type) {
	case string:
		return strings.IndexByte(t, 0) >= 0
	case []any:
		for _, e := range t {
			if hasNUL(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range t {
			if strings.IndexByte(k, 0) >= 0 || hasNUL(e) {
				return true
			}
		}
	}
	return false
}

// position counts lines and columns from 1.
func position(raw []byte, at int) (line, column int) {
	at = min(at, len(raw))
	before := raw[:at]
	return bytes.Count(before, []byte("\n")) + 1, at - (bytes.LastIndexByte(before, '\n') + 1) + 1
}
