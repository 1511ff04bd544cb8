package config

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Notify is how notifications of lifecycle changes are delivered.
type Notify struct {
	TestCallback bool          `yaml:"test_callback" doc:"Whether a callback is called with GET, and must answer 204, before a subscription is made."`
	Timeout      time.Duration `yaml:"timeout" doc:"Wait for a callback's answer." min:"100ms" max:"5m"`
	RetryMin     time.Duration `yaml:"retry_min" doc:"Pause after a first delivery that failed; it doubles with every further one." min:"10ms"`
	RetryMax     time.Duration `yaml:"retry_max" doc:"Longest pause between tries of a delivery." min:"100ms"`
	MaxAge       time.Duration `yaml:"max_age" doc:"Age at which a notification that could not be delivered is given up." min:"1m"`
	Concurrency  int           `yaml:"concurrency" doc:"Deliveries to one subscription at the same time at most, each for another VNF instance." min:"1" max:"256"`
	Retention    time.Duration `yaml:"retention" doc:"How long notifications are kept that nobody has still to be told." min:"1m"`
	Hosts        []string      `yaml:"hosts" doc:"The only hosts that callbacks may be on: a name, or .domain for all below it. Empty: any."`
	Networks     []string      `yaml:"networks" doc:"The only CIDRs or addresses that callbacks may be at. Empty: any."`
	Allow        []string      `yaml:"allow" doc:"CIDRs or addresses that callbacks may be at although they are closed by default (loopback, link-local, metadata services)."`
	CAFile       string        `yaml:"ca_file" doc:"PEM file of the CAs of callbacks' TLS. Empty: the system's."`
	ClientCert   string        `yaml:"client_cert" doc:"PEM file of the certificate shown to callbacks whose authentication is TLS_CERT."`
	ClientKey    string        `yaml:"client_key" doc:"PEM file of its key."`
}

// AllowPrefixes returns allow as address ranges. [Config.Validate] has refused what is none.
func (n Notify) AllowPrefixes() []netip.Prefix { return prefixes(n.Allow) }

// ProxyPrefixes returns proxies as address ranges. [Config.Validate] has refused what is none.
func (l Limits) ProxyPrefixes() []netip.Prefix { return prefixes(l.Proxies) }

// Only returns networks as address ranges. [Config.Validate] has refused what is none.
func (n Notify) Only() []netip.Prefix { return prefixes(n.Networks) }

// NFVO is the orchestrator that is asked for grants and packages.
type NFVO struct {
	Auth     NFVOAuth     `yaml:"auth" doc:"How the NFVO knows this manager."`
	TLS      NFVOTLS      `yaml:"tls" doc:"TLS towards the NFVO."`
	Grant    NFVOGrant    `yaml:"grant" doc:"Grants."`
	Packages NFVOPackages `yaml:"packages" doc:"VNF packages that are not here yet."`
}

// NFVOAuth is at most one way to log in at the NFVO.
type NFVOAuth struct {
	User          string   `yaml:"user" doc:"User of HTTP basic authentication. Empty: none."`
	Password      Secret   `yaml:"password" doc:"That user's password."`
	ClientID      string   `yaml:"client_id" doc:"Client of OAuth 2.0 with client credentials. Empty: none."`
	ClientSecret  Secret   `yaml:"client_secret" doc:"That client's secret."`
	TokenEndpoint string   `yaml:"token_endpoint" doc:"Where its tokens are to be had."`
	Scopes        []string `yaml:"scopes" doc:"Scopes that are asked for."`
}

// NFVOTLS names the files of TLS towards the NFVO.
type NFVOTLS struct {
	CAFile string `yaml:"ca_file" doc:"PEM file of the CA of the NFVO's TLS. Empty: the system's."`
	Cert   string `yaml:"cert" doc:"PEM file of the certificate shown to the NFVO. Empty: none."`
	Key    string `yaml:"key" doc:"PEM file of its key."`
}

// NFVOGrant is how grants are asked for.
type NFVOGrant struct {
	BaseURL   string        `yaml:"base_url" doc:"The NFVO's grant API, such as https://nfvo.example.com/grant/v1. Empty: everything is granted here."`
	Version   string        `yaml:"version" doc:"Value of the Version header. Empty: none is sent."`
	Timeout   time.Duration `yaml:"timeout" doc:"Wait for one answer." min:"100ms" max:"10m"`
	Retries   int           `yaml:"retries" doc:"How often a request that failed in a way that passes is made again." min:"0" max:"1000"`
	RetryWait time.Duration `yaml:"retry_wait" doc:"Pause before that, unless the NFVO says when." min:"10ms"`
	Poll      time.Duration `yaml:"poll" doc:"Pause between looks at a grant that is not decided yet, unless the NFVO says when." min:"10ms"`
	Decision  time.Duration `yaml:"decision" doc:"Wait for a decision altogether." min:"1s"`
}

