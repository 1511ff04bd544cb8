package conformance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// sample is a body that a method of a resource takes; empty for none.
func sample(route, method string) string {
	switch route {
	case instances:
		if method == "POST" {
			return `{"vnfdId":"` + absent + `"}`
		}
	case instance:
		if method == "PATCH" {
			return `{"vnfInstanceName":"n"}`
		}
	case instantiate:
		return `{"flavourId":"simple"}`
	case scale:
		return `{"type":"SCALE_OUT","aspectId":"worker_instance"}`
	case scaleToLevel:
		return `{"instantiationLevelId":"instantiation_level_2"}`
	case changeFlavour:
		return `{"newFlavourId":"complex"}`
	case terminate:
		return `{"terminationType":"FORCEFUL"}`
	case heal:
		return `{"cause":"because"}`
	case operate:
		return `{"changeStateTo":"STOPPED"}`
	case changeExtConn:
		return connect("net1")
	case cancel:
		return `{"cancelMode":"GRACEFUL"}`
	case subscriptions:
		if method == "POST" {
			return `{"callbackUri":"http://127.0.0.1:9/nobody"}`
		}
	}
	return ""
}

// connect is a ChangeExtVnfConnectivityRequest.
func connect(network string) string {
	return `{"extVirtualLinks":[{"id":"ext","resourceId":"` + network + `","extCps":[{"cpdId":"masterNode_CP1","cpConfig":[{"cpProtocolData":[` +
		`{"layerProtocol":"IP_OVER_ETHERNET","ipOverEthernet":{"ipAddresses":[{"type":"IPV4","numDynamicAddresses":1}]}}]}]}]}]}`
}

// broken are texts that are no JSON object, by what is wrong with them.
var broken = []struct{ name, body string }{
	{"no JSON", `{"a":`},
	{"no object", `[1]`},
	{"two values", `{} {}`},
	{"a million arrays", strings.Repeat("[", 1_000_000)},
	{"a text with U+0000", `{"vnfInstanceName":"a\u0000"}`},
}

// commonCases are those that every method of every resource has (SOL013 v2.6.1 §6.4).
func commonCases() []trial {
	var out []trial
	each(func(route, method string) {
		body := sample(route, method)
		out = append(out,
			sends(route, method, 400, "Version is malformed", body, "Version: one"),
			sends(route, method, 406, "Accept is not satisfiable", body, "Accept: text/html"),
			asks(route, method, 414, "URI too long", func(*exam) request {
				return request{path: at(route, absent) + "?filter=" + strings.Repeat("x", 40_000), body: body}
			}),
			asks(route, method, 401, "no credentials", func(x *exam) request {
				return request{on: x.guarded, path: at(route, absent), body: body, headers: []string{"Authorization: "}}
			}),
			trial{duty{route, method, 403}, "a token without a scope", func(x *exam) *answer {
				token := x.issuer.token(x.t, "something:else", time.Now().Add(time.Hour))
				a := x.ask(method, request{on: x.guarded, path: at(route, absent), body: body, headers: []string{"Authorization: Bearer " + token}})
				if !strings.Contains(a.text("WWW-Authenticate"), "insufficient_scope") {
					x.t.Errorf("WWW-Authenticate: %s", a.header.Values("WWW-Authenticate"))
				}
				return a
			}},
			trial{duty{route, method, 503}, "another request is being served", func(x *exam) *answer {
				x.occupy()
				return retryAfter(x, x.ask(method, request{on: x.crowded, path: at(route, absent), body: body}))
			}},
			trial{duty{route, method, 429}, "the second request", func(x *exam) *answer {
				x.exhaust()
				return retryAfter(x, x.ask(method, request{on: x.strict, path: at(route, absent), body: body}))
			}},
		)
		if !strings.HasSuffix(route, "api_versions") {
			out = append(out, sends(route, method, 406, "Version is not served", body, "Version: 9.0.0"))
		}
		if method != "GET" {
			out = append(out, asks(route, method, 403, "a reader", func(x *exam) request {
				return request{on: x.guarded, path: at(route, absent), body: body, headers: basic("reader")}
			}))
		}
		if strings.Contains(route, "{") {
			out = append(out, sends(route, method, 404, "there is none", body), asks(route, method, 404, "no UUID", func(*exam) request {
				return request{path: at(route, "no-uuid"), body: body}
			}))
		}
		if !hasBody(route, method) {
			return
		}
		out = append(out,
			asks(route, method, 413, "10 MB", func(*exam) request {
				return request{path: at(route, absent), body: `{"a":"` + strings.Repeat("x", 10_000_000) + `"}`}
			}),
			sends(route, method, 415, "text", body, "Content-Type: text/plain"),
			sends(route, method, 415, "another charset", body, "Content-Type: application/json; charset=utf-16"),
			asks(route, method, 400, "no body", func(*exam) request {
				return request{path: at(route, absent), headers: []string{jsonType}}
			}),
		)
		for _, b := range broken {
			out = append(out, sends(route, method, 400, b.name, b.body))
		}
		if method == "POST" {
			out = append(out, sends(route, method, 400, "Idempotency-Key is malformed", body, "Idempotency-Key: "+strings.Repeat("k", 256)))
		}
	})
	for _, route := range served {
		for _, method := range methods {
			if !supported(route, method) {
				out = append(out, trial{duty{route, method, 405}, "with Allow", func(x *exam) *answer {
					a := x.ask(method, request{path: at(route, absent)})
					if got := a.text("Allow"); got != allowed(route) {
						x.t.Errorf("Allow %q, want %q", got, allowed(route))
					}
					return a
				}})
			}
		}
	}
	return out
}

