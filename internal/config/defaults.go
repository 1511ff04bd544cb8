package config

import (
	"os"
	"path/filepath"
	"time"
)

// Default returns the configuration that an empty file and environment give.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:9890",
		Roles:  []string{"api", "worker"},
		Database: Database{
			PrivateDir: filepath.Join(dataDir(), "postgres"),
			MaxConns:   32,
			Migrate:    true,
		},
		Log: Log{Level: "info", Format: "text"},
		Auth: Auth{
			Mode:     "none",
			Modes:    []string{},
			Roles:    map[string]string{},
			Projects: map[string]string{},
			Basic:    AuthBasic{Users: map[string]Secret{}},
			Bearer: AuthBearer{
				Timeout:      10 * time.Second,
				ClockSkew:    30 * time.Second,
				Algorithms:   []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"},
				Scopes:       map[string]string{"vnfm.read": "reader", "vnfm.write": "operator", "vnfm.admin": "admin"},
				UserClaim:    "sub",
				ProjectClaim: "project_id",
			},
			Keystone: AuthKeystone{
				UserDomainName:    "Default",
				ProjectName:       "service",
				ProjectDomainName: "Default",
				Timeout:           10 * time.Second,
				Roles:             map[string]string{"admin": "admin", "member": "operator", "reader": "reader"},
			},
			MTLS: AuthMTLS{Users: map[string]string{}},
		},
		TLS: TLS{Reload: 10 * time.Second},
		Openstack: Openstack{
			StackTimeout:      600 * time.Second,
			PollMin:           200 * time.Millisecond,
			PollMax:           2 * time.Second,
			ImageTimeout:      100 * time.Second,
			UserDataTimeout:   60 * time.Second,
			UserDataUser:      "nobody",
			RequestsPerSecond: 50,
			MaxConcurrent:     32,
			RequestTimeout:    60 * time.Second,
			ConnectTimeout:    10 * time.Second,
			BreakerFailures:   5,
			BreakerOpenFor:    10 * time.Second,
			LoginPause:        30 * time.Second,
		},
		Kubernetes: defaultKubernetes(),
		VIM:        VIM{ProbeInterval: 30 * time.Second, ProbeTimeout: 10 * time.Second},
		VNFPackage: VNFPackage{
			SizeCap:     1024 * gib,
			UnpackedCap: 2048 * gib,
			MaxEntries:  10000,
			URIHosts:    []string{},
			URIAllow:    []string{},
		},
		Engine: Engine{
			MaxWorkers:       100,
			FetchCooldown:    5 * time.Millisecond,
			FetchPoll:        200 * time.Millisecond,
			TakeoverInterval: 2 * time.Second,
			JobRetention:     time.Hour,
			StopTimeout:      10 * time.Second,
		},
		Verify: defaultVerify(),
		Mgmt: Mgmt{
			Drivers: map[string]string{"vnflcm_noop": "noop", "mgmt-drivers-kubernetes": "noop"},
		},
		Notify: defaultNotify(),
		NFVO:   defaultNFVO(),
		Paging: Paging{PageSize: 100},
		Limits: Limits{
			Body:                 16 * mib,
			Header:               64 * kib,
			HeaderTimeout:        10 * time.Second,
			BodyTimeout:          30 * time.Second,
			IdleTimeout:          120 * time.Second,
			MaxConcurrent:        1024,
			Proxies:              []string{},
			IdempotencyRetention: 24 * time.Hour,
		},
		Audit: Audit{Retention: 90 * 24 * time.Hour},
	}
}

// dataDir is where state is kept: the system's place for root, the user's for everybody else.
func dataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/vnfm"
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "vnfm")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "vnfm")
	}
	return filepath.Join(os.TempDir(), "vnfm")
}
