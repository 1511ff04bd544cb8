package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// stall is an API server of pods: it lists them, tells of changes to those who watch, and counts who asks.
type stall struct {
	mu      sync.Mutex
	pods    map[string]any
	version int
	changes chan map[string]any
	asked   map[string]int
	denied  bool
}

func (s *stall) pod(name string) map[string]any {
	s.version++
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"name": name, "namespace": "ns", "uid": name, "resourceVersion": fmt.Sprint(s.version),
		"managedFields": []any{map[string]any{"manager": "x"}},
	}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}
}

func (s *stall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason})
	}
	watching := r.URL.Query().Get("watch") != ""
	s.mu.Lock()
	denied := s.denied
	switch {
	case watching:
		s.asked["watch"]++
	case strings.HasSuffix(r.URL.Path, "/pods"):
		s.asked["list"]++
	default:
		s.asked["get"]++
	}
	s.mu.Unlock()
	switch {
	case watching && denied, denied && strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("limit") != "":
		fail(http.StatusForbidden, "Forbidden")
	case watching && r.URL.Query().Get("sendInitialEvents") != "":
		fail(http.StatusUnprocessableEntity, "Invalid")
	case watching:
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case change := <-s.changes:
				_ = json.NewEncoder(w).Encode(change)
				w.(http.Flusher).Flush()
			}
		}
	case strings.HasSuffix(r.URL.Path, "/pods"):
		s.mu.Lock()
		defer s.mu.Unlock()
		items := []any{}
		for _, p := range s.pods {
			items = append(items, p)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items})
	default:
		s.mu.Lock()
		p, ok := s.pods[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
		s.mu.Unlock()
		if !ok {
			fail(http.StatusNotFound, "NotFound")
			return
		}
		_ = json.NewEncoder(w).Encode(p)
	}
}

func (s *stall) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func newStall(t *testing.T, cfg Config) (*stall, *cluster) {
	t.Helper()
	s := &stall{pods: map[string]any{}, changes: make(chan map[string]any), asked: map[string]int{}}
	s.pods["a"] = s.pod("a")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := newDriver(t, cfg).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestWatch: looks cost no requests while a watch tells; what has been written and is not told yet is read; a watch ends when
// nobody looks, and with the driver.
func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("watched", func(t *testing.T) {
		s, c := newStall(t, Config{})
		a := pods
		a.Name = "a"
		for range 100 {
			u, err := c.look(t.Context(), &a, "ns", "")
			if err != nil || u == nil {
				t.Fatalf("look: %v, %v", u, err)
			}
			if len(u.GetManagedFields()) > 0 || u.Object["spec"].(map[string]any)["containers"] != nil {
				t.Fatalf("what nobody looks at is kept: %v", u.Object)
			}
		}
		if s.count("get") != 0 || s.count("list") != 1 {
			t.Errorf("100 looks have cost %v", s.asked)
		}
		if _, err := c.look(t.Context(), &a, "ns", "1000"); err != nil || s.count("get") != 1 {
			t.Errorf("what has been written later is not read: %v, %v", s.asked, err)
		}
		s.mu.Lock()
		b := s.pod("b")
		s.pods["b"] = b
		s.mu.Unlock()
		s.changes <- map[string]any{"type": "ADDED", "object": b}
		until(t, "the new pod is told of", func() bool {
			list, err := c.podsOf(t.Context(), "ns")
			return err == nil && len(list) == 2
		})
		s.changes <- map[string]any{"type": "DELETED", "object": b}
		until(t, "the pod's end is told of", func() bool {
			list, err := c.podsOf(t.Context(), "ns")
			return err == nil && len(list) == 1
		})
		if s.count("list") != 1 {
			t.Errorf("the pods have been listed %d times", s.count("list"))
		}
	})
	t.Run("reported late", func(t *testing.T) {
		s, c := newStall(t, Config{})
		a := pods
		a.Name = "a"
		if _, err := c.look(t.Context(), &a, "ns", ""); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		changed := s.pod("a")
		s.pods["a"] = changed
		s.mu.Unlock()
		written := fmt.Sprint(s.version)
		for range 100 {
			if u, err := c.look(t.Context(), &a, "ns", written); err != nil || u == nil || u.GetResourceVersion() != written {
				t.Fatalf("look: %v, %v", u, err)
			}
		}
		if s.count("get") != 1 {
			t.Errorf("100 looks at what is reported late have cost %v", s.asked)
		}
		w := c.watching(t.Context(), pods.gvr(), "ns")
		s.changes <- map[string]any{"type": "MODIFIED", "object": changed}
		until(t, "the change is told of", func() bool { return w.get("ns", "a").GetResourceVersion() == written })
		if w.mu.Lock(); len(w.read) != 0 {
			t.Errorf("what was read is kept after it was told of: %v", w.read)
		}
		w.mu.Unlock()
		s.mu.Lock()
		delete(s.pods, "a")
		s.mu.Unlock()
		s.changes <- map[string]any{"type": "DELETED", "object": changed}
		until(t, "the pod's end is told of", func() bool { return w.get("ns", "a") == nil })
		if u, err := c.look(t.Context(), &a, "ns", written); err != nil || u != nil {
			t.Errorf("what is gone is found: %v, %v", u, err)
		}
	})
	t.Run("nobody looks", func(t *testing.T) {
		_, c := newStall(t, Config{WatchIdle: time.Millisecond})
		if _, err := c.podsOf(t.Context(), "ns"); err != nil {
			t.Fatal(err)
		}
		until(t, "the watch ends", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.watches) == 0
		})
	})
	t.Run("not allowed", func(t *testing.T) {
		s, c := newStall(t, Config{})
		s.mu.Lock()
		s.denied = true
		s.mu.Unlock()
		for range 3 {
			if list, err := c.podsOf(t.Context(), "ns"); err != nil || len(list) != 1 {
				t.Fatalf("podsOf: %v, %v", list, err)
			}
		}
		a := pods
		a.Name = "a"
		if u, err := c.look(t.Context(), &a, "ns", ""); err != nil || u == nil || s.count("get") != 1 {
			t.Errorf("look: %v, %v, %v", u, err, s.asked)
		}
	})
}

