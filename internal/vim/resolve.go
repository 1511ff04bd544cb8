package vim

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Resolve finds the VIM that an operation is to use, with its credentials: the one that the first vimConnectionInfo
// names by vimId, else the project's default VIM. Of the request, only accessInfo.region and extra count: the registered
// VIM gives type, URL and credentials (SOL003 v2.6.1 §4.4.1.6 leaves their content to the VIM type). Invalid: no such
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
		maps.Copy(extra, conn.Extra)
		t.Extra = extra
	}
	return t, nil
}

func (s *Service) named(ctx context.Context, sc lcm.Scope, id string) (*lcm.VIM, error) {
	if id == "" {
		v, err := s.store.DefaultVIM(ctx, sc.ProjectID)
		if lcm.Is(err, lcm.KindNotFound) {
			return nil, lcm.Errorf(lcm.KindInvalid, "Default VIM is not defined.")
		}
		return v, err
	}
	v, err := s.store.VIM(ctx, sc, id, true)
	if lcm.Is(err, lcm.KindNotFound) {
		return nil, lcm.Errorf(lcm.KindInvalid, "VimConnection id is not found: %s", id)
	}
	return v, err
}
