package lcm

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// The types of VIMs, each with its InfraDriver.
const (
	VimOpenStack  = "openstack"
	VimKubernetes = "kubernetes"
	VimFake       = "fake"
)

// The states of a registered VIM; operations never depend on them.
const (
	VimPending     = "PENDING"
	VimReachable   = "REACHABLE"
	VimUnreachable = "UNREACHABLE"
)

// VIM is a registered VIM: where it is and how to log in. Auth and Project are as the client sent them (auth_cred and
// vim_project of the vims API), secrets in clear: sealed at rest, masked on output.
type VIM struct {
	ID        string
	ProjectID string
	Name      string
	Desc      string
	Type      string
	AuthURL   string
	Auth      map[string]any
	Project   map[string]any
	Extra     map[string]any
	Regions   []string // placement_attr.regions: Keystone's regions, or a cluster's namespaces
	Default   bool
	Status    string
	Created   time.Time
	Updated   time.Time // zero until changed
	Version   int64
}

// The keys of a VIM's extra that limit the calls to it.
const (
	ExtraMaxConcurrent     = "max_concurrent_requests"
	ExtraRequestsPerSecond = "requests_per_second"
)

// The bounds of what a VIM's extra may say of them.
const (
	mostConcurrent     = 10000
	leastPerSecond     = 1
	mostPerSecond      = 1e6
	notALimit          = "Invalid input for extra. Reason: %s must be a %s, not %s."
	aWholeNumber       = "whole number from 1 to 10000"
	aNumberOfPerSecond = "number from 1 to 1000000"
)

// VimLimits are the limits of calls to a VIM from one process; what is 0 is left to the configuration.
type VimLimits struct {
	MaxConcurrent     int     // calls at the same time
	RequestsPerSecond float64 // calls a second
}

// Limits reads the limits that the VIM's registration sets by extra: max_concurrent_requests and requests_per_second,
// numbers or texts of numbers; null, "" and the "None" of tacker's clients set none. Invalid: something else.
func (v *VIM) Limits() (VimLimits, error) {
	var l VimLimits
	most, given, ok := limit(v.Extra[ExtraMaxConcurrent])
	if given && (!ok || most != math.Trunc(most) || most < 1 || most > mostConcurrent) {
		return l, Errorf(KindInvalid, notALimit, ExtraMaxConcurrent, aWholeNumber, shortly(v.Extra[ExtraMaxConcurrent]))
	}
	l.MaxConcurrent = int(most)
	if l.RequestsPerSecond, given, ok = limit(v.Extra[ExtraRequestsPerSecond]); given &&
		(!ok || l.RequestsPerSecond < leastPerSecond || l.RequestsPerSecond > mostPerSecond) {
		return VimLimits{}, Errorf(KindInvalid, notALimit, ExtraRequestsPerSecond, aNumberOfPerSecond, shortly(v.Extra[ExtraRequestsPerSecond]))
	}
	return l, nil
}

// limit reads a number of a free-form map; given tells whether there is anything at all.
func limit(v any) (n float64, given, ok bool) {
	var err error
	switch t := v.(type) {
	case nil:
		return 0, false, true
	case float64:
		n = t
	case int:
		n = float64(t)
	case json.Number:
		n, err = t.Float64()
	case string:
		if t = strings.TrimSpace(t); t == "" || t == "None" {
			return 0, false, true
		}
		n, err = strconv.ParseFloat(t, 64)
	default:
		return 0, true, false
	}
	return n, true, err == nil && !math.IsNaN(n)
}

// shortly is a value as JSON, cut.
func shortly(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "that"
	}
	if s := []rune(string(raw)); len(s) > 40 {
		return string(s[:40]) + "…"
	}
	return string(raw)
}

// VimTarget is a VIM as one operation uses it: the registered VIM with what the request's vimConnectionInfo adds.
type VimTarget struct {
	VIM
	Region       string // "" means the VIM's only or first region
	ConnectionID string // vimConnectionInfo.id of the request, "" when there was none
}

// VIMChange is what an update changes of a registered VIM: nil means unchanged; maps are merged key by key.
type VIMChange struct {
	Name    *string
	Desc    *string
	Auth    map[string]any
	Project map[string]any
	Extra   map[string]any
	Default *bool
}
