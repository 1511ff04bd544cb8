package httpapi

import (
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxCallers is how many callers' buckets one generation holds.
const maxCallers = 10000

// callers holds a token bucket for each caller. Its memory is bounded: when as many have come as a generation holds, the
// buckets of those who have not come since the one before are forgotten.
type callers struct {
	rate  rate.Limit
	burst int

	mu      sync.Mutex
	current map[string]*rate.Limiter
	before  map[string]*rate.Limiter
}

// newCallers makes buckets that fill with perSecond tokens a second up to burst; nil, which limits nobody, for none.
func newCallers(perSecond float64, burst int) *callers {
	if perSecond <= 0 {
		return nil
	}
	if burst < 1 {
		burst = max(1, int(math.Ceil(perSecond)))
	}
	return &callers{rate: rate.Limit(perSecond), burst: burst, current: make(map[string]*rate.Limiter)}
}

func (c *callers) bucket(name string) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.current[name]; ok {
		return b
	}
	b, ok := c.before[name]
	if !ok {
		b = rate.NewLimiter(c.rate, c.burst)
	}
	if len(c.current) >= maxCallers {
		c.before, c.current = c.current, make(map[string]*rate.Limiter)
	}
	c.current[name] = b
	return b
}

// take takes a token of the caller's, or tells how long it is until there is one.
func (c *callers) take(name string, now time.Time) (wait time.Duration) {
	r := c.bucket(name).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// empty tells how long it is until the caller has a token; none is taken.
func (c *callers) empty(name string, now time.Time) time.Duration {
	missing := 1 - c.bucket(name).TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(c.rate) * float64(time.Second))
}

// tooMany answers a caller who asks too often (RFC 6585 §4).
func (s *server) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	s.fail(w, r, &lcm.Error{Kind: lcm.KindUnavailable, Status: http.StatusTooManyRequests,
		Detail: "You have made more requests than you may for now. Try again in " + strconv.Itoa(seconds) + " s."})
}

// address returns the IP address that a request comes from: the connection's or, of one from a proxy of ours, the last in
// X-Forwarded-For that is no proxy's.
func (s *server) address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !s.proxy(host) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(hop); err != nil {
			break
		}
		if host = hop; !s.proxy(host) {
			break
		}
	}
	return host
}

func (s *server) proxy(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.cfg.Proxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// authenticated finds out on whose behalf the request is made, and that the caller does not ask too often. Whoever is
// nobody is counted by address, before a password or a token is looked at again.
func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, from := callOf(r.Context()), "address "+s.address(r)
		if s.callers != nil {
			if wait := s.callers.empty(from, s.cfg.Now()); wait > 0 {
				s.tooMany(w, r, wait)
				return
			}
		}
		scope, err := s.cfg.Auth.Authenticate(r)
		if err != nil {
			var u *Unauthorized
			if s.callers != nil && errors.As(err, &u) {
				s.callers.take(from, s.cfg.Now())
			}
			s.fail(w, r, err)
			return
		}
		c.scope = scope
		if c.request != nil {
			c.request.Caller = scope
		}
		if s.callers != nil {
			name := from
			if scope.User != "" && scope.User != anonymous {
				name = "user " + scope.ProjectID + " " + scope.User
			}
			if wait := s.callers.take(name, s.cfg.Now()); wait > 0 {
				s.tooMany(w, r, wait)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
