package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
)

// complete fills in values that depend on other keys.
func (c *Config) complete() {
	if c.Secrets.KeyFile == "" && c.Database.Private() {
		c.Secrets.KeyFile = filepath.Join(c.Database.PrivateDir, "secrets.key")
	}
	if c.EndpointURL == "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err == nil {
			if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
				host = "127.0.0.1"
			}
			scheme := "http"
			if c.TLS.Cert != "" {
				scheme = "https"
			}
			c.EndpointURL = scheme + "://" + net.JoinHostPort(host, port)
		}
	}
	c.EndpointURL = strings.TrimRight(c.EndpointURL, "/")
}

// Validate checks every rule and returns an *[Error] with all that are broken, or nil. [Load] has done so already; it
// is for configurations made or changed in code.
func (c *Config) Validate() error {
	if p := c.problems(nil); len(p) > 0 {
		return &Error{Problems: p}
	}
	return nil
}

// problems lists broken rules; places tells where a key was set.
func (c *Config) problems(places map[string]string) []string {
	var out []string
	bad := func(key, format string, args ...any) {
		msg := key + ": " + fmt.Sprintf(format, args...)
		if p := places[key]; p != "" {
			msg = p + ": " + msg
		}
		out = append(out, msg)
	}
	c.checkTags(bad)
	c.checkListener(bad)
	c.checkAuth(bad)
	c.checkDatabase(bad)
	c.checkNeighbours(bad)
	c.checkRest(bad)
	c.checkVerify(bad)
	c.checkKubernetes(bad)
	return out
}

type report func(key, format string, args ...any)

// checkTags checks the rules that stand in the struct tags: oneof, min, max.
func (c *Config) checkTags(bad report) {
	walk(reflect.ValueOf(c).Elem(), "", func(key string, f reflect.StructField, v reflect.Value) {
		if one := f.Tag.Get("oneof"); one != "" && !contains(strings.Split(one, ","), v.String()) {
			bad(key, "%q is none of %s", v.String(), strings.ReplaceAll(one, ",", ", "))
		}
		for _, tag := range []string{"min", "max"} {
			limit := f.Tag.Get(tag)
			if limit == "" {
				continue
			}
			cmp, err := compare(v, limit)
			switch {
			case err != nil:
				bad(key, "%s", err)
			case tag == "min" && cmp < 0:
				bad(key, "%v is less than the least value, %s", v.Interface(), limit)
			case tag == "max" && cmp > 0:
				bad(key, "%v is more than the greatest value, %s", v.Interface(), limit)
			}
		}
	})
}

func compare(v reflect.Value, limit string) (int, error) {
	sign := func(less, more bool) int {
		switch {
		case less:
			return -1
		case more:
			return 1
		}
		return 0
	}
	if d, ok := v.Interface().(time.Duration); ok {
		l, err := time.ParseDuration(limit)
		return sign(d < l, d > l), err
	}
	l, err := strconv.ParseFloat(limit, 64)
	if err != nil {
		return 0, err
	}
	x := 0.0
	switch v.Kind() {
	case reflect.Float64:
		x = v.Float()
	default:
		x = float64(v.Int())
	}
	return sign(x < l, x > l), nil
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func (c *Config) checkListener(bad report) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		bad("listen", "%q is not host:port", c.Listen)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		bad("listen", "%q is not a port number", port)
	}
	if contains(c.Auth.Ways(), "none") && contains(c.Roles, "api") && !loopback(host) {
		bad("auth.mode", "without authentication (none) the API listens on loopback only, and listen is %s; set auth.mode to basic, bearer, keystone or mtls, or listen to 127.0.0.1:%s", c.Listen, port)
	}
	if len(c.Roles) == 0 {
		bad("roles", "at least one of api and worker is needed")
	}
	for _, r := range c.Roles {
		if r != "api" && r != "worker" {
			bad("roles", "%q is neither api nor worker", r)
		}
	}
	if c.EndpointURL != "" {
		checkURL(bad, "endpoint_url", c.EndpointURL)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		bad("tls", "cert and key go together")
	}
	if c.TLS.ClientCA != "" && c.TLS.Cert == "" {
		bad("tls.client_ca", "client certificates need tls.cert and tls.key")
	}
}

// loopback tells whether a listener on host can be reached from this machine only.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func checkURL(bad report, key, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		bad(key, "%q is not an http or https URL", text)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (c *Config) checkDatabase(bad report) {
	if c.Database.Private() {
		if c.Database.PrivateDir == "" {
			bad("database", "url or private_dir is needed")
		}
		return
	}
	u, err := url.Parse(c.Database.URL.Reveal())
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		bad("database.url", "it must begin with postgres:// (the value is not shown)")
	}
	if c.Secrets.KeyFile == "" {
		bad("secrets.key_file", "with database.url a key file is needed that every node has; make one with: (umask 077; vnfm secrets generate > FILE)")
	}
}

func (c *Config) checkRest(bad report) {
	if c.Debug.Listen != "" {
		if host, _, err := net.SplitHostPort(c.Debug.Listen); err != nil || !loopback(host) {
			bad("debug.listen", "%q is no loopback address with a port, such as 127.0.0.1:6060", c.Debug.Listen)
		}
	}
	o := c.Openstack
	if o.PollMin > o.PollMax {
		bad("openstack.poll_min", "%s is longer than poll_max, %s", o.PollMin, o.PollMax)
	}
	if r := o.RequestsPerSecond; r > 0 && r < 1 {
		bad("openstack.requests_per_second", "%v is less than one; 0 is no limit", r)
	}
	checkHosts(bad, "vnf_package.uri_hosts", c.VNFPackage.URIHosts)
	checkPrefixes(bad, "vnf_package.uri_allow", c.VNFPackage.URIAllow)
	checkPrefixes(bad, "limits.proxies", c.Limits.Proxies)
	for _, name := range sortedKeys(c.Mgmt.Drivers) {
		if c.Mgmt.Drivers[name] == "" || name == "" {
			bad("mgmt.drivers", "%q: %q needs a name and a built-in driver", name, c.Mgmt.Drivers[name])
		}
	}
}

func parsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// AllowPrefixes returns uri_allow as address ranges. [Config.Validate] has refused what is none.
func (p VNFPackage) AllowPrefixes() []netip.Prefix { return prefixes(p.URIAllow) }
