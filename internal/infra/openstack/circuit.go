package openstack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// circuitKey names a service of a VIM in a region; Keystone, which is of all regions, has none.
type circuitKey struct{ vim, region, service string }

// circuit stands before a service of a VIM. It opens after some failures on end (no connection, a broken one, a status of
// 500 and more), and at once when a call has waited in vain for as long as it may and nothing else has been answered
// meanwhile. Calls fail at once then, until after a while one is let through to see. It also holds calls back for as long
// as the service has asked for by Retry-After.
type circuit struct {
	key      circuitKey
	observer Observer
	openFor  time.Duration
	dial     time.Duration // what making a connection may take
	call     time.Duration // and what a call may

	mu       sync.Mutex
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	answered time.Time // the last answer
	failing  time.Time // since when there have been failures and no answer
	said     string    // the last failure
	opened   time.Time
	retired  bool // it is nobody's any more
	dead     bool // nothing has been answered for as long as the call waited that failed last
	busy     time.Time
}

// errFailure and errNeither are what the breaker is told of a call that failed, and of one that says nothing about the
// service.
var (
	errFailure = errors.New("no answer")
	errNeither = errors.New("neither an answer nor a failure")
)

func newCircuit(key circuitKey, cfg Config) *circuit {
	c := &circuit{key: key, observer: cfg.Observer, openFor: cfg.BreakerOpenFor, dial: cfg.DialTimeout, call: cfg.CallTimeout}
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: cfg.BreakerOpenFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return c.dead || int64(n.ConsecutiveFailures) >= int64(cfg.BreakerFailures)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNeither) },
		OnStateChange: func(_ string, _, to gobreaker.State) { // c.mu is held: the breaker is only called under it
			if to == gobreaker.StateOpen {
				c.opened = time.Now()
			}
			if c.observer != nil && !c.retired {
				c.observer.Circuit(key.vim, key.region, key.service, to.String())
			}
		},
	})
	return c
}

// circuitOf returns the circuit of a service, the same for all who call it.
func (d *Driver) circuitOf(key circuitKey) *circuit {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.circuits[key]
	if !ok {
		c = newCircuit(key, d.cfg)
		d.circuits[key] = c
	}
	return c
}

// retire ends the circuits of a VIM: who calls it from now on gets new ones. d.mu is held.
func (d *Driver) retire(vim string) {
	for key, c := range d.circuits {
		if key.vim == vim {
			delete(d.circuits, key)
			c.retire()
		}
	}
}

// retire has the circuit tell of its state no more; it is closed, as whoever looks at it from now on shall see.
func (c *circuit) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
	if c.observer != nil && c.breaker.State() != gobreaker.StateClosed {
		c.observer.Circuit(c.key.vim, c.key.region, c.key.service, gobreaker.StateClosed.String())
	}
}

// uncalledError says why a service has not been called, and for how long it is not going to be.
type uncalledError struct {
	again time.Duration
	why   string
}

func (u *uncalledError) Error() string { return u.why }

// check tells whether a call may queue for its turn: an *uncalledError when the service does not answer or wants to be left
// alone.
func (c *circuit) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.held(); err != nil {
		return err
	}
	if c.breaker.State() == gobreaker.StateOpen {
		return c.silence()
	}
	return nil
}

// begin lets a call through; report says what has become of it. Errors as of check.
func (c *circuit) begin() (report func(ctx context.Context, resp *http.Response, err error), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.held(); err != nil {
		return nil, err
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, c.silence()
	}
	begun := time.Now()
	return func(ctx context.Context, resp *http.Response, err error) { c.report(ctx, begun, done, resp, err) }, nil
}

// held is the error of a service that has asked to be left alone for a while.
func (c *circuit) held() error {
	if left := time.Until(c.busy); left > 0 {
		c.refused("busy")
		return &uncalledError{left, fmt.Sprintf("the %s service has asked for no calls for another %s (Retry-After)",
			c.where(), left.Round(time.Millisecond))}
	}
	return nil
}

// silence is the error of a service that does not answer.
func (c *circuit) silence() error {
	c.refused("open circuit")
	since := c.answered
	if since.IsZero() {
		since = c.failing
	}
	return &uncalledError{
		max(time.Until(c.opened.Add(c.openFor)), c.openFor/4),
		fmt.Sprintf("the %s service has not answered since %s: %s", c.where(), since.UTC().Format(time.RFC3339), c.said),
	}
}

func (c *circuit) refused(why string) {
	if c.observer != nil {
		c.observer.Refused(c.key.vim, why)
	}
}

// where names the service.
func (c *circuit) where() string {
	if c.key.region == "" {
		return c.key.service
	}
	return c.key.service + " (" + c.key.region + ")"
}

// report takes note of what has become of a call that ctx, its caller's, is of. When the caller has run out of time and not
// the call, that is a failure only if a connection would have been made by then, and silence only if the call's own time
// would have been over as well.
func (c *circuit) report(ctx context.Context, begun time.Time, done func(error), resp *http.Response, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	var untrusted *tls.CertificateVerificationError
	var network net.Error
	took := now.Sub(begun)
	late := errors.Is(err, context.DeadlineExceeded)
	callers := err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && took < c.call
	switch {
	case err == nil:
		if again, ok := retryAfter(resp); ok {
			c.busy = now.Add(again)
		} else if resp.StatusCode >= http.StatusInternalServerError {
			c.said = fmt.Sprintf("HTTP status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
			break
		}
		c.answered, c.failing = now, time.Time{}
		done(nil)
		return
	case errors.As(err, &untrusted): // somebody is there
		c.answered, c.failing = now, time.Time{}
		done(nil)
		return
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled), callers && took < c.dial:
		done(errNeither)
		return
	case late:
		c.said = fmt.Sprintf("no answer in time (%s)", took.Round(100*time.Millisecond))
	default:
		late = errors.As(err, &network) && network.Timeout()
		c.said = breakage(err)
	}
	if c.failing.IsZero() {
		c.failing = begun
	}
	c.dead = late && !callers && c.answered.Before(begun)
	done(errFailure)
	c.dead = false
}

// mostHeld bounds for how long a Retry-After is kept to.
const mostHeld = 5 * time.Minute

// retryAfter returns for how long an answer of 429 or 503 asks to be left alone (RFC 9110 §10.2.3: seconds or a date).
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	return parseRetryAfter(resp.Header.Get("Retry-After"))
}

func parseRetryAfter(text string) (time.Duration, bool) {
	var again time.Duration
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		again = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		again = time.Until(at)
	} else {
		return 0, false
	}
	return min(max(again, 0), mostHeld), true
}
