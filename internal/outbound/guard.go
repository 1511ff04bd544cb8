// Package outbound makes HTTP clients for addresses that others name: callbacks of subscribers, token endpoints, an
// NFVO, repositories of packages. A Guard keeps them away from where a request must not be sent on somebody's word; the
// client authenticates itself, verifies TLS, follows no redirect that it was not told to, and reads no more of an answer
// than it was told to.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard says which addresses may be called. Its zero value lets http and https reach everything but DefaultDeny.
type Guard struct {
	Schemes []string // default http and https
	Hosts   []string // when not empty, the only hosts: "repo.example.com", or ".example.com" for all below it
	// Deny are addresses that are never connected to, whatever name led there: the check is made on the address that is
	// dialled. nil means DefaultDeny; empty but not nil means none.
	Deny []netip.Prefix
	// Allow are exceptions to Deny.
	Allow []netip.Prefix
	// Only, when not empty, are the only addresses that are connected to; Deny holds of them too.
	Only     []netip.Prefix
	Resolver *net.Resolver // default the system's
}

// DefaultDeny are loopback and link-local addresses, among the latter the metadata services of clouds, unspecified and
// multicast ones, and those of NAT64, which can stand for any of them.
var DefaultDeny = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("192.0.0.192/32"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("::/128"), netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
}

// Anywhere returns a Guard that denies no address: for those that the operator's own configuration names.
func Anywhere() Guard { return Guard{Deny: []netip.Prefix{}} }

// ErrDenied is in the chain of the error of a call that a Guard has refused.
var ErrDenied = errors.New("requests to this address are not allowed")

// Check tells why a URL may not be called at all: it is not absolute, holds a user name, or names a scheme or host that
// the Guard does not have. The addresses behind the name are checked when they are dialled. ErrDenied.
func (g Guard) Check(u *url.URL) error {
	schemes := g.Schemes
	if len(schemes) == 0 {
		schemes = []string{"http", "https"}
	}
	switch {
	case u.Hostname() == "":
		return fmt.Errorf("%s names no host: %w", Shown(u.String()), ErrDenied)
	case u.User != nil:
		return fmt.Errorf("%s holds a user name: %w", Shown(u.String()), ErrDenied)
	case !slices.Contains(schemes, strings.ToLower(u.Scheme)):
		return fmt.Errorf("scheme %s: %w", u.Scheme, ErrDenied)
	case !g.MayName(u.Hostname()):
		return fmt.Errorf("host %s: %w", u.Hostname(), ErrDenied)
	}
	return nil
}

// MayName tells whether Hosts has the host.
func (g Guard) MayName(host string) bool {
	if len(g.Hosts) == 0 {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(g.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		return host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h)
	})
}

// MayDial tells whether the address may be connected to.
func (g Guard) MayDial(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	deny := g.Deny
	if deny == nil {
		deny = DefaultDeny
	}
	return (!in(deny) || in(g.Allow)) && (len(g.Only) == 0 || in(g.Only))
}

// dialer returns the dial function of a transport: what it connects to is what a name was resolved to, so that a name
// cannot lead elsewhere than was checked.
func (g Guard) dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout: timeout, Resolver: g.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("dial %s: %w", address, err)
			}
			if !g.MayDial(ap.Addr()) {
				return fmt.Errorf("%s: %w", ap.Addr(), ErrDenied)
			}
			return nil
		},
	}
	return d.DialContext
}

// Shown is an address as messages have it: without user name, password, query and fragment, any of which may hold a
// secret.
func Shown(address string) string {
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
