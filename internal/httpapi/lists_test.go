package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestSelectors(t *testing.T) {
	packageKeys := func(extra ...string) []string {
		return append([]string{"_links", "id", "onboardingState", "usageState"}, extra...)
	}
	for _, c := range []struct {
		path, query string
		want        []string // the names in the representation, sorted; sub-names after a slash
		err         string
	}{
		{vi, "", []string{"_links", "id", "instantiationState", "vnfInstanceName"}, ""},
		{vi, "exclude_default", []string{"_links", "id", "instantiationState", "vnfInstanceName"}, ""},
		{vi, "all_fields", []string{"_links", "id", "instantiationState", "metadata", "metadata/k", "vnfInstanceName"}, ""},
		{vi, "all_fields=1", []string{"_links", "id", "instantiationState", "metadata", "metadata/k", "vnfInstanceName"}, ""},
		{vi, "exclude_fields=vnfInstanceName,id", []string{"_links", "id", "instantiationState", "metadata", "metadata/k"}, ""},
		{oc, "", []string{"_links", "id", "operationState", "vnfInstanceId"}, ""},
		{oc, "fields=error", []string{"_links", "error", "error/detail", "error/status", "id", "operationState", "vnfInstanceId"}, ""},
		{oc, "fields=error/detail&exclude_default", []string{"_links", "error", "error/detail", "id", "operationState", "vnfInstanceId"}, ""},
		{oc, "exclude_fields=error", []string{"_links", "id", "operationParams", "operationParams/a", "operationState", "vnfInstanceId"}, ""},
		{oc, "exclude-fields=error", []string{"_links", "id", "operationParams", "operationParams/a", "operationState", "vnfInstanceId"}, ""},
		{oc, "exclude-fields=Operation", []string{"_links", "id", "operationState", "vnfInstanceId"}, ""},
		{oc, "exclude-fields=error,Operation", []string{"_links", "id", "operationParams", "operationParams/a", "operationState", "vnfInstanceId"}, ""},
		{pk, "", packageKeys(), ""},
		{pk, "exclude_default=", packageKeys(), ""},
		{pk, "fields=checksum,softwareImages/name", []string{"_links", "checksum", "checksum/algorithm", "checksum/hash", "id", "onboardingState",
			"softwareImages", "softwareImages/name", "usageState"}, ""},
		{pk, "fields=userDefinedData/foo", packageKeys("userDefinedData", "userDefinedData/foo"), ""},
		{pk, "fields=userDefinedData/k%3C", packageKeys("userDefinedData", "userDefinedData/k<"), ""},
		{pk, "exclude_fields=softwareImages/checksum/hash,softwareImages/id,softwareImages,userDefinedData,checksum", []string{"_links", "id", "onboardingState", "usageState"}, ""},
		{vi, "exclude_fields=metadata/k", []string{"_links", "id", "instantiationState", "metadata", "vnfInstanceName"}, ""},
		{oc, "exclude_fields=error/status,error/title,operationParams/a", []string{"_links", "error", "error/detail", "error/status", "id", "operationParams", "operationState", "vnfInstanceId"}, ""},
		{oc, "all_fields", []string{"_links", "error", "error/detail", "error/status", "id", "operationParams", "operationParams/a", "operationState", "vnfInstanceId"}, ""},
		{oc, "fields=id,error/detail,error", []string{"_links", "error", "error/detail", "error/status", "id", "operationState", "vnfInstanceId"}, ""},
		{oc, "fields=operationParams/nothing", []string{"_links", "id", "operationParams", "operationState", "vnfInstanceId"}, ""},
		{pk, "exclude_fields=softwareImages/checksum,userDefinedData,checksum", []string{"_links", "id", "onboardingState",
			"softwareImages", "softwareImages/checksum", "softwareImages/id", "softwareImages/name", "usageState"}, ""},

		{oc, "fields=foo", nil, "Invalid query parameter 'fields'. Value: foo"},
		{pk, "exclude_fields=softwareImages/foo", nil, "Invalid query parameter 'exclude_fields'. Value: softwareImages/foo"},
		{vi, "fields=instantiatedVnfInfo/foo", nil, "Invalid query parameter 'fields'. Value: instantiatedVnfInfo/foo"},
		{vi, "fields=metadata,,id", nil, "Invalid query parameter 'fields'. Value: metadata,,id"},
		{vi, "exclude_fields=foo", nil, "Invalid query parameter 'exclude_fields'. Value: foo"},
		{oc, "all_fields&exclude_fields=error", nil, "Invalid query parameter combination: 'all_fields' cannot be combined with 'fields' or 'exclude_fields' or 'exclude_default'"},
		{oc, "all_fields&exclude-fields=error", nil, "Invalid query parameter combination: 'all_fields' cannot be combined with 'fields' or 'exclude_fields' or 'exclude_default'"},
		{oc, "exclude_default&fields=error&exclude_fields=error", nil, "Invalid query parameter combination: 'fields' cannot be combined with 'all_fields' or 'exclude_fields'"},
		{oc, "exclude_default&exclude-fields=error", nil, "Invalid query parameter combination: 'exclude_fields' cannot be combined with 'all_fields' or 'fields' or 'exclude_default'"},
		{pk, "fields=", nil, "Invalid query parameter 'fields'. Value: "},
		{pk, "all_fields&fields=checksum", nil, "Invalid query parameter combination: 'all_fields' cannot be combined with 'fields' or 'exclude_fields' or 'exclude_default'"},
		{pk, "all_fields&exclude_default", nil, "Invalid query parameter combination: 'all_fields' cannot be combined with 'fields' or 'exclude_fields' or 'exclude_default'"},
		{pk, "fields=checksum&exclude_fields=checksum", nil, "Invalid query parameter combination: 'fields' cannot be combined with 'all_fields' or 'exclude_fields'"},
		{pk, "exclude_default&exclude_fields=checksum", nil, "Invalid query parameter combination: 'exclude_fields' cannot be combined with 'all_fields' or 'fields' or 'exclude_default'"},
	} {
		for _, more := range []string{"", "all_records=yes"} {
			res := ask(t, newFake().handler(Config{}), "GET", c.path+"?"+strings.Trim(c.query+"&"+more, "&"), "")
			if c.err != "" {
				if got := detail(t, res); res.StatusCode != 400 || got != c.err {
					t.Errorf("%s?%s: %d %s", c.path, c.query, res.StatusCode, got)
				}
				continue
			}
			var got []map[string]any
			raw := content(t, res)
			if err := json.Unmarshal([]byte(raw), &got); err != nil {
				t.Fatalf("%s?%s: %s: %v", c.path, c.query, raw, err)
			}
			if diff := cmp.Diff(c.want, namesIn(got[0])); diff != "" {
				t.Errorf("%s?%s: %s\n%s", c.path, c.query, raw, diff)
			}
		}
	}
}

