package lcm

import "time"

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
