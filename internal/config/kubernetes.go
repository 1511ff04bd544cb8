package config

import (
	"net/netip"
	"time"
)

// Kubernetes holds the waits and the budget of Kubernetes VIMs.
type Kubernetes struct {
	ReadyTimeout   time.Duration `yaml:"ready_timeout" doc:"Wait for the objects of a CNF to become ready." min:"1s"`
	DeleteTimeout  time.Duration `yaml:"delete_timeout" doc:"Wait for the objects of a CNF to be gone." min:"1s"`
	PollMin        time.Duration `yaml:"poll_min" doc:"Shortest pause between looks at what a watch has reported." min:"10ms"`
	PollMax        time.Duration `yaml:"poll_max" doc:"Longest pause between such looks." min:"10ms"`
	RequestTimeout time.Duration `yaml:"request_timeout" doc:"Wait for one answer of an API server." min:"1s"`
	ConnectTimeout time.Duration `yaml:"connect_timeout" doc:"Wait for a connection to an API server." min:"100ms"`
	MaxConcurrent  int           `yaml:"max_concurrent" doc:"Requests of this process to one VIM at the same time at most, watches not counted. A VIM's own extra.max_concurrent_requests goes before it." min:"1"`
	WatchIdle      time.Duration `yaml:"watch_idle" doc:"How long a watch goes on when nobody looks at what it reports." min:"1s"`
	URIHosts       []string      `yaml:"uri_hosts" doc:"The only hosts that CNF definition files (lcm-kubernetes-def-files) may be fetched from by URL: a name, or .domain for all below it. Empty: none."`
	URIAllow       []string      `yaml:"uri_allow" doc:"CIDRs or addresses that they may be fetched from although they are closed by default (loopback, link-local, metadata services)."`
	URITimeout     time.Duration `yaml:"uri_timeout" doc:"Time that fetching one of them may take." min:"100ms" max:"10m"`
	URISize        Bytes         `yaml:"uri_size" doc:"Size of one of them at most." min:"1024" max:"1073741824"`
	Helm           Helm          `yaml:"helm" doc:"Helm, for CNFs that are made of charts (use_helm). Repositories are reached under uri_hosts and its like."`
}

// Helm says which helm deploys charts, and how.
type Helm struct {
	Binary        string        `yaml:"binary" doc:"The program helm, version 4: a path, or a name that is looked for in PATH. Empty: helm."`
	Timeout       time.Duration `yaml:"timeout" doc:"Time that one run may take, the hooks of a chart included." min:"10s" max:"1h"`
	MaxConcurrent int           `yaml:"max_concurrent" doc:"Runs of this process at the same time at most; each takes some 60 MiB." min:"1"`
}

// AllowPrefixes returns uri_allow as address ranges. [Config.Validate] has refused what is none.
func (k Kubernetes) AllowPrefixes() []netip.Prefix { return prefixes(k.URIAllow) }

func defaultKubernetes() Kubernetes {
	return Kubernetes{
		ReadyTimeout: 500 * time.Second, DeleteTimeout: 500 * time.Second, PollMin: 200 * time.Millisecond, PollMax: 2 * time.Second,
		RequestTimeout: 60 * time.Second, ConnectTimeout: 10 * time.Second, MaxConcurrent: 64, WatchIdle: time.Minute,
		URIHosts: []string{}, URIAllow: []string{}, URITimeout: 20 * time.Second, URISize: 10 * mib,
		Helm: Helm{Timeout: 2 * time.Minute, MaxConcurrent: 4},
	}
}

// checkKubernetes checks what the struct tags do not say.
func (c *Config) checkKubernetes(bad report) {
	k := c.Kubernetes
	if k.PollMin > k.PollMax {
		bad("kubernetes.poll_min", "%s is longer than poll_max, %s", k.PollMin, k.PollMax)
	}
	checkHosts(bad, "kubernetes.uri_hosts", k.URIHosts)
	checkPrefixes(bad, "kubernetes.uri_allow", k.URIAllow)
}
