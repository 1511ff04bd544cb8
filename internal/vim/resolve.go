package vim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Resolve finds the VIM that an operation is to use, with its credentials: the one that the first vimConnectionInfo
// names by vimId, else the project's default VIM. Of the request, only accessInfo.region and extra, without the limits of
// calls to the VIM, count: the registered VIM gives type, URL and credentials (SOL003 v2.6.1 §4.4.1.6 leaves their content to the VIM type). Invalid: no such
// VIM, no default VIM, no such region.
func (s *Service) Resolve(ctx context.Context, sc lcm.Scope, conns []sol003.VimConnectionInfo) (*lcm.VimTarget, error) {
	var conn sol003.VimConnectionInfo
	if len(conns) > 0 {
		conn = conns[0]
	}
	v, err := s.named(ctx, sc, conn.VimId)
	if err != nil {
		return nil, err
	}
	t := &lcm.VimTarget{VIM: *v, ConnectionID: conn.Id}
	t.Auth, t.VIM.Project = readable(v.Auth), readable(v.Project)
	if region := text(conn.AccessInfo, "region"); region != "" {
		if !slices.Contains(v.Regions, region) {
			name := conn.VimId
			if name == "" {
				name = v.ID
			}
			return nil, lcm.Errorf(lcm.KindInvalid, "Region not found for the VimConnection: %s", name)
		}
		t.Region = region
	}
	if len(conn.Extra) > 0 {
		extra := maps.Clone(v.Extra)
		if extra == nil {
			extra = map[string]any{}
		}
		for k, v := range conn.Extra {
			if k != lcm.ExtraMaxConcurrent && k != lcm.ExtraRequestsPerSecond {
				extra[k] = v
			}
		}
		t.Extra = extra
	}
	return t, nil
}

func (s *Service) named(ctx context.Context, sc lcm.Scope, id string) (*lcm.VIM, error) {
	key := recentKey{id: id}
	if id == "" {
		key.defaultOf = sc.ProjectID
	}
	if v, ok := s.recent.get(key, s.cfg.Now()); ok && (id == "" || sc.Admin || v.ProjectID == sc.ProjectID) {
		return v, nil
	}
	var v *lcm.VIM
	var err error
	if id == "" {
		if v, err = s.store.DefaultVIM(ctx, sc.ProjectID); lcm.Is(err, lcm.KindNotFound) {
			return nil, lcm.Errorf(lcm.KindInvalid, "Default VIM is not defined.")
		}
	} else if v, err = s.store.VIM(ctx, sc, id, true); lcm.Is(err, lcm.KindNotFound) {
		return nil, lcm.Errorf(lcm.KindInvalid, "VimConnection id is not found: %s", id)
	}
	if err != nil {
		return nil, err
	}
	s.recent.put(key, v, s.cfg.Now())
	return v, nil
}

// readable returns what a client has sent of a VIM as drivers are to read it: the text "None", which python-tackerclient
// sends for what is not there, is absent, except where it says that certificates are not to be verified; certificates and
// keys have the line ends that they lost in a YAML file.
func readable(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		s, isText := v.(string)
		switch {
		case isText && s == "None" && k != "ssl_ca_cert":
		case isText && strings.Contains(s, "-----BEGIN "):
			out[k] = normalPEM(s)
		default:
			out[k] = v
		}
	}
	return out
}

// recentFor is how long a VIM is used as it was read last. Many operations resolve the same few VIMs; what an update
// changes holds at once on the node that makes it, and after this time on the others.
const recentFor = time.Second

// recently keeps VIMs as they were read last, credentials included.
type recently struct {
	mu   sync.Mutex
	vims map[recentKey]recentVIM
}

// recentKey names a VIM by its id, or as the default of a project.
type recentKey struct{ id, defaultOf string }

type recentVIM struct {
	vim   *lcm.VIM
	until time.Time
}

// recentMax is how many are kept at most.
const recentMax = 1000

func (r *recently) get(key recentKey, now time.Time) (*lcm.VIM, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.vims[key]
	return e.vim, ok && now.Before(e.until)
}

func (r *recently) put(key recentKey, v *lcm.VIM, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.vims == nil || len(r.vims) >= recentMax {
		r.vims = map[recentKey]recentVIM{}
	}
	r.vims[key] = recentVIM{v, now.Add(recentFor)}
}

// forget drops all: a VIM has come, changed or gone.
func (r *recently) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vims = nil
}
