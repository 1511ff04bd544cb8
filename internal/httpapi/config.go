package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Config says how the API is served. The zero value works for tests; see the fields for the defaults.
type Config struct {
	// EndpointURL is the base of every absolute href and Location, as callers reach this server:
	// "http://localhost:9890" by default. It may have a path.
	EndpointURL string
	// GrantsURL is the collection of the NFVO's grants, "https://nfvo.example.com/grant/v1/grants": op occs link to theirs
	// there (SOL003 v2.6.1 §5.5.2.13). "" when no NFVO is asked.
	GrantsURL string
	// Auth tells on whose behalf a request is made; None{} by default.
	Auth Authenticator
	// PageSize is how many resources a page of a list has at most; 100 by default, less than 0 for no limit.
	PageSize int
	// MarkerKey authenticates the markers of further pages; all servers of an installation need the same one. By default
	// it is random, so that a marker is good for this process only.
	MarkerKey []byte
	// MaxBody limits a JSON body, in bytes; 4 MiB by default.
	MaxBody int64
	// MaxPackage limits an uploaded package, in bytes, where the Content-Length tells it; 0 for no limit here.
	MaxPackage int64
	// BodyTimeout is how long a JSON body may take to come in; 30 s by default.
	BodyTimeout time.Duration
	// RequestsPerSecond limits what one caller (a user, else an address) may ask, beyond a first Burst; more are answered
	// 429. 0 is no limit; a Burst of 0 is a second's worth.
	RequestsPerSecond float64
	Burst             int
	// Requests is the record of requests; nil for none, and no audit trail to be read.
	Requests Requests
	// Proxies are the addresses whose X-Forwarded-For header is believed: there the caller's own address stands.
	Proxies []netip.Prefix
	// MaxInFlight limits the requests that are served at a time, 0 for no limit; more are answered 503.
	MaxInFlight int
	// Stall is how long an upload or an answer may stand still, or no more than trickle, before it is given up; 60 s by
	// default.
	Stall time.Duration
	// Log receives the access log and the causes of errors; slog.Default() by default.
	Log *slog.Logger
	// Observe is called at the end of every request, if set.
	Observe func(Observation)
	// Now tells the time; time.Now by default.
	Now func() time.Time
	// NewID makes the ids of requests; random UUIDs by default.
	NewID func() string
	// Live, Ready and Metrics answer /healthz, /readyz and /metrics, without authentication. Live and Ready answer 200 by
	// default; without Metrics there is no such path.
	Live, Ready, Metrics http.Handler
}

// Observation is what there is to measure of one request.
type Observation struct {
	Method   string
	Route    string // the route's pattern, "" when there is none
	Status   int
	Bytes    int64 // of the response's body
	Duration time.Duration
}

func (c Config) withDefaults() Config {
	if c.EndpointURL == "" {
		c.EndpointURL = "http://localhost:9890"
	}
	c.EndpointURL = strings.TrimRight(c.EndpointURL, "/")
	if c.Auth == nil {
		c.Auth = None{}
	}
	if c.PageSize == 0 {
		c.PageSize = 100
	}
	if len(c.MarkerKey) == 0 {
		c.MarkerKey = randomKey()
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 4 << 20
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = 30 * time.Second
	}
	if c.Stall <= 0 {
		c.Stall = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = randomUUID
	}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`)) })
	if c.Live == nil {
		c.Live = ok
	}
	if c.Ready == nil {
		c.Ready = ok
	}
	return c
}
