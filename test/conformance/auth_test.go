package conformance

import (
	"strings"
	"time"
)

// authCases are those of who is asking (SOL013 v2.6.1 §8.3), beside the common ones.
func authCases() []trial {
	challenged := func(status int, name, challenge string, headers func(x *exam) []string) trial {
		return trial{duty{instances, "GET", status}, name, func(x *exam) *answer {
			a := x.ask("GET", request{on: x.guarded, path: instances, headers: headers(x)})
			if got := strings.Join(a.header.Values("WWW-Authenticate"), ", "); !strings.Contains(got, challenge) {
				x.t.Errorf("WWW-Authenticate %q, want %q in it", got, challenge)
			}
			return a
		}}
	}
	bearer := func(scope string, expiry time.Duration) func(x *exam) []string {
		return func(x *exam) []string {
			return []string{"Authorization: Bearer " + x.issuer.token(x.t, scope, time.Now().Add(expiry))}
		}
	}
	as := func(name, user string) trial {
		return asks(instances, "GET", 200, name, func(x *exam) request {
			return request{on: x.guarded, path: instances, headers: basic(user)}
		})
	}
	return []trial{
		challenged(401, "all ways are told", "Basic", func(*exam) []string { return []string{"Authorization: "} }),
		challenged(401, "all ways are told, bearer too", "Bearer", func(*exam) []string { return []string{"Authorization: "} }),
		challenged(401, "a wrong password", "Basic", func(*exam) []string { return []string{"Authorization: Basic dTpw"} }),
		challenged(401, "a token that is none", `error="invalid_token"`, func(*exam) []string { return []string{"Authorization: Bearer abc"} }),
		challenged(401, "an expired token", `error="invalid_token"`, bearer("vnfm:all", -time.Hour)),
		challenged(400, "a malformed token", `error="invalid_request"`, func(*exam) []string { return []string{"Authorization: Bearer a b"} }),
		challenged(200, "a token", "", bearer("vnfm:all", time.Hour)),
		as("a reader", "reader"),
		as("an operator", "operator"),
		as("an administrator", "admin"),
	}
}
