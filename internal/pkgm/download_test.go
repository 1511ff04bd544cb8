package pkgm_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// repository serves a package in many ways.
func repository(t *testing.T, zip []byte) (*httptest.Server, *atomic.Int64) {
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/ok.zip", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(zip) })
	mux.HandleFunc("/auth.zip", func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "joe" || p != "geheim" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(zip)
	})
	mux.HandleFunc("/flaky.zip", func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Content-Length", fmt.Sprint(len(zip)))
			_, _ = w.Write(zip[:len(zip)/2])
		default:
			_, _ = w.Write(zip)
		}
	})
	mux.HandleFunc("/moved.zip", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok.zip", http.StatusFound) })
	mux.HandleFunc("/loop.zip", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop.zip", http.StatusFound) })
	mux.HandleFunc("/metadata.zip", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/x.zip", http.StatusFound)
	})
	mux.HandleFunc("/ftp.zip", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "ftp://example.com/x.zip", http.StatusFound)
	})
	mux.HandleFunc("/stall.zip", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(zip[:10])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/large.zip", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999999999") })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv, &asked
}

func TestDownload(t *testing.T) {
	ctx := context.Background()
	zip := csar(t, vnfd1)
	srv, _ := repository(t, zip)
	patient := newWorld(t, pkgm.Config{SizeCap: 1 << 20, Download: pkgm.Download{Tries: 3}})
	hasty := newWorld(t, pkgm.Config{SizeCap: 1 << 20, Download: pkgm.Download{Stall: 200 * time.Millisecond, Tries: 3}})
	for _, c := range []struct {
		path, user, password string
		status               int
		detail               string
	}{
		{path: "/ok.zip"},
		{path: "/auth.zip", user: "joe", password: "geheim"},
		{path: "/auth.zip", user: "joe", password: "wrong", status: 400, detail: "401 Unauthorized"},
		{path: "/flaky.zip"},
		{path: "/moved.zip"},
		{path: "/none.zip", status: 400, detail: "404 Not Found"},
		{path: "/loop.zip", status: 503, detail: "redirects"},
		{path: "/metadata.zip", status: 400, detail: "may not be downloaded from this address"},
		{path: "/ftp.zip", status: 400, detail: "ftp://example.com/x.zip"},
		{path: "/stall.zip", status: 503, detail: "nothing came for"},
		{path: "/large.zip", status: 413, detail: "larger than"},
	} {
		t.Run(strings.Trim(c.path, "/")+c.password, func(t *testing.T) {
			w := patient
			if c.path == "/stall.zip" {
				w = hasty
			}
			id := w.create(t)
			if err := w.UploadFromURI(ctx, user, id, sol003.UploadVnfPackageFromUriRequest{
				AddressInformation: srv.URL + c.path + "?signature=geheim", UserName: c.user, Password: c.password,
			}); err != nil {
				t.Fatal(err)
			}
			if s := w.shown(t, id); s.OnboardingState != "UPLOADING" {
				t.Errorf("accepted: %+v", s)
			}
			var row string
			if err := w.st.Pool.QueryRow(ctx, `SELECT p::text FROM vnf_packages p WHERE id = $1`, id).Scan(&row); err != nil {
				t.Fatal(err)
			}
			if c.password != "" && strings.Contains(row, c.password) {
				t.Error("the password stands in the row")
			}
			w.work(t, id)
			s := w.shown(t, id)
			if d := s.OnboardingFailureDetails; d != nil && strings.Contains(d.Detail, "geheim") {
				t.Errorf("%q tells a secret", d.Detail)
			}
			if c.status == 0 {
				if s.OnboardingState != "ONBOARDED" {
					t.Fatalf("%+v %+v", s, s.OnboardingFailureDetails)
				}
				if _, err := w.Update(ctx, user, id, sol003.VnfPkgInfoModifications{OperationalState: "DISABLED"}, false); err != nil {
					t.Fatal(err)
				}
				if err := w.Delete(ctx, user, id); err != nil {
					t.Fatal(err)
				}
				return
			}
			if s.OnboardingState != "CREATED" || s.OnboardingFailureDetails == nil || s.OnboardingFailureDetails.Status != c.status ||
				!strings.Contains(s.OnboardingFailureDetails.Detail, c.detail) {
				t.Errorf("%s %+v", s.OnboardingState, s.OnboardingFailureDetails)
			}
			if n := w.contents(t); n != 0 {
				t.Errorf("%d contents are left", n)
			}
		})
	}
}

