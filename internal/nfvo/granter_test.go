package nfvo_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo/nfvotest"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// step runs a Granter as the engine runs the step "grant".
type step struct {
	t       testing.TB
	granter *nfvo.Granter
	now     time.Time
	work    lcm.Work // as recorded
	waits   []time.Duration
	notes   []string
}

func newStep(t testing.TB, cfg nfvo.GrantConfig) *step {
	t.Helper()
	if cfg.Endpoint == "" {
		cfg.Endpoint = "https://vnfm.example.com/"
	}
	g, err := nfvo.NewGranter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &step{t: t, granter: g, now: begun}
}

func (s *step) execution() *lcm.Execution {
	return &lcm.Execution{
		Op: &lcm.OpOcc{ID: "op-1", InstanceID: "vnf-1", Operation: sol003.LcmOperationTypeInstantiate, Work: s.work,
			Params: json.RawMessage(`{"flavourId":"simple","additionalParams":{"size":"big","password":"geheim"}}`)},
		Instance: &lcm.Instance{ID: "vnf-1", VnfdID: "vnfd-1", Info: &sol003.InstantiatedVnfInfo{
			FlavourId: "simple", VnfcResourceInfo: []sol003.VnfcResourceInfo{{Id: "c-1", VduId: "VDU1"}, {Id: "c-2", VduId: "VDU1"}},
		}},
		Before: &lcm.Instance{ID: "vnf-1"}, Plan: &lcm.Plan{}, Begun: begun,
		Flavour: &vnfd.Flavour{ID: "simple", Affinity: []vnfd.AffinityRule{{Anti: true, Scope: "nfvi_node", Targets: []string{"VDU1"}}}},
		Log:     slog.New(slog.DiscardHandler), Now: func() time.Time { return s.now },
	}
}

// once runs the step once; what it leaves is recorded as the engine does: after a wait, not after an error.
func (s *step) once(ctx context.Context) (*lcm.Grant, bool, error) {
	s.t.Helper()
	x := s.execution()
	g, p, err := s.granter.Grant(ctx, x)
	if err != nil {
		return nil, true, err
	}
	raw, err := json.Marshal(x.Op.Work)
	if err != nil {
		s.t.Fatal(err)
	}
	s.work = nil
	if err := json.Unmarshal(raw, &s.work); err != nil {
		s.t.Fatal(err)
	}
	if !p.Finished() {
		s.waits, s.notes = append(s.waits, p.After()), append(s.notes, p.Note)
		s.now = s.now.Add(p.After())
	}
	return g, p.Finished(), nil
}

func (s *step) run() (*lcm.Grant, error) {
	s.t.Helper()
	for range 10_000 {
		if g, done, err := s.once(context.Background()); done {
			return g, err
		}
	}
	s.t.Fatal("the step never ends")
	return nil, nil
}

func refused(t testing.TB, err error, kind lcm.Kind, detail string) {
	t.Helper()
	var e *lcm.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Detail, detail) {
		t.Fatalf("error %q of the kind %q; want %q in one of the kind %q", err, lcm.KindOf(err), detail, kind)
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func TestGrantedAtOnce(t *testing.T) {
	for _, path := range []string{"/grant/v1", "/grant/v1/", "/grant/v1/grants", "/grant/v1/grants/", "/x/../grant/v1"} {
		t.Run(path, func(t *testing.T) {
			o := nfvotest.Start(t)
			o.Behave(nfvotest.Manner{Observe: func(r *http.Request, _ sol003.GrantRequest) {
				if r.Header.Get("Version") != "1.2.3" || r.Header.Get("Content-Type") != "application/json" || !strings.Contains(r.Header.Get("Accept"), "application/json") {
					t.Errorf("headers %v", r.Header)
				}
			}})
			s := newStep(t, nfvo.GrantConfig{BaseURL: o.URL() + path, Version: "1.2.3"})
			g, err := s.run()
			if err != nil {
				t.Fatal(err)
			}
			if g.ID != "grant-1" || g.Zones["c-1"] != "nova" || g.VDUZones["VDU1"] != "nova" || len(s.waits) != 0 {
				t.Errorf("%+v after %v", g, s.waits)
			}
			rs := o.Requests()
			if len(rs) != 1 {
				t.Fatalf("%d requests", len(rs))
			}
			want := map[string]sol003.Link{
				"vnfLcmOpOcc": {Href: "https://vnfm.example.com/vnflcm/v1/vnf_lcm_op_occs/op-1"},
				"vnfInstance": {Href: "https://vnfm.example.com/vnflcm/v1/vnf_instances/vnf-1"},
			}
			if d := cmp.Diff(want, rs[0].UnderscoreLinks); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(sol003.KeyValuePairs{"size": "big"}, rs[0].AdditionalParams); d != "" {
				t.Error(d)
			}
			if len(rs[0].PlacementConstraints) != 1 || len(rs[0].AddResources) != 2 {
				t.Errorf("%+v", rs[0])
			}
		})
	}
}

func TestGrantedLater(t *testing.T) {
	o := nfvotest.Start(t)
	for name, c := range map[string]struct {
		wait string
		want time.Duration
	}{
		"seconds": {"7", 7 * time.Second}, "none": {"", 5 * time.Second}, "nonsense": {"soon", 5 * time.Second}, "negative": {"-1", 5 * time.Second},
		"at once": {"0", 100 * time.Millisecond}, "too long": {"999999999999", 10 * time.Minute}, "past": {"Mon, 02 Jan 2006 15:04:05 GMT", 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "too long" { // is no int on every machine, but one here
				c.wait = "999999999"
			}
			o.Behave(nfvotest.Manner{Looks: 3, Wait: c.wait})
			before, looks := len(o.Requests()), o.Looks()
			s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()})
			g, err := s.run()
			if err != nil || !strings.HasPrefix(g.ID, "grant-") {
				t.Fatal(g, err)
			}
			if d := cmp.Diff([]time.Duration{c.want, c.want, c.want, c.want}, s.waits); d != "" {
				t.Error(d)
			}
			if len(o.Requests())-before != 1 || o.Looks()-looks != 4 {
				t.Errorf("asked %d times, looked %d times", len(o.Requests())-before, o.Looks()-looks)
			}
		})
	}
}