// NFVOPackages is how packages are fetched.
type NFVOPackages struct {
	BaseURL   string        `yaml:"base_url" doc:"The NFVO's package management, such as https://nfvo.example.com/vnfpkgm/v1. Empty: only packages onboarded here are known."`
	Version   string        `yaml:"version" doc:"Value of the Version header. Empty: none is sent."`
	Timeout   time.Duration `yaml:"timeout" doc:"Wait for one answer, and how long a transfer may stand still." min:"100ms" max:"10m"`
	Retries   int           `yaml:"retries" doc:"How often what failed in a way that passes is tried again." min:"0" max:"1000"`
	RetryWait time.Duration `yaml:"retry_wait" doc:"Pause before that." min:"10ms"`
	Wait      time.Duration `yaml:"wait" doc:"How long a create request waits for its package before it is answered 503; the fetch goes on." min:"1s"`
	AtOnce    int           `yaml:"at_once" doc:"Packages fetched at the same time at most." min:"1" max:"256"`
}

func defaultNotify() Notify {
	return Notify{
		TestCallback: true, Timeout: 10 * time.Second, RetryMin: time.Second, RetryMax: time.Hour, MaxAge: 7 * 24 * time.Hour,
		Concurrency: 8, Retention: 7 * 24 * time.Hour, Hosts: []string{}, Networks: []string{}, Allow: []string{},
	}
}

func defaultNFVO() NFVO {
	return NFVO{
		Auth: NFVOAuth{Scopes: []string{}},
		Grant: NFVOGrant{
			Timeout: 20 * time.Second, Retries: 2, RetryWait: 30 * time.Second, Poll: 5 * time.Second, Decision: time.Hour,
		},
		Packages: NFVOPackages{Timeout: 20 * time.Second, Retries: 2, RetryWait: 2 * time.Second, Wait: time.Minute, AtOnce: 8},
	}
}

// checkNeighbours checks how subscribers and the NFVO are called.
func (c *Config) checkNeighbours(bad report) {
	n := c.Notify
	if n.RetryMin > n.RetryMax {
		bad("notify.retry_min", "%s is longer than retry_max, %s", n.RetryMin, n.RetryMax)
	}
	checkHosts(bad, "notify.hosts", n.Hosts)
	checkPrefixes(bad, "notify.networks", n.Networks)
	checkPrefixes(bad, "notify.allow", n.Allow)
	checkPair(bad, "notify.client_key", n.ClientCert, n.ClientKey, "client_cert")

	a := c.NFVO.Auth
	switch {
	case a.User != "" && a.ClientID != "":
		bad("nfvo.auth.client_id", "there is a user as well; the NFVO knows this manager by one of them")
	case a.ClientID != "" && (a.TokenEndpoint == "" || a.ClientSecret == ""):
		bad("nfvo.auth.token_endpoint", "a client needs its client_secret and its token_endpoint")
	case a.User != "" && a.Password == "":
		bad("nfvo.auth.password", "user %q needs a password", a.User)
	}
	checkPair(bad, "nfvo.tls.key", c.NFVO.TLS.Cert, c.NFVO.TLS.Key, "cert")
	for key, text := range map[string]string{
		"nfvo.grant.base_url": c.NFVO.Grant.BaseURL, "nfvo.packages.base_url": c.NFVO.Packages.BaseURL, "nfvo.auth.token_endpoint": a.TokenEndpoint,
	} {
		if text == "" {
			continue
		}
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			bad(key, "%q is no http or https URL without a user", text)
		}
	}
}

func checkPair(bad report, key, cert, file, other string) {
	if (cert == "") != (file == "") {
		bad(key, "a certificate and its key are set together: this and %s", other)
	}
}

func checkHosts(bad report, key string, hosts []string) {
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, "/:* ") {
			bad(key, "%q is neither a host name nor .domain", host)
		}
	}
}

func checkPrefixes(bad report, key string, list []string) {
	for _, text := range list {
		if _, err := parsePrefix(text); err != nil {
			bad(key, "%q is neither a CIDR nor an address", text)
		}
	}
}

func prefixes(list []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range list {
		if prefix, err := parsePrefix(text); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}