func TestRefusedURIs(t *testing.T) {
	w := newWorld(t, pkgm.Config{Download: pkgm.Download{Hosts: []string{"repo.example.com", ".lab.example.com"}}})
	id := w.create(t)
	for uri, detail := range map[string]string{
		"ftp://x":                                "Vnf package url 'ftp://x' is invalid",
		"ftp://repo.example.com/x.zip":           "Vnf package url 'ftp://repo.example.com/x.zip' is invalid",
		"http://repo.example.com":                "Vnf package url 'http://repo.example.com' is invalid",
		"file:///etc/passwd":                     "",
		"http:///x.zip":                          "",
		"zz":                                     "",
		"":                                       "",
		"http://u:geheim@repo.example.com/x.zip": "Vnf package url 'http://repo.example.com/x.zip' is invalid",
		"http://elsewhere.example.com/x.zip":     "",
		"http://repo.example.com.evil/x.zip":     "",
		"http://xlab.example.com/x.zip":          "",
	} {
		refused(t, w.UploadFromURI(context.Background(), user, id, sol003.UploadVnfPackageFromUriRequest{AddressInformation: uri}), lcm.KindInvalid, detail)
	}
	if s := w.shown(t, id); s.OnboardingState != "CREATED" {
		t.Errorf("%+v", s)
	}
	for _, uri := range []string{"http://repo.example.com/x.zip", "https://a.lab.example.com:8443/x.zip"} {
		if err := w.UploadFromURI(context.Background(), user, w.create(t), sol003.UploadVnfPackageFromUriRequest{AddressInformation: uri}); err != nil {
			t.Error(err)
		}
	}
	refused(t, w.UploadFromURI(context.Background(), user, nobody, sol003.UploadVnfPackageFromUriRequest{AddressInformation: "zz"}), lcm.KindNotFound, "")
}

// TestDeniedAddresses: what counts is the address that is dialled, not how the URI names it.
func TestDeniedAddresses(t *testing.T) {
	srv, _ := repository(t, csar(t, vnfd1))
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	w := newWorld(t, pkgm.Config{Download: pkgm.Download{Tries: 1, Deny: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1.2.3"} {
		id := w.create(t)
		if err := w.UploadFromURI(context.Background(), user, id, sol003.UploadVnfPackageFromUriRequest{AddressInformation: "http://" + host + port + "/ok.zip"}); err != nil {
			t.Fatal(err)
		}
		w.work(t, id)
		if s := w.shown(t, id); s.OnboardingFailureDetails == nil || !strings.Contains(s.OnboardingFailureDetails.Detail, "may not be downloaded") {
			t.Errorf("%s: %+v", host, s.OnboardingFailureDetails)
		}
	}
}

// TestKilledDownload: the node dies before, within and after the download; another begins it again.
func TestKilledDownload(t *testing.T) {
	ctx := context.Background()
	for _, point := range []string{"onboard:download:before", "within", "onboard:download:after"} {
		t.Run(point, func(t *testing.T) {
			a := newWorld(t, pkgm.Config{})
			b := join(t, a.st, pkgm.Config{}, "node-2")
			zip := csar(t, vnfd1)
			begun := make(chan struct{})
			var served atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if point == "within" && served.Add(1) == 1 {
					_, _ = w.Write(make([]byte, 5<<20))
					w.(http.Flusher).Flush()
					close(begun)
					<-r.Context().Done()
					return
				}
				_, _ = w.Write(zip)
			}))
			defer srv.Close()
			id := a.create(t)
			if err := a.UploadFromURI(ctx, user, id, sol003.UploadVnfPackageFromUriRequest{AddressInformation: srv.URL + "/x.zip"}); err != nil {
				t.Fatal(err)
			}
			if point == "within" {
				run, cancel := context.WithCancelCause(ctx)
				done := make(chan error)
				go func() { done <- a.Run(run, id, a.triggers(t, id)[0]) }()
				<-begun
				a.node.Kill()
				cancel(lcm.ErrShutdown)
				if err := <-done; err == nil {
					t.Error("a job that was ended returned nil")
				}
			} else {
				die(a, point, func() { _ = a.Run(ctx, id, a.triggers(t, id)[0]) })
			}
			if n := b.takeOver(t); n != 1 {
				t.Errorf("took over %d packages", n)
			}
			b.work(t, id)
			if s := b.shown(t, id); s.OnboardingState != "ONBOARDED" {
				t.Errorf("%+v %+v", s, s.OnboardingFailureDetails)
			}
			if n := b.contents(t); n != 1 {
				t.Errorf("%d contents", n)
			}
		})
	}
}

// TestThroughTheQueue has the node's own workers do it all.
func TestThroughTheQueue(t *testing.T) {
	st := storetest.Open(t)
	svc := pkgm.New(pkgm.Config{Node: st.NodeID, Download: pkgm.Download{Allow: loopback}}, st, storetest.Log())
	w := &world{Service: svc, st: st}
	srv, _ := repository(t, csar(t, vnfd2))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ready := make(chan struct{})
	served := make(chan error)
	go func() {
		served <- st.Serve(ctx, store.WorkConfig{
			RunOperation:  func(context.Context, string, string, int64) (time.Duration, bool, error) { return 0, true, nil },
			RunOnboarding: svc.Run, Operations: 1, Onboardings: 2,
			FetchCooldown: 5 * time.Millisecond, FetchPoll: 50 * time.Millisecond, Retention: time.Hour, Watch: 100 * time.Millisecond,
		}, func(ok bool) {
			if ok {
				close(ready)
			}
		})
	}()
	<-ready
	put, uri := w.create(t), w.create(t)
	if err := w.Upload(ctx, user, put, bytes.NewReader(csar(t, vnfd1))); err != nil {
		t.Fatal(err)
	}
	if err := w.UploadFromURI(ctx, user, uri, sol003.UploadVnfPackageFromUriRequest{AddressInformation: srv.URL + "/ok.zip"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{put, uri} {
		for w.shown(t, id).OnboardingState != "ONBOARDED" && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond) // polled, as a client does
		}
		if s := w.shown(t, id); s.OnboardingState != "ONBOARDED" {
			t.Errorf("%+v %+v", s, s.OnboardingFailureDetails)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