func retryAfter(x *exam, a *answer) *answer {
	x.t.Helper()
	if a.text("Retry-After") == "" {
		x.t.Errorf("%d without Retry-After: %v", a.status, a.header)
	}
	return a
}

// occupy has the crowded server serve a request that does not end.
func (x *exam) occupy() {
	x.t.Helper()
	x.until("the server is busy", func() bool {
		if x.held != nil && x.answered() { // another request was being served just then
			x.release()
		}
		if x.held == nil {
			x.hold()
		}
		return x.status(x.crowded) == 503
	})
}

// hold begins a request that does not end.
func (x *exam) hold() {
	x.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.crowded.url, "http://"))
	if err != nil {
		x.t.Fatal(err)
	}
	x.held = conn
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", instances); err != nil {
		x.t.Fatal(err)
	}
}

// answered tells whether the request that is held has been answered already.
func (x *exam) answered() bool {
	if err := x.held.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		return true
	}
	_, err := x.held.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// exhaust uses up what the strict server grants its caller.
func (x *exam) exhaust() {
	x.t.Helper()
	x.until("the caller has asked too often", func() bool { return x.status(x.strict) == 429 })
}

// status is what a server answers to a simple question.
func (x *exam) status(on *site) int {
	a, _, err := on.send(x.ctx, "GET", apiVersions, nil, nil)
	if err != nil {
		return 0
	}
	return a.status
}

func versionCases() []trial {
	var out []trial
	for _, route := range []string{apiVersions, apiVersionsV1} {
		for _, version := range []string{"", "1.3.0", "2.0.0", "9.9.9-impl:example.com:p:1"} {
			out = append(out, trial{duty{route, "GET", 200}, "Version " + version, func(x *exam) *answer {
				a := x.ask("GET", request{path: route, headers: []string{"Version: " + version}})
				v := decode[sol003.ApiVersionInformation](x, a)
				if v.UriPrefix != strings.TrimSuffix(route, "/api_versions") || len(v.ApiVersions) != 1 || v.ApiVersions[0].Version != "1.3.0" {
					x.t.Errorf("%s", a.body)
				}
				return a
			}})
		}
	}
	return out
}
