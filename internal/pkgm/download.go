package pkgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// Download says where packages may be downloaded from, and how. Zero values mean the defaults.
type Download struct {
	Schemes []string // default http and https
	Hosts   []string // when not empty, the only hosts: "repo.example.com", or ".example.com" for all below it
	// Deny are addresses that are never connected to, whatever name led there: the check is made on the address that is
	// dialled. nil means outbound.DefaultDeny; empty but not nil means none.
	Deny []netip.Prefix
	// Allow are exceptions to Deny.
	Allow     []netip.Prefix
	Redirects int               // how many are followed; default 5
	Connect   time.Duration     // to connect and for the TLS handshake; default 10 s
	Header    time.Duration     // for the answer's header; default 60 s
	Stall     time.Duration     // how long a download may stand still; default 60 s
	Tries     int               // how often a download is begun before it fails; default 3
	Pause     time.Duration     // between tries, growing; default 1 s
	Resolver  *net.Resolver     // default the system's
	Transport http.RoundTripper // used in place of the guarded one when set; for tests
}

func (d Download) withDefaults() Download {
	if d.Redirects <= 0 {
		d.Redirects = 5
	}
	if d.Tries <= 0 {
		d.Tries = 3
	}
	for _, t := range []struct {
		of  *time.Duration
		def time.Duration
	}{{&d.Connect, 10 * time.Second}, {&d.Header, time.Minute}, {&d.Stall, time.Minute}, {&d.Pause, time.Second}} {
		if *t.of <= 0 {
			*t.of = t.def
		}
	}
	return d
}

func (d Download) guard() outbound.Guard {
	return outbound.Guard{Schemes: d.Schemes, Hosts: d.Hosts, Deny: d.Deny, Allow: d.Allow, Resolver: d.Resolver}
}

// parse checks an addressInformation. Invalid.
func (d Download) parse(address string) (*url.URL, error) {
	shown := outbound.Shown(address)
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Path == "":
		return nil, lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid", shown)
	case d.guard().Check(u) == nil:
		return u, nil
	case !d.guard().MayName(u.Hostname()):
		return nil, lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid: packages may not be downloaded from the host %s", shown, u.Hostname())
	default:
		return nil, lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid", shown)
	}
}

// client returns an HTTP client that keeps to the rules at every hop.
func (d Download) client() (*outbound.Client, error) {
	return outbound.New(outbound.Config{
		Guard: d.guard(), Connect: d.Connect, Header: d.Header, MaxBody: -1, Redirects: d.Redirects, Transport: d.Transport,
		MayFollow: func(to *url.URL) error {
			if _, err := d.parse(to.String()); err != nil {
				return fmt.Errorf("redirected to a place where packages may not be downloaded from: %w", err)
			}
			return nil
		},
	})
}

// errDenied words that an address may not be dialled.
var errDenied = errors.New("packages may not be downloaded from this address")

// download stores what the package's Source names and moves the package to PROCESSING. What passes (connections,
// answers 5xx and 429, broken transfers) is tried again a few times, from the beginning.
func (s *Service) download(ctx context.Context, p *lcm.Package) error {
	if p.Source == nil {
		return lcm.Errorf(lcm.KindInvalid, "the address to download the VNF package from is not known")
	}
	client, err := s.cfg.Download.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	pause := s.cfg.Download.Pause
	for try := 1; ; try++ {
		err := s.fetch(ctx, client, p)
		if err == nil || ctx.Err() != nil || !lcm.Is(err, lcm.KindRetryable) || try == s.cfg.Download.Tries {
			return err
		}
		s.log.InfoContext(ctx, "downloading a vnf package is tried again", "package", p.ID, "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return &runError{context.Cause(ctx)}
		case <-timer.C:
		}
		pause *= 2
	}
}

func (s *Service) fetch(ctx context.Context, client *outbound.Client, p *lcm.Package) error {
	src := p.Source
	u, err := s.cfg.Download.parse(src.AddressInformation)
	if err != nil {
		return err
	}
	// A download that stands still is ended by canceling its context.
	stalled := fmt.Errorf("nothing came for %v", s.cfg.Download.Stall)
	body, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(body, http.MethodGet, u.String(), nil)
	if err != nil {
		return lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid", outbound.Shown(src.AddressInformation))
	}
	req.Header.Set("Accept", "application/zip, application/octet-stream, */*")
	if src.UserName != "" || src.Password != "" {
		req.SetBasicAuth(src.UserName, src.Password.Reveal())
	}
	from := outbound.Shown(src.AddressInformation)
	resp, err := client.Do(req)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			_ = resp.Body.Close()
		}
		return &runError{context.Cause(ctx)}
	case errors.Is(err, outbound.ErrDenied):
		return lcm.Errorf(lcm.KindInvalid, "Downloading %s failed: %w", from, errDenied)
	case lcm.Is(err, lcm.KindInvalid): // a redirect
		return lcm.Errorf(lcm.KindInvalid, "Downloading %s failed: %w", from, err)
	case err != nil:
		return lcm.Errorf(lcm.KindRetryable, "Downloading %s failed: %w", from, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return lcm.Errorf(lcm.KindRetryable, "Downloading %s failed: the server answered %s", from, resp.Status)
	default:
		return lcm.Errorf(lcm.KindInvalid, "Downloading %s failed: the server answered %s", from, resp.Status)
	}
	if resp.ContentLength > s.cfg.SizeCap {
		return s.errTooLarge()
	}
	watch := time.AfterFunc(s.cfg.Download.Stall, func() { cancel(stalled) })
	defer watch.Stop()
	err = s.receive(ctx, p.ID, p.Fence, &watched{resp.Body, watch, s.cfg.Download.Stall}, false)
	var source *errSource
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &runError{context.Cause(ctx)}
	case errors.As(err, &source):
		if cause := context.Cause(body); cause != nil {
			return lcm.Errorf(lcm.KindRetryable, "Downloading %s failed: %w", from, cause)
		}
		return lcm.Errorf(lcm.KindRetryable, "Downloading %s failed: %w", from, source.err)
	default:
		return ours(err)
	}
}

// watched resets the watch while something comes.
type watched struct {
	io.Reader
	watch *time.Timer
	stall time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(w.stall)
	defer w.watch.Stop() // storing takes its own time, which does not count
	return w.Reader.Read(p)
}
