package nfvo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// GrantConfig says which NFVO is asked for grants, and how. Zero durations mean the defaults.
type GrantConfig struct {
	// BaseURL is the NFVO's grant API, "https://nfvo.example.com/grant/v1", or its grants, "…/grant/v1/grants".
	BaseURL string
	// Endpoint is the root at which the NFVO finds this manager: the op occ and the VNF instance that a request links to.
	Endpoint string
	// Login is how we make ourselves known (Auth) and by which certificates (TLS). Redirects are never followed.
	Login outbound.Config
	// Version is the value of the Version header (SOL013 v2.6.1 §9.2); "" sends none.
	Version   string
	Timeout   time.Duration // of one request; default 20 s
	Retries   int           // how often a request that failed in a way that passes is made again; 0: never
	RetryWait time.Duration // before it is made again, unless the NFVO says when; default 30 s
	Poll      time.Duration // between looks at a grant that is not decided, unless the NFVO says when; default 5 s
	Decision  time.Duration // how long a decision may take altogether; default 1 hour
}

// Granter asks an NFVO for grants (SOL003 v2.6.1 §9). It implements lcm.Granter and keeps nothing itself.
type Granter struct {
	cfg  GrantConfig
	nfvo peer
}

// NewGranter makes a Granter. Invalid: a URL that cannot be.
func NewGranter(cfg GrantConfig) (*Granter, error) {
	cfg.RetryWait = cmp.Or(cfg.RetryWait, 30*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 5*time.Second)
	cfg.Decision = cmp.Or(cfg.Decision, time.Hour)
	cfg.Endpoint = strings.TrimSuffix(cfg.Endpoint, "/")
	p, err := newPeer(cfg.BaseURL, "grants", cfg.Login, cfg.Version, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	return &Granter{cfg, p}, nil
}

// owner is under whom a grant that is asked for is kept among an operation's work.
const owner = "nfvo"

// asked is how far the asking has come.
type asked struct {
	Version  int    `json:"version"`
	Location string `json:"location,omitempty"` // of the grant that the NFVO has taken up, absolute
	Failed   int    `json:"failed,omitempty"`   // how many requests have failed in a row
}

// Asks implements lcm.Granter.
func (g *Granter) Asks() bool { return true }

// URL is the collection of the NFVO's grants: that of one is its id beneath (SOL003 v2.6.1 §9.3).
func (g *Granter) URL() string { return g.nfvo.collection.String() }

// Grant asks the NFVO for the operation's grant and applies it (SOL003 v2.6.1 §9.4.2.3.1, §9.4.3.3.2). While the NFVO has not
// decided, or cannot be asked, it returns Wait. A request whose answer was lost is made again; its vnfLcmOpOccId tells the NFVO.
// Forbidden: refused; terminal: not to be had, or unlike what was asked for.
func (g *Granter) Grant(ctx context.Context, x *lcm.Execution) (*lcm.Grant, lcm.Progress, error) {
	none := lcm.Progress{}
	state := asked{Version: 1}
	if err := x.Work(owner, &state); err != nil {
		return nil, none, err
	}
	request, err := lcm.NewGrantRequest(x)
	if err != nil {
		return nil, none, err
	}
	a, at, err := g.ask(ctx, state, request)
	if err != nil {
		progress, err := g.again(x, state, nil, err)
		return nil, progress, err
	}
	first := state.Location == ""
	switch {
	case a.status == http.StatusAccepted, first && a.status == http.StatusCreated && len(bytes.TrimSpace(a.body)) == 0:
		if first {
			if state.Location, err = g.location(at, a.header.Get("Location")); err != nil {
				return nil, none, err
			}
		}
		progress, err := g.undecided(x, state, a)
		return nil, progress, err
	case first && a.status == http.StatusCreated, !first && a.status == http.StatusOK:
		grant, err := read(a, request)
		if err != nil {
			return nil, none, err
		}
		x.Log.Info("the NFVO granted the operation", "grant", grant.ID)
		return grant, lcm.Done(), nil
	default:
		progress, err := g.again(x, state, a, a.refusal("the grant"))
		return nil, progress, err
	}
}

// ask sends the request, or looks at what the NFVO has taken up. It returns the URL that was asked.
func (g *Granter) ask(ctx context.Context, state asked, request *sol003.GrantRequest) (*answer, *url.URL, error) {
	if state.Location != "" {
		at, err := url.Parse(state.Location)
		if err != nil {
			return nil, nil, lcm.Errorf(lcm.KindInternal, "the location of the grant that was asked for is unreadable: %w", err)
		}
		a, err := g.nfvo.send(ctx, http.MethodGet, at, nil)
		return a, at, err
	}
	request.UnderscoreLinks = map[string]sol003.Link{
		"vnfLcmOpOcc": {Href: g.cfg.Endpoint + "/vnflcm/v1/vnf_lcm_op_occs/" + request.VnfLcmOpOccId},
		"vnfInstance": {Href: g.cfg.Endpoint + "/vnflcm/v1/vnf_instances/" + request.VnfInstanceId},
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, nil, lcm.Errorf(lcm.KindInternal, "write the grant request of op occ %s: %w", request.VnfLcmOpOccId, err)
	}
	a, err := g.nfvo.send(ctx, http.MethodPost, g.nfvo.collection, body)
	return a, g.nfvo.collection, err
}

// location resolves where the grant will be. Terminal: nowhere, or not at the NFVO that was asked.
func (g *Granter) location(at *url.URL, value string) (string, error) {
	if value == "" {
		return "", lcm.Errorf(lcm.KindTerminal, "The NFVO took the grant request up but did not say where it will be.")
	}
	u, err := at.Parse(value)
	if err != nil || u.User != nil {
		return "", lcm.Errorf(lcm.KindTerminal, "The NFVO took the grant request up but said in no readable way where it will be.")
	}
	if u.Scheme != at.Scheme || !strings.EqualFold(u.Host, at.Host) {
		return "", lcm.Errorf(lcm.KindTerminal, "The NFVO at %s wants the grant to be read at %s://%s; grants are only read where they were asked for.",
			at.Host, u.Scheme, u.Host)
	}
	u.Fragment = ""
	return u.String(), nil
}

// undecided waits for the NFVO's decision.
func (g *Granter) undecided(x *lcm.Execution, state asked, a *answer) (lcm.Progress, error) {
	if g.late(x) {
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "The NFVO did not decide about the grant within %s.", g.cfg.Decision)
	}
	state.Failed = 0
	if err := x.SetWork(owner, state); err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Wait(max(a.retryAfter(g.cfg.Poll), least), "the NFVO's grant"), nil
}

