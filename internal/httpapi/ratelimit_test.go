package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestRateLimit(t *testing.T) {
	now := time.Unix(1000, 0)
	cfg := Config{RequestsPerSecond: 2, Burst: 3, Now: func() time.Time { return now }, Auth: Any{
		NewBasic(map[string]BasicUser{"a": {Password: "x", ProjectID: "p", Role: lcm.RoleAdmin}, "b": {Password: "x", ProjectID: "p", Role: lcm.RoleAdmin}}),
	}}
	h := newFake().handler(cfg)
	get := func(user, password, from string) *http.Response {
		t.Helper()
		r := httptest.NewRequest("GET", vi, nil)
		r.RemoteAddr = net.JoinHostPort(from, "1")
		r.SetBasicAuth(user, password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for range 3 {
		if res := get("a", "x", "10.0.0.1"); res.StatusCode != 200 {
			t.Fatalf("within the burst: %d", res.StatusCode)
		}
	}
	res := get("a", "x", "10.0.0.2")
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" || detail(t, res) == "" {
		t.Errorf("beyond it, from elsewhere: %d, %v", res.StatusCode, res.Header)
	}
	if res := get("b", "x", "10.0.0.1"); res.StatusCode != 200 {
		t.Errorf("another user: %d", res.StatusCode)
	}
	now = now.Add(500 * time.Millisecond)
	if first, second := get("a", "x", "10.0.0.1"), get("a", "x", "10.0.0.1"); first.StatusCode != 200 || second.StatusCode != 429 {
		t.Errorf("half a second later: %d, %d", first.StatusCode, second.StatusCode)
	}
	// Whoever guesses passwords is stopped by address, right password or not.
	for n := range 3 {
		if res := get("b", fmt.Sprint(n), "10.0.0.9"); res.StatusCode != 401 {
			t.Errorf("a guess: %d", res.StatusCode)
		}
	}
	if res := get("b", "x", "10.0.0.9"); res.StatusCode != 429 {
		t.Errorf("after guessing: %d", res.StatusCode)
	}
	if res := get("b", "x", "10.0.0.8"); res.StatusCode != 200 {
		t.Errorf("from elsewhere: %d", res.StatusCode)
	}
}

func TestRateLimitMemory(t *testing.T) {
	c := newCallers(1, 1)
	now := time.Unix(0, 0)
	for n := range 3*maxCallers + 5 {
		c.take(fmt.Sprint(n), now)
		if n%100 == 0 { // comes again and again: is not forgotten
			if c.take("regular", now); c.empty("regular", now) == 0 {
				t.Fatalf("forgotten after %d others", n)
			}
		}
	}
	if len(c.current)+len(c.before) > 2*maxCallers {
		t.Errorf("%d buckets", len(c.current)+len(c.before))
	}
	if newCallers(0, 5) != nil {
		t.Error("no limit is one")
	}
}

// A body that trickles is cut off, and what comes after a body in time is not.
func TestSlowBody(t *testing.T) {
	for _, slow := range []bool{true, false} {
		timeout := time.Minute
		if slow {
			timeout = 300 * time.Millisecond
		}
		srv := httptest.NewServer(newFake().handler(Config{BodyTimeout: timeout}))
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		const body = `{"vnfdId":"` + vnfdID + `"}`
		sent := body
		if slow {
			sent = body[:5]
		}
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", vi, len(body), sent)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
		answer := make([]byte, 4096)
		n, err := conn.Read(answer)
		status, _, _ := strings.Cut(string(answer[:n]), "\r\n")
		if err != nil || slow != strings.HasPrefix(status, "HTTP/1.1 408 ") || slow == strings.HasPrefix(status, "HTTP/1.1 201 ") {
			t.Errorf("slow %t: %s, %v", slow, status, err)
		}
		_ = conn.Close()
		srv.Close()
	}
}

// An upload that trickles is cut off too.
func TestSlowUpload(t *testing.T) {
	deadlines := 0
	r := &patientReader{r: strings.NewReader(strings.Repeat("x", 3*leastUpload)), set: func(at time.Time) error {
		if !at.IsZero() {
			deadlines++
		}
		return nil
	}}
	b := make([]byte, 1)
	for {
		if _, err := r.Read(b); err != nil {
			break
		}
	}
	if deadlines != 4 {
		t.Errorf("the deadline was put off %d times", deadlines)
	}
}

// Whoever asks and takes no answer is not waited for.
func TestAnswerNotTaken(t *testing.T) {
	f := newFake()
	f.instances = []lcm.Body{body(known, map[string]any{"instantiationState": "NOT_INSTANTIATED", "vnfInstanceName": strings.Repeat("x", 64<<20)})}
	ended := make(chan struct{}, 1)
	serve := func(stall time.Duration) *httptest.Server {
		srv := httptest.NewServer(f.handler(Config{Stall: stall, Observe: func(Observation) { ended <- struct{}{} }}))
		t.Cleanup(srv.Close)
		return srv
	}
	srv := serve(200 * time.Millisecond)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", vi+"/"+known); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Fatal("it is waited for")
	}
	// An answer of the same size that is taken comes whole, and the connection goes on; on a machine that has other things to
	// do, too.
	srv = serve(2 * time.Minute)
	for range 2 {
		res, err := http.Get(srv.URL + vi + "/" + known)
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, res); len(got) < 64<<20 {
			t.Errorf("%d bytes", len(got))
		}
		_ = res.Body.Close()
		<-ended
	}
}

func TestVersionHeader(t *testing.T) {
	for _, c := range []struct {
		path, version string
		status        int
	}{
		{vi, "", 200}, {vi, "1.3.0", 200}, {vi, "1.0.0", 200}, {vi, "1.4.2-impl:example.org:vnfm:1", 200}, {vi, "2.0.0", 406},
		{oc, "10.0.0", 406}, {vi, "1", 400}, {vi, "1.3", 400}, {vi, "01.3.0", 400}, {vi, "1.3.0,2.0.0", 400}, {vi, "x", 400},
		{pk, "1.3.0", 200}, {pk, "2.1.0", 406}, {pk, "new", 400},
		{"/vnflcm/api_versions", "2.0.0", 200}, {"/vnflcm/v1/api_versions", "2.0.0", 200}, {"/vnfpkgm/api_versions", "2.1.0", 200},
		{"/vnflcm/api_versions", "two", 400}, {vm, "two", 200},
	} {
		var headers []string
		if c.version != "" {
			headers = []string{"Version: " + c.version}
		}
		res := ask(t, newFake().handler(Config{}), "GET", c.path, "", headers...)
		if res.StatusCode != c.status || c.path != vm && res.Header.Get("Version") != "1.3.0" {
			t.Errorf("%+v: %d, %v", c, res.StatusCode, res.Header)
		}
		if c.status >= 400 {
			detail(t, res)
		}
	}
}

func TestAddressBehindProxies(t *testing.T) {
	s := &server{cfg: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, c := range []struct{ from, forwarded, want string }{
		{"192.0.2.1:5", "198.51.100.7", "192.0.2.1"}, // anybody may write the header
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"10.0.0.1:5", "198.51.100.7", "198.51.100.7"},
		{"10.0.0.1:5", "203.0.113.9, 198.51.100.7, 10.1.1.1", "198.51.100.7"},
		{"10.0.0.1:5", "198.51.100.7, garbage", "10.0.0.1"},
		{"10.0.0.1:5", "10.2.2.2", "10.2.2.2"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.from
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := s.address(r); got != c.want {
			t.Errorf("from %s for %q: %s, want %s", c.from, c.forwarded, got, c.want)
		}
	}
}