func namesIn(m map[string]any) []string {
	seen := map[string]bool{}
	for k, v := range m {
		seen[k] = true
		items, ok := v.([]any)
		if !ok {
			items = []any{v}
		}
		for _, item := range items {
			if o, ok := item.(map[string]any); ok && k != "_links" {
				for sub := range o {
					seen[k+"/"+sub] = true
				}
			}
		}
	}
	var out []string
	for k := range seen {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// tackerLink reads a Link header as python-tackerclient does.
func tackerLink(t *testing.T, header string) url.Values {
	t.Helper()
	u := regexp.MustCompile(`<(.*)>`).FindStringSubmatch(header)
	rel := regexp.MustCompile(`rel="(.*)"`).FindStringSubmatch(header)
	if u == nil || rel == nil || rel[1] != "next" {
		t.Fatalf("Link: %s", header)
	}
	parsed, err := url.Parse(u[1])
	if err != nil || !parsed.IsAbs() {
		t.Fatalf("Link: %s: %v", header, err)
	}
	return parsed.Query()
}

func TestPages(t *testing.T) {
	for _, total := range []int{0, 1, 2, 3, 4, 7} {
		f := newFake()
		f.packages = nil
		for i := range total {
			f.packages = append(f.packages, body(fmt.Sprintf("p%d", i), map[string]any{"onboardingState": "CREATED", "userDefinedData": map[string]any{"a": i}}))
		}
		h := f.handler(Config{PageSize: 2, MarkerKey: []byte("k")})
		other := f.handler(Config{PageSize: 2, MarkerKey: []byte("k")}) // another server of the installation
		query := url.Values{"filter": {"(eq,vnfProvider,'a;b')"}, "fields": {"userDefinedData"}}.Encode()
		var ids []string
		for pages := 0; ; pages++ {
			if pages > 4 {
				t.Fatal("no end")
			}
			res := ask(t, h, "GET", pk+"?"+query, "")
			h, other = other, h
			var page []map[string]any
			if err := json.Unmarshal([]byte(content(t, res)), &page); err != nil || len(page) > 2 {
				t.Fatalf("%v, %d", err, len(page))
			}
			for _, p := range page {
				ids = append(ids, p["id"].(string))
				if p["userDefinedData"] == nil {
					t.Errorf("a further page has lost the selectors: %v", p)
				}
			}
			if len(f.query.Filter) != 1 || f.query.Filter[0].Values[0] != "a;b" {
				t.Errorf("a further page has lost the filter: %+v", f.query)
			}
			link := res.Header.Values("Link")
			if len(link) == 0 {
				break
			}
			query = tackerLink(t, link[0]).Encode()
		}
		if len(ids) != total {
			t.Errorf("%d of %d: %v", len(ids), total, ids)
		}
		if res := ask(t, h, "GET", pk+"?all_records=yes", ""); res.Header.Get("Link") != "" || f.query.Limit != 0 {
			t.Errorf("all_records: %v", res.Header)
		}
	}
}

func TestMarker(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	good, err := marker{Resource: vi, After: "a", Until: now.Add(time.Minute).Unix()}.encode([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeMarker(good, vi, []byte("k"), now); err != nil || m.After != "a" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "x", good[:len(good)-2], "A" + good[1:], good + "AAAA", strings.ToUpper(good)} {
		if _, err := decodeMarker(bad, vi, []byte("k"), now); !lcm.Is(err, lcm.KindInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := decodeMarker(good, oc, []byte("k"), now); err == nil {
		t.Error("a marker of another list")
	}
	if _, err := decodeMarker(good, vi, []byte("other"), now); err == nil {
		t.Error("a marker of another installation")
	}
	if _, err := decodeMarker(good, vi, []byte("k"), now.Add(time.Minute)); !lcm.Is(err, lcm.KindInvalid) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired marker: %v", err)
	}
}

// A page's link is good for a day, and then a bad request.
func TestMarkerExpires(t *testing.T) {
	f, now := newFake(), time.Unix(1_800_000_000, 0)
	h := f.handler(Config{PageSize: 1, MarkerKey: []byte("k"), Now: func() time.Time { return now }})
	link := tackerLink(t, ask(t, h, "GET", vi, "").Header.Get("Link")).Encode()
	now = now.Add(markerLife - time.Second)
	if res := ask(t, h, "GET", vi+"?"+link, ""); res.StatusCode != 200 {
		t.Errorf("before its time: %d", res.StatusCode)
	}
	now = now.Add(time.Second)
	if res := ask(t, h, "GET", vi+"?"+link, ""); res.StatusCode != 400 {
		t.Errorf("after a day: %d", res.StatusCode)
	}
}

// A stream that breaks off is not taken for a whole one.
func TestStreamBreaks(t *testing.T) {
	f := newFake()
	for i := range 5000 {
		f.instances = append(f.instances, body(fmt.Sprint("i", i), map[string]any{"instantiationState": "NOT_INSTANTIATED"}))
	}
	f.fail = 4000
	srv := httptest.NewServer(f.handler(Config{}))
	defer srv.Close()
	res, err := http.Get(srv.URL + vi + "?all_records=yes")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadAll(res.Body); err == nil || res.StatusCode != 200 {
		t.Errorf("%d, %v", res.StatusCode, err)
	}
	f.fail = 0
	res, err = http.Get(srv.URL + vi + "?all_records=yes")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var all []map[string]any
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil || len(all) != 5002 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// pruned is what appendSelected should do, on decoded JSON.
func pruned(v any, s selection) map[string]any {
	m := v.(map[string]any)
	out := map[string]any{}
	for k, v := range m {
		drop := s.drop.sub[k]
		switch {
		case drop == nil:
			out[k] = v
		case !drop.leaf:
			out[k] = excluded(v, drop)
		case s.keep != nil && s.keep.sub[k] != nil:
			out[k] = included(v, s.keep.sub[k])
		}
	}
	return out
}

func excluded(v any, n *names) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range t {
			if sub := n.sub[k]; sub == nil {
				out[k] = v
			} else if !sub.leaf {
				out[k] = excluded(v, sub)
			}
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = excluded(e, n)
		}
		return out
	}
	return v
}

func included(v any, n *names) any {
	if n.leaf {
		return v
	}
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range t {
			if sub := n.sub[k]; sub != nil {
				out[k] = included(v, sub)
			}
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = included(e, n)
		}
		return out
	}
	return v
}

var someName = rapid.SampledFrom([]string{"a", "b", "c", "d<\"", "é\n"})

func someValue(depth int) *rapid.Generator[any] {
	scalars := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
		rapid.Map(rapid.String(), func(s string) any { return s }))
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(scalars,
		rapid.Map(rapid.MapOfN(someName, rapid.Deferred(func() *rapid.Generator[any] { return someValue(depth - 1) }), 0, 4), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return someValue(depth - 1) }), 0, 3), func(s []any) any { return s }))
}

