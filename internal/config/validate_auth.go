package config

import (
	"net/netip"
	"strings"
)

// checkAuth checks each way of authentication that is on.
func (c *Config) checkAuth(bad report) {
	a := c.Auth
	if len(a.Modes) > 0 && a.Mode != "none" && !contains(a.Modes, a.Mode) {
		bad("auth.mode", "%s is not among auth.modes; give one of the two keys", a.Mode)
	}
	checks := map[string]func(report){
		"none": func(report) {}, "basic": a.checkBasic, "bearer": a.checkBearer, "keystone": a.checkKeystone, "mtls": c.checkMTLS,
	}
	for n, way := range a.Ways() {
		check, ok := checks[way]
		switch {
		case !ok && len(a.Modes) == 0: // said by the key's tag
		case !ok || way == "none" && len(a.Modes) > 0:
			bad("auth.modes", "%q is none of basic, bearer, keystone, mtls", way)
		case contains(a.Ways()[:n], way):
			bad("auth.modes", "%s is there twice", way)
		default:
			check(bad)
		}
	}
	checkRoles(bad, "auth.roles", a.Roles)
	for _, user := range sortedKeys(a.Roles) {
		if !a.knows(user) {
			bad("auth.roles", "%q is no user of auth.basic.users or auth.mtls.users", user)
		}
	}
	for _, user := range sortedKeys(a.Projects) {
		if a.Projects[user] == "" || !a.knows(user) {
			bad("auth.projects", "%q: %q needs a user of auth.basic.users or auth.mtls.users, and a project", user, a.Projects[user])
		}
	}
}

// knows tells whether there is a user of the name.
func (a Auth) knows(user string) bool {
	if _, ok := a.Basic.Users[user]; ok {
		return true
	}
	for _, name := range a.MTLS.Users {
		if name == user {
			return true
		}
	}
	return false
}

// checkRoles checks that all values are roles.
func checkRoles(bad report, key string, roles map[string]string) {
	for _, name := range sortedKeys(roles) {
		if role := roles[name]; name == "" || !contains([]string{"reader", "operator", "admin"}, role) {
			bad(key, "%q: %q is none of reader, operator, admin", name, role)
		}
	}
}

func (a Auth) checkBasic(bad report) {
	if len(a.Basic.Users) == 0 {
		bad("auth.basic.users", "mode basic needs at least one user")
	}
	for _, name := range sortedKeys(a.Basic.Users) {
		if a.Basic.Users[name] == "" || name == "" || strings.Contains(name, ":") {
			bad("auth.basic.users", "the user %q needs a password, and a name without a colon", name)
		}
	}
}

func (a Auth) checkBearer(bad report) {
	b := a.Bearer
	checkURL(bad, "auth.bearer.issuer", b.Issuer)
	if b.JWKSURL != "" {
		checkURL(bad, "auth.bearer.jwks_url", b.JWKSURL)
	}
	if len(b.Algorithms) == 0 {
		bad("auth.bearer.algorithms", "at least one is needed")
	}
	for _, name := range b.Algorithms {
		if !contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}, name) {
			bad("auth.bearer.algorithms", "%q is none of RS256 to RS512, PS256 to PS512, ES256 to ES512 and EdDSA", name)
		}
	}
	if len(b.Scopes) == 0 {
		bad("auth.bearer.scopes", "mode bearer needs at least one scope that gives a role")
	}
	checkRoles(bad, "auth.bearer.scopes", b.Scopes)
}

func (a Auth) checkKeystone(bad report) {
	k := a.Keystone
	checkURL(bad, "auth.keystone.auth_url", k.AuthURL)
	if k.Username == "" {
		bad("auth.keystone.username", "mode keystone needs a user who validates tokens")
	}
	if k.Password == "" {
		bad("auth.keystone.password", "mode keystone needs that user's password")
	}
	if len(k.Roles) == 0 {
		bad("auth.keystone.roles", "mode keystone needs at least one role of Keystone's that gives one here")
	}
	checkRoles(bad, "auth.keystone.roles", k.Roles)
}

func (c *Config) checkMTLS(bad report) {
	if c.TLS.ClientCA == "" {
		bad("tls.client_ca", "mode mtls needs the CAs that client certificates come from")
	}
	users := c.Auth.MTLS.Users
	if len(users) == 0 {
		bad("auth.mtls.users", "mode mtls needs at least one user")
	}
	for _, name := range sortedKeys(users) {
		kind, rest, _ := strings.Cut(name, ":")
		if users[name] == "" || rest == "" || !contains([]string{"dns", "email", "uri", "ip", "cn", "subject"}, kind) {
			bad("auth.mtls.users", "%q: %q needs dns:, email:, uri:, ip:, cn: or subject: with a name, and a user", name, users[name])
			continue
		}
		if (kind == "dns" || kind == "email") && rest != strings.ToLower(rest) {
			bad("auth.mtls.users", "%q is to be written in lower case", name)
		}
		if ip, err := netip.ParseAddr(rest); kind == "ip" && (err != nil || ip.String() != rest) {
			bad("auth.mtls.users", "%q is no address in its usual form", name)
		}
	}
}
