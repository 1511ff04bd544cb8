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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Download says where packages may be downloaded from, and how. Zero values mean the defaults.
type Download struct {
	Schemes []string // default http and https
	Hosts   []string // when not empty, the only hosts: "repo.example.com", or ".example.com" for all below it
	// Deny are addresses that are never connected to, whatever name led there: the check is made on the address that is
	// dialled. nil means DefaultDeny; empty but not nil means none.
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

// DefaultDeny are loopback and link-local addresses, among the latter the metadata services of clouds, unspecified and
// multicast ones, and those of NAT64, which can stand for any of them.
var DefaultDeny = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
}

func (d Download) withDefaults() Download {
	if len(d.Schemes) == 0 {
		d.Schemes = []string{"http", "https"}
	}
	if d.Deny == nil {
		d.Deny = DefaultDeny
	}
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

// parse checks an addressInformation. Invalid.
func (d Download) parse(address string) (*url.URL, error) {
	invalid := lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid", shown(address))
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Path == "" || u.User != nil || !slices.Contains(d.Schemes, strings.ToLower(u.Scheme)) {
		return nil, invalid
	}
	if !d.mayReach(u.Hostname()) {
		return nil, lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid: packages may not be downloaded from the host %s", shown(address), u.Hostname())
	}
	return u, nil
}

// shown is an address as messages have it: without user name, password and query, any of which may hold a secret.
func shown(address string) string {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	authority, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

func (d Download) mayReach(host string) bool {
	if len(d.Hosts) == 0 {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(d.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		return host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h)
	})
}

// errDenied is a connection to an address that Deny names.
var errDenied = errors.New("packages may not be downloaded from this address")

func (d Download) denied(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	return in(d.Deny) && !in(d.Allow)
}

// client returns an HTTP client that keeps to the rules at every hop, and a func to let go of its connections.
func (d Download) client() (*http.Client, func()) {
	dialer := &net.Dialer{
		Timeout: d.Connect, Resolver: d.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			// The address is what the name was resolved to: a name cannot lead elsewhere than was checked.
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("dial %s: %w", address, err)
			}
			if d.denied(ap.Addr()) {
				return fmt.Errorf("%s: %w", ap.Addr(), errDenied)
			}
			return nil
		},
	}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: d.Connect, ResponseHeaderTimeout: d.Header,
		DisableCompression: true, // a zip is stored as it is
		ForceAttemptHTTP2:  true, MaxResponseHeaderBytes: 64 << 10,
		// No proxy from the environment: behind one, the address dialled is the proxy's and says nothing.
	}
	check := func(req *http.Request, via []*http.Request) error {
		if len(via) > d.Redirects {
			return fmt.Errorf("more than %d redirects", d.Redirects)
		}
		if _, err := d.parse(req.URL.String()); err != nil {
			return fmt.Errorf("redirected to a place where packages may not be downloaded from: %w", err)
		}
		if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
			req.Header.Del("Authorization") // never in clear what was to be sent encrypted
		}
		return nil
	}
	var rt http.RoundTripper = transport
	if d.Transport != nil {
		rt = d.Transport
	}
	return &http.Client{Transport: rt, CheckRedirect: check}, transport.CloseIdleConnections
}

// download stores what the package's Source names and moves the package to PROCESSING. What passes (connections,
// answers 5xx and 429, broken transfers) is tried again a few times, from the beginning.
func (s *Service) download(ctx context.Context, p *lcm.Package) error {
	if p.Source == nil {
		return lcm.Errorf(lcm.KindInvalid, "the address to download the VNF package from is not known")
	}
	client, release := s.cfg.Download.client()
	defer release()
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

func (s *Service) fetch(ctx context.Context, client *http.Client, p *lcm.Package) error {
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
		return lcm.Errorf(lcm.KindInvalid, "Vnf package url '%s' is invalid", shown(src.AddressInformation))
	}
	req.Header.Set("Accept", "application/zip, application/octet-stream, */*")
	if src.UserName != "" || src.Password != "" {
		req.SetBasicAuth(src.UserName, src.Password.Reveal())
	}
	from := shown(src.AddressInformation)
	resp, err := client.Do(req)
	var verbose *url.Error // repeats the whole URL
	if errors.As(err, &verbose) {
		err = verbose.Err
	}
	switch {
	case ctx.Err() != nil:
		if err == nil {
			_ = resp.Body.Close()
		}
		return &runError{context.Cause(ctx)}
	case errors.Is(err, errDenied):
		return lcm.Errorf(lcm.KindInvalid, "Downloading %s failed: %w", from, err)
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