// TestRetryAfterDate: an HTTP date is heeded too.
func TestRetryAfterDate(t *testing.T) {
	o := nfvotest.Start(t)
	o.Behave(nfvotest.Manner{Looks: 1, Wait: time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)})
	s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()})
	if _, err := s.run(); err != nil {
		t.Fatal(err)
	}
	if s.waits[0] < 30*time.Second || s.waits[0] > 90*time.Second {
		t.Errorf("waited %v", s.waits)
	}
}

// TestTakenUpOnce: another node that goes on reads what was taken up and does not ask again.
func TestTakenUpOnce(t *testing.T) {
	o := nfvotest.Start(t)
	o.Behave(nfvotest.Manner{Looks: 2, Location: "grants/grant-1"}) // relative to what was asked
	s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()})
	if _, done, err := s.once(context.Background()); done {
		t.Fatal(err)
	}
	other := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()})
	other.work = s.work
	g, err := other.run()
	if err != nil || g.ID != "grant-1" || len(o.Requests()) != 1 {
		t.Fatalf("%+v, %v, asked %d times", g, err, len(o.Requests()))
	}
}

func TestRefused(t *testing.T) {
	o := nfvotest.Start(t)
	for name, looks := range map[string]int{"at once": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			o.Behave(nfvotest.Manner{Looks: looks, Refuse: "no room in http://u:geheim@zone"})
			before := len(o.Requests())
			_, err := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Retries: 5}).run()
			refused(t, err, lcm.KindForbidden, "The NFVO refused the grant: no room in http://u:[redacted]@zone")
			if n := len(o.Requests()) - before; n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestTriedAgain(t *testing.T) {
	o := nfvotest.Start(t)
	for name, c := range map[string]struct {
		manner  nfvotest.Manner
		retries int
		waits   []time.Duration
		fails   string
	}{
		"two failures":          {nfvotest.Manner{Failures: 2}, 2, []time.Duration{30 * time.Second, 30 * time.Second}, ""},
		"three failures":        {nfvotest.Manner{Failures: 3}, 2, []time.Duration{30 * time.Second, 30 * time.Second}, "failed requests: 3. The NFVO answered 500 to the grant: a bad day"},
		"no retries":            {nfvotest.Manner{Failures: 1}, 0, nil, "failed requests: 1."},
		"it says when":          {nfvotest.Manner{Failures: 1, Wait: "3"}, 2, []time.Duration{3 * time.Second}, ""},
		"too many requests":     {nfvotest.Manner{Status: 429, Wait: "60"}, 1, []time.Duration{time.Minute}, "The NFVO answered 429"},
		"never available":       {nfvotest.Manner{Status: 503, Body: "<html>"}, 1, []time.Duration{30 * time.Second}, "The NFVO answered 503 to the grant"},
		"while it is looked at": {nfvotest.Manner{Looks: 1, Failures: 1}, 1, []time.Duration{30 * time.Second, 5 * time.Second, 5 * time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o.Behave(c.manner)
			s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Retries: c.retries})
			_, err := s.run()
			if c.fails == "" && err != nil {
				t.Fatal(err)
			}
			if c.fails != "" {
				refused(t, err, lcm.KindTerminal, c.fails)
			}
			if d := cmp.Diff(c.waits, s.waits); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestFailingLooks: while it is looked at, an NFVO that comes back has all its retries again.
func TestFailingLooks(t *testing.T) {
	o := nfvotest.Start(t)
	o.Behave(nfvotest.Manner{Looks: 3})
	s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Retries: 1})
	for range 3 {
		if _, done, err := s.once(context.Background()); done {
			t.Fatal(err)
		}
		o.Behave(nfvotest.Manner{Looks: 3, Failures: 1})
		if _, done, err := s.once(context.Background()); done {
			t.Fatal(err)
		}
	}
	if _, err := s.run(); err != nil || len(o.Requests()) != 1 {
		t.Fatal(err, len(o.Requests()))
	}
}