// least is the least time between two requests to the NFVO.
const least = 100 * time.Millisecond

// again waits to make a request again that failed in a way that passes, as often as it may be; a may be nil.
func (g *Granter) again(x *lcm.Execution, state asked, a *answer, why error) (lcm.Progress, error) {
	if !lcm.Is(why, lcm.KindRetryable) {
		return lcm.Progress{}, why
	}
	state.Failed++
	if state.Failed > g.cfg.Retries || g.late(x) {
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "The NFVO gave no grant, failed requests: %d. %w", state.Failed, why)
	}
	if err := x.SetWork(owner, state); err != nil {
		return lcm.Progress{}, err
	}
	wait := g.cfg.RetryWait
	if a != nil {
		wait = a.retryAfter(wait)
	}
	x.Log.Warn("the NFVO is to be asked for the grant again", "failed", state.Failed, "error", why)
	return lcm.Wait(max(wait, least), "%v", why), nil
}

// late tells whether the decision has taken longer than it may.
func (g *Granter) late(x *lcm.Execution) bool { return x.Now().Sub(x.Begun) >= g.cfg.Decision }

// read reads the grant in an answer. Terminal: there is none, or not the one that was asked for.
func read(a *answer, request *sol003.GrantRequest) (*lcm.Grant, error) {
	var grant sol003.Grant
	if err := json.Unmarshal(a.body, &grant); err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "The NFVO answered %d with what is no Grant: %w", a.status, err)
	}
	return lcm.NewGrant(&grant, request)
}
