package httpapi

import (
	"net/url"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// query is a request's query: names with their values. Unlike net/url's it takes ";" for what it is, a character of
// filters, and an error for an error.
type query map[string][]string

func parseQuery(raw string) (query, error) {
	q := query{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		n, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, lcm.Errorf(lcm.KindInvalid, "Malformed query parameter %s: %w", clip(pair), err)
		}
		q[n] = append(q[n], value)
	}
	return q, nil
}

func (q query) has(name string) bool { _, ok := q[name]; return ok }

// get returns a parameter's values, joined by commas.
func (q query) get(name string) string { return strings.Join(q[name], ",") }