func someNames(t *rapid.T, label string) *names {
	n := &names{}
	for _, p := range rapid.SliceOfN(rapid.SliceOfN(someName, 1, 3), 0, 4).Draw(t, label) {
		n.add(p)
	}
	return n
}

func TestCutIsPruning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.MapOfN(someName, someValue(3), 0, 5).Draw(t, "value")
		s := selection{drop: someNames(t, "drop")}
		if rapid.Bool().Draw(t, "keeping") {
			s.keep = someNames(t, "keep")
		}
		raw, err := json.MarshalIndent(v, "", rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		for _, sel := range []selection{s, {}} {
			out, some := appendSelected(nil, raw, sel)
			out = append(out, '}')
			var got, whole map[string]any
			if err := json.Unmarshal(raw, &whole); err != nil {
				t.Fatal(err)
			}
			want := whole
			if !sel.everything() {
				want = pruned(whole, sel)
			}
			if err := json.Unmarshal(out, &got); err != nil || !cmp.Equal(got, want) || some != (len(want) > 0) {
				t.Fatalf("%s of %s: %v, %v", out, raw, err, some)
			}
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":2}]},"c":"x"}`))
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{"a":[[[`))
	sel := selection{drop: &names{}, keep: &names{}}
	sel.drop.add([]string{"a", "b"})
	sel.drop.add([]string{"c"})
	sel.keep.add([]string{"c", "d"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		valid := json.Valid(raw) && strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
		for _, s := range []selection{{}, sel} {
			out := instances.appendRepresentation(nil, origin{here: "http://h"}, "i", raw, s)
			if valid && !json.Valid(out) {
				t.Fatalf("%s of %s", out, raw)
			}
		}
	})
}

func BenchmarkShow(b *testing.B) {
	f := newFake()
	f.instances = []lcm.Body{body(known, map[string]any{"instantiationState": "INSTANTIATED", "vnfInstanceName": "n", "instantiatedVnfInfo": map[string]any{"x": strings.Repeat("y", 4000)}})}
	h := f.handler(Config{})
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("GET", vi+"/"+known, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}

func BenchmarkList(b *testing.B) {
	f := newFake()
	f.instances = nil
	for i := range 100 {
		f.instances = append(f.instances, body(fmt.Sprint("i", i), map[string]any{"instantiationState": "INSTANTIATED", "vnfInstanceName": "n", "instantiatedVnfInfo": map[string]any{"x": strings.Repeat("y", 4000)}}))
	}
	h := f.handler(Config{})
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", vi+"?filter=(eq,vnfInstanceName,n)", nil))
		if w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}
