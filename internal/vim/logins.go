package vim

import (
	"maps"
	"slices"
)

// way is a way of logging in to a cluster, by the attributes of auth_cred that it consists of.
type way []string

// The ways of logging in to a cluster. A user name and a password are HTTP's, unless oidc_token_url is beside them.
var (
	byToken       = way{"bearer_token"}
	byPassword    = way{"username", "password"}
	byIssuer      = way{"oidc_token_url", "client_id", "client_secret", "username", "password"}
	byCertificate = way{"client_cert", "client_key"}
)

// waysOf returns the ways that an auth_cred gives; what is masked is not given.
func waysOf(auth map[string]any) []way {
	given := func(key string) bool { s := text(auth, key); return s != "" && s != Mask }
	var out []way
	if given("bearer_token") {
		out = append(out, byToken)
	}
	if given("client_cert") || given("client_key") {
		out = append(out, byCertificate)
	}
	switch {
	case given("oidc_token_url"):
		out = append(out, byIssuer)
	case given("username") && given("password"):
		out = append(out, byPassword)
	}
	return out
}

// has tells whether a way is among others.
func has(ways []way, w way) bool {
	return slices.ContainsFunc(ways, func(o way) bool { return o[0] == w[0] })
}

// replaced returns the auth_cred of a cluster and the change to be laid over it. A change with a way of logging in that the
// VIM has not had replaces all others: the cluster would go on knowing us by them. One that it has had is renewed, and the
// others stay; a user name and password renew those of an OpenID Connect issuer, too, unless that is taken away by null.
func replaced(stored, change map[string]any) (map[string]any, map[string]any) {
	had, given := waysOf(stored), waysOf(change)
	left, ended := change[byIssuer[0]]
	ended = ended && left == nil
	isNew := func(w way) bool {
		return !has(had, w) && (ended || !has(had, byIssuer) || w[0] != byPassword[0])
	}
	if !slices.ContainsFunc(given, isNew) {
		return stored, change
	}
	stored, change = maps.Clone(stored), maps.Clone(change)
	for _, w := range []way{byToken, byPassword, byIssuer, byCertificate} {
		if has(given, w) {
			continue
		}
		for _, key := range w {
			delete(stored, key)
			if change[key] == Mask {
				delete(change, key)
			}
		}
	}
	return stored, change
}

// withCertificate returns auth_cred and extra of a cluster with the client certificate where it belongs: python-tackerclient
// sends of auth_cred only what it knows, which client_cert and client_key are not, and all of extra.
func withCertificate(auth, extra map[string]any) (map[string]any, map[string]any) {
	for _, key := range byCertificate {
		v, ok := extra[key]
		if !ok {
			continue
		}
		auth, extra = maps.Clone(auth), maps.Clone(extra)
		if auth == nil {
			auth = map[string]any{}
		}
		auth[key] = v
		delete(extra, key)
	}
	return auth, extra
}