func TestBadAnswers(t *testing.T) {
	o := nfvotest.Start(t)
	wrong := func(change func(*sol003.Grant)) nfvotest.Manner {
		return nfvotest.Manner{Change: func(g *sol003.Grant, _ sol003.GrantRequest) { change(g) }}
	}
	location := func(l string) nfvotest.Manner { return nfvotest.Manner{Looks: 1, Location: l} }
	for name, c := range map[string]struct {
		manner nfvotest.Manner
		says   string
	}{
		"garbage":            {nfvotest.Manner{Status: 201, Body: "\x00\xff<html>"}, "with what is no Grant"},
		"another type":       {nfvotest.Manner{Status: 201, Body: `"{\"id\": \"g\"}"`}, "with what is no Grant"},
		"deep":               {nfvotest.Manner{Status: 201, Body: strings.Repeat("[", 1_000_000)}, "with what is no Grant"},
		"empty object":       {nfvotest.Manner{Status: 201, Body: `{}`}, "the grant has no id"},
		"empty":              {nfvotest.Manner{Status: 201}, "did not say where it will be"},
		"200":                {nfvotest.Manner{Status: 200, Body: `{}`}, "The NFVO answered 200 to the grant"},
		"204":                {nfvotest.Manner{Status: 204}, "The NFVO answered 204 to the grant"},
		"redirect":           {nfvotest.Manner{Status: 307, Header: http.Header{"Location": {"/elsewhere"}}}, "redirects are not followed"},
		"401":                {nfvotest.Manner{Status: 401}, "did not accept our credentials"},
		"404":                {nfvotest.Manner{Status: 404}, "The NFVO answered 404"},
		"422":                {nfvotest.Manner{Status: 422, Body: `{"status":422,"detail":"` + strings.Repeat("ä", 2000) + `"}`}, "The NFVO answered 422 to the grant: ä"},
		"large":              {nfvotest.Manner{Status: 201, Body: strings.Repeat(" ", 4<<20+1)}, "with more than 4194304 bytes"},
		"add missing":        {wrong(func(g *sol003.Grant) { g.AddResources = g.AddResources[:1] }), "grant add resource error: not answered: c-2"},
		"another's":          {wrong(func(g *sol003.Grant) { g.VnfLcmOpOccId = "op-2" }), "is for op occ op-2"},
		"no location":        {nfvotest.Manner{Status: 202}, "did not say where"},
		"another host":       {location("http://169.254.169.254/latest"), "wants the grant to be read at http://169.254.169.254"},
		"another scheme":     {location("file:///etc/passwd"), "only read where they were asked for"},
		"another port":       {location("http://127.0.0.1:1/grants/1"), "only read where they were asked for"},
		"protocol relative":  {location("//evil.example.com/grants/1"), "evil.example.com"},
		"with a user":        {location(strings.Replace(o.URL(), "http://", "http://u:geheim@", 1) + "/grant/v1/grants/x"), "in no readable way"},
		"unreadable":         {location("http://[::1"), "in no readable way"},
		"gone while waiting": {location("/grant/v1/grants/other"), "The NFVO answered 404 to the grant: no such grant"},
	} {
		t.Run(name, func(t *testing.T) {
			o.Behave(c.manner)
			_, err := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Retries: 3}).run()
			refused(t, err, lcm.KindTerminal, c.says)
			if len(err.Error()) > 3000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestUndecided(t *testing.T) {
	o := nfvotest.Start(t)
	o.Behave(nfvotest.Manner{Looks: 1 << 30})
	s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Decision: 10 * time.Minute, Poll: time.Minute})
	_, err := s.run()
	refused(t, err, lcm.KindTerminal, "did not decide about the grant within 10m0s")
	if len(s.waits) != 10 || s.notes[0] != "the NFVO's grant" {
		t.Errorf("waited %v for %v", s.waits, s.notes)
	}
}

