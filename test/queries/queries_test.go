// Package queries asks lists over HTTP, off a real database.
package queries

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const instances = "/vnflcm/v1/vnf_instances"

// serve answers lists off the store to three callers: one of each of two projects, and one who sees both.
func serve(t *testing.T, st *store.Store) *httptest.Server {
	t.Helper()
	users := map[string]httpapi.BasicUser{
		"ann":  {Password: "a", ProjectID: "p1", Role: lcm.RoleOperator},
		"bob":  {Password: "b", ProjectID: "p2", Role: lcm.RoleOperator},
		"root": {Password: "r", ProjectID: "p0", Role: lcm.RoleAdmin},
	}
	srv := httptest.NewServer(httpapi.New(
		httpapi.Config{Auth: httpapi.NewBasic(users), PageSize: 10, MarkerKey: []byte("a key for tests"), Log: storetest.Log()},
		httpapi.Deps{
			LCM: struct{ httpapi.LCM }{}, Reader: st, Packages: struct{ httpapi.Packages }{}, VIMs: struct{ httpapi.VIMs }{},
			Subscriptions: struct{ httpapi.Subscriptions }{},
		}))
	t.Cleanup(srv.Close)
	return srv
}

func insert(t *testing.T, st *store.Store, project string, n int) {
	t.Helper()
	body := `{"vnfInstanceName":"%s","vnfdId":"d","vnfProvider":"Company","instantiationState":"NOT_INSTANTIATED","metadata":{"n":%d,"filling":"` + strings.Repeat("x", 1500) + `"}}`
	if _, err := st.Pool.Exec(context.Background(), `INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, created_at)
		SELECT gen_random_uuid(), $1, $1 || '-' || n, 'd', gen_random_uuid(), 'NOT_INSTANTIATED', format($2, $1 || '-' || n, n)::json, now()
		FROM generate_series(1, $3::integer) AS n`, project, strings.ReplaceAll(body, "%d", "%s"), n); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, srv *httptest.Server, user, query string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+instances+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(user, user[:1])
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func names(t *testing.T, res *http.Response) map[string]bool {
	t.Helper()
	var list []struct{ VnfInstanceName string }
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || json.Unmarshal(raw, &list) != nil {
		t.Fatalf("%d %s: %v", res.StatusCode, raw, err)
	}
	out := map[string]bool{}
	for _, i := range list {
		out[i.VnfInstanceName] = true
	}
	return out
}

var nextPage = regexp.MustCompile(`[?&](nextpage_opaque_marker=[^>&]+)>; rel="next"`)

// A marker is a place in a list and no right to see it: whoever brings another's sees what is his own.
func TestMarkersGiveNoRights(t *testing.T) {
	st := storetest.Open(t)
	insert(t, st, "p1", 25)
	insert(t, st, "p2", 25)
	srv := serve(t, st)
	filter := "filter=" + url.QueryEscape("(eq,vnfProvider,company)")
	for _, first := range []string{"ann", "bob", "root"} {
		link := nextPage.FindStringSubmatch(get(t, srv, first, filter).Header.Get("Link"))
		if link == nil {
			t.Fatalf("%s has no further page", first)
		}
		for second, own := range map[string]string{"ann": "p1-", "bob": "p2-"} {
			for name := range names(t, get(t, srv, second, link[1])) {
				if !strings.HasPrefix(name, own) {
					t.Errorf("with the marker of %s, %s sees %s", first, second, name)
				}
			}
		}
		for _, tampered := range []string{link[1] + "x", link[1][:len(link[1])-3], "nextpage_opaque_marker=", strings.Replace(link[1], "=", "=A", 1)} {
			if res := get(t, srv, first, tampered); res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: %d", tampered, res.StatusCode)
			}
		}
	}
}

// By the links of its pages a list is read whole, each instance once, of the caller's project alone.
func TestPagesAreTheList(t *testing.T) {
	st := storetest.Open(t)
	insert(t, st, "p1", 37)
	insert(t, st, "p2", 21)
	srv := serve(t, st)
	for user, want := range map[string]int{"ann": 37, "bob": 21, "root": 58} {
		for _, filter := range []string{"", "(eq,metadata/filling,'" + strings.Repeat("X", 1500) + "')", "(gt,metadata/n,0)", "(eq,metadata/@key,n)"} {
			query := url.Values{"filter": {filter}, "exclude_default": {""}}.Encode()
			seen := map[string]bool{}
			pages := 0
			for ; query != ""; pages++ {
				res := get(t, srv, user, query)
				query = ""
				if link := nextPage.FindStringSubmatch(res.Header.Get("Link")); link != nil {
					query = link[1]
				}
				page := names(t, res)
				for name := range page {
					if seen[name] {
						t.Errorf("%s sees %s twice", user, name)
					}
				}
				maps.Copy(seen, page)
			}
			if len(seen) != want || pages != (want+9)/10 {
				t.Errorf("%s sees %d instances on %d pages by %.30q, not %d: %v", user, len(seen), pages, filter, want, slices.Sorted(maps.Keys(seen)))
			}
		}
	}
}

// all_records of 50,000 instances is streamed: what the server holds of them does not grow with their number, not even
// while the client stands still.
func TestAllRecordsInConstantMemory(t *testing.T) {
	const many = 50_000
	st := storetest.Open(t)
	insert(t, st, "p1", many)
	srv := serve(t, st)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	_ = names(t, get(t, srv, "root", "")) // what is made once is made
	before := heap()
	res := get(t, srv, "root", "all_records=yes&all_fields")
	if res.StatusCode != 200 || res.Header.Get("Link") != "" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	d := json.NewDecoder(res.Body)
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var most uint64
	rows, seen := 0, make([]bool, many+1)
	for ; d.More(); rows++ {
		var i struct {
			Metadata struct {
				N       int
				Filling string
			}
		}
		if err := d.Decode(&i); err != nil || seen[i.Metadata.N] || len(i.Metadata.Filling) != 1500 {
			t.Fatalf("instance %d of all is %d: %v", rows, i.Metadata.N, err)
		}
		seen[i.Metadata.N] = true
		if rows%5000 == 0 {
			most = max(most, heap())
			if free := st.Pool.Stat(); free.AcquiredConns() > 1 {
				t.Errorf("the stream holds %d connections", free.AcquiredConns())
			}
		}
	}
	t.Logf("%d instances, over a heap that grew by %d kB at most", rows, (max(most, before)-before)>>10)
	if rows != many || most > before+8<<20 {
		t.Errorf("%d instances, with a heap of %d bytes after %d", rows, most, before)
	}
}