func TestOlder(t *testing.T) {
	for _, tt := range []struct {
		version, than string
		want          bool
	}{{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"a", "10", false}, {"", "10", false}} {
		if got := older(tt.version, tt.than); got != tt.want {
			t.Errorf("older(%q, %q) = %t", tt.version, tt.than, got)
		}
	}
}

// TestBoundCalls: an API server that says nothing does not hold a discovery for longer than a call may take.
func TestBoundCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c, err := newDriver(t, Config{CallTimeout: 20 * time.Millisecond}).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.kindOf(t.Context(), pods.gvk()); !lcm.Is(err, lcm.KindRetryable) {
		t.Errorf("kindOf: %v", err)
	}
}

// TestSelected: only pods are looked at that carry no label of ours; of Secrets nothing is kept.
func TestSelected(t *testing.T) {
	var mu sync.Mutex
	selectors := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		selectors[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]] = r.URL.Query().Get("labelSelector")
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","code":403}`))
	}))
	defer server.Close()
	c, err := newDriver(t, Config{}).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	services := object{Version: "v1", Kind: "Service", Resource: "services"}
	for _, o := range []object{pods, services} {
		c.watch(watchKey{o.gvr(), "ns"}).ready(t.Context())
	}
	mu.Lock()
	defer mu.Unlock()
	if selectors["pods"] != "" || selectors["services"] != instanceLabel {
		t.Errorf("what is selected: %q", selectors)
	}
	secret := doc(t, true, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: Yg==}}")
	if slim(secret.Unstructured); secret.Object["data"] != nil {
		t.Errorf("what a Secret holds is kept: %v", secret.Object)
	}
}

// TestUnusedClusters: the client of a VIM that nobody uses is dropped when another is used.
func TestUnusedClusters(t *testing.T) {
	d := newDriver(t, Config{})
	target := func(id string) *lcm.VimTarget {
		return &lcm.VimTarget{VIM: lcm.VIM{ID: id, AuthURL: "http://127.0.0.1:1", Auth: map[string]any{"bearer_token": "t"}}}
	}
	old, err := d.connect(target("old"))
	if err != nil {
		t.Fatal(err)
	}
	old.used = old.used.Add(-unused)
	if _, err := d.connect(target("new")); err != nil || len(d.clusters) != 1 || !old.closed {
		t.Errorf("%d clients are kept, %v", len(d.clusters), err)
	}
	if again, err := d.connect(target("old")); err != nil || again == old {
		t.Errorf("the client that was dropped is used: %v", err)
	}
}

// TestBoundWatches: so many namespaces have a watch of their own, the others share one of the cluster's where the account may have
// that; where it may not, there are no more than so many.
func TestBoundWatches(t *testing.T) {
	for _, wide := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
				_, _ = fmt.Fprintf(w, `{"status":{"allowed":%t}}`, wide)
			case r.URL.Query().Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity)
			case r.URL.Query().Get("watch") != "":
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			case strings.HasSuffix(r.URL.Path, "/services"):
				_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"5"},"items":[]}`)
			default:
				w.WriteHeader(http.StatusNotFound)
				_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","code":404,"reason":"NotFound"}`)
			}
		}))
		t.Cleanup(server.Close) // after the driver
		c, err := newDriver(t, Config{}).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
		if err != nil {
			t.Fatal(err)
		}
		services := object{Version: "v1", Kind: "Service", Resource: "services", Namespaced: true}
		for n := range 2 * mostOwn {
			w := c.watching(t.Context(), services.gvr(), fmt.Sprintf("ns-%d", n))
			if own := w.key.namespace != ""; own != (!wide || n < mostOwn) {
				t.Errorf("everywhere: %t; the watch of namespace %d is its own: %t", wide, n, own)
			}
			w.ready(t.Context())
		}
		if own := c.watching(t.Context(), services.gvr(), "ns-0").key.namespace != ""; own == wide {
			t.Error("the first namespace does not share the watch of all") // its own ends since nobody looks at it
		}
		if wide {
			continue
		}
		for n := range mostWatches {
			c.watching(t.Context(), services.gvr(), fmt.Sprintf("more-%d", n))
		}
		c.mu.Lock()
		if len(c.watches) != mostWatches {
			t.Errorf("there are %d watches", len(c.watches))
		}
		c.mu.Unlock()
		if c.watching(t.Context(), services.gvr(), "one-more").ready(t.Context()) {
			t.Error("one more is watched")
		}
	}
}