func TestOutOfReach(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	_ = ln.Close()
	cutOff := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusCreated)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(cutOff.Close)
	hanging := nfvotest.Start(t)
	hanging.Behave(nfvotest.Manner{Hang: true})
	for name, c := range map[string]struct{ base, says string }{
		"refused": {"http://" + nobody, "could not be reached"},
		"cut off": {cutOff.URL, "could not be reached"},
		"hangs":   {hanging.GrantURL(), "did not answer within 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := nfvo.GrantConfig{BaseURL: c.base, Retries: 1, RetryWait: time.Second}
			if name == "hangs" {
				cfg.Timeout = 50 * time.Millisecond
			}
			s := newStep(t, cfg)
			_, err := s.run()
			refused(t, err, lcm.KindTerminal, c.says)
			if d := cmp.Diff([]time.Duration{time.Second}, s.waits); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("the node stops", func(t *testing.T) {
		var asked atomic.Bool
		ctx, cancel := context.WithCancelCause(context.Background())
		hanging.Behave(nfvotest.Manner{Hang: true, Observe: func(*http.Request, sol003.GrantRequest) { asked.Store(true); cancel(lcm.ErrShutdown) }})
		s := newStep(t, nfvo.GrantConfig{BaseURL: hanging.GrantURL(), Retries: 1})
		_, _, err := s.once(ctx)
		if !errors.Is(err, lcm.ErrShutdown) || !asked.Load() || s.work != nil {
			t.Errorf("%v %v", err, s.work)
		}
	})
}

func TestLogin(t *testing.T) {
	o := nfvotest.Start(t)
	o.Admit(func(r *http.Request) bool {
		u, p, _ := r.BasicAuth()
		return u == "vnfm" && p == "geheim"
	})
	basic := func(p string) outbound.Config {
		return outbound.Config{Auth: outbound.Auth{Basic: &outbound.Basic{UserName: "vnfm", Password: lcm.Secret(p)}}}
	}
	if _, err := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Login: basic("geheim")}).run(); err != nil {
		t.Error(err)
	}
	_, err := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL(), Login: basic("falsch"), Retries: 3}).run()
	refused(t, err, lcm.KindTerminal, "did not accept our credentials for the grant: who are you?")
	_, err = newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()}).run()
	refused(t, err, lcm.KindTerminal, "did not accept our credentials")
}

func TestAddresses(t *testing.T) {
	for _, base := range []string{"", "nfvo", "ftp://nfvo/", "http://", "http://u:geheim@nfvo/grant/v1", "http://nfvo/grant/v1?a=b", "http://nfvo/#x", "http://[::1/%zz", ":"} {
		_, err := nfvo.NewGranter(nfvo.GrantConfig{BaseURL: base})
		refused(t, err, lcm.KindInvalid, "the NFVO's address")
	}
}

// TestUnreadableWork: what an earlier version left is an error and no second request.
func TestUnreadableWork(t *testing.T) {
	o := nfvotest.Start(t)
	for _, work := range []string{`7`, `{"location":":"}`} {
		s := newStep(t, nfvo.GrantConfig{BaseURL: o.GrantURL()})
		s.work = lcm.Work{"nfvo": json.RawMessage(work)}
		if _, err := s.run(); err == nil {
			t.Error("it passes")
		}
	}
	if n := len(o.Requests()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestTheFakesGrants: what the NFVO of tests answers keeps to the schema, or it would prove nothing.
func TestTheFakesGrants(t *testing.T) {
	q := sol003.GrantRequest{VnfInstanceId: "v", VnfLcmOpOccId: "o", AddResources: []sol003.ResourceDefinition{{Id: "a", Type: "COMPUTE"}},
		RemoveResources: []sol003.ResourceDefinition{{Id: "r", Type: "COMPUTE"}}, UpdateResources: []sol003.ResourceDefinition{{Id: "u", Type: "COMPUTE"}}}
	raw, err := json.Marshal(nfvotest.Grant("g", "http://nfvo/grants/g", q))
	if err != nil {
		t.Fatal(err)
	}
	if err := nfvotest.Valid("Grant", raw); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"id":"g","vnfInstanceId":7,"vnfLcmOpOccId":"o"}`, `nonsense`} {
		if nfvotest.Valid("Grant", []byte(bad)) == nil {
			t.Errorf("%s passes", bad)
		}
	}
	if err := nfvotest.Valid("Nothing", raw); err == nil {
		t.Error("an unknown message passes")
	}
}
