package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestBadTasks sends bad requests about instances, op occs and subscriptions: bodies that break a rule, states in which a
// task is not possible, too much of anything, and callbacks that are none.
func TestBadTasks(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{
		"VNFM_LIMITS_BODY=4MiB", "VNFM_LIMITS_HEADER_TIMEOUT=5s", "VNFM_LIMITS_BODY_TIMEOUT=5s", "VNFM_NOTIFY_TIMEOUT=5s", loopbackCallbacks,
	}})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	raw, vnfd := variant(t, "multi-port", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	idle, err := l.api.CreateInstance(ctx, vnfd)
	must(t, err)
	live, err := l.api.CreateInstance(ctx, vnfd)
	must(t, err)
	done, err := l.api.Instantiate(ctx, live.Id, vim, deploy.InstantiateRequest("multi-port", "default"))
	must(t, err)
	l.awaitOp(ctx, t, done, sol003.LcmOperationStateCompleted)
	before := string(l.get(ctx, t, instancesPath+"/"+live.Id))

	t.Run("with", func(t *testing.T) {
		t.Run("bodies", func(t *testing.T) { t.Parallel(); l.badBodies(ctx, t, idle.Id, live.Id, done) })
		t.Run("callbacks", func(t *testing.T) { t.Parallel(); l.badCallbacks(ctx, t) })
		t.Run("connections", func(t *testing.T) { t.Parallel(); l.badConnections(ctx, t, idle.Id) })
	})

	// None of it has changed anything.
	if got := string(l.get(ctx, t, instancesPath+"/"+live.Id)); got != before {
		t.Errorf("the instance was\n%s\nand is\n%s", before, got)
	}
	if ops := l.read(ctx, t, opOccsPath); len(ops) != 1 {
		t.Errorf("requests that were refused have left operations: %v", ops)
	}
	if subs := l.read(ctx, t, subscriptionsPath); len(subs) != 0 {
		t.Errorf("subscriptions that were refused are there: %v", subs)
	}
	op, err := l.api.Terminate(ctx, live.Id)
	must(t, err)
	l.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)
	must(t, l.api.DeleteInstance(ctx, live.Id))
	must(t, l.api.DeleteInstance(ctx, idle.Id))
	must(t, l.api.DeletePackage(ctx, pkg.Id))
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

func (l *lab) badBodies(ctx context.Context, t *testing.T, idle, live, done string) {
	t.Helper()
	const (
		asJSON  = "application/json"
		asPatch = "application/merge-patch+json"
	)
	at, op := instancesPath+"/"+live, opOccsPath+"/"+done
	cp := func(id, config string) string {
		return `{"extVirtualLinks": [{"id": "access", "resourceId": "net0", "extCps": [{"cpdId": "` + id + `", "cpConfig": ` + config + `}]}]}`
	}
	const ethernet = `{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}`
	address := func(of string) string {
		return `[{"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [` + of + `]}}]}]`
	}
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	big := `{"cause": "` + strings.Repeat("x", 10<<20) + `"}`
	for _, c := range []struct {
		name, method, path, contentType, body string
		status                                int
		says                                  string // part of the detail
	}{
		{"scale without anything", "POST", at + "/scale", asJSON, `{}`, 400, "type"},
		{"scale without an aspect", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT"}`, 400, "aspectId"},
		{"scale sideways", "POST", at + "/scale", asJSON, `{"type": "SIDEWAYS", "aspectId": "gateway_group"}`, 400, "SIDEWAYS"},
		{"scale by no step", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": 0}`, 400, "numberOfSteps"},
		{"scale by less", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": -1}`, 400, "numberOfSteps"},
		{"scale by half a step", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": 1.5}`, 400, "numberOfSteps"},
		{"scale by words", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": "many"}`, 400, "many"},
		{"scale beyond numbers", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": 99999999999999999999}`, 400, ""},
		{"scale beyond levels", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": 3}`, 400, "scale_out"},
		{"scale below levels", "POST", at + "/scale", asJSON, `{"type": "SCALE_IN", "aspectId": "gateway_group"}`, 400, "scale_in"},
		{"scale what does not", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "worker_group"}`, 400, "aspectId"},
		{"scale with text for parameters", "POST", at + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group", "additionalParams": "x"}`, 400, "additionalParams"},
		{"scale to two levels", "POST", at + "/scale_to_level", asJSON, `{"instantiationLevelId": "instantiation_level_1", "scaleInfo": [{"aspectId": "gateway_group", "scaleLevel": 1}]}`, 400, "exactly one"},
		{"scale to no level", "POST", at + "/scale_to_level", asJSON, `{}`, 400, "exactly one"},
		{"scale to an unknown level", "POST", at + "/scale_to_level", asJSON, `{"instantiationLevelId": "top"}`, 400, "top"},
		{"scale an aspect twice", "POST", at + "/scale_to_level", asJSON, `{"scaleInfo": [{"aspectId": "gateway_group", "scaleLevel": 1}, {"aspectId": "gateway_group", "scaleLevel": 2}]}`, 400, "twice"},
		{"scale to a level too high", "POST", at + "/scale_to_level", asJSON, `{"scaleInfo": [{"aspectId": "gateway_group", "scaleLevel": 9}]}`, 400, "9"},
		{"scale an unknown aspect to a level", "POST", at + "/scale_to_level", asJSON, `{"scaleInfo": [{"aspectId": "none", "scaleLevel": 1}]}`, 400, "none"},
		{"heal by a number", "POST", at + "/heal", asJSON, `{"vnfcInstanceId": 7}`, 400, "vnfcInstanceId"},
		{"heal what is not there", "POST", at + "/heal", asJSON, `{"vnfcInstanceId": ["` + nobody + `"]}`, 400, nobody},
		{"heal for a list of causes", "POST", at + "/heal", asJSON, `{"cause": ["x"]}`, 400, "cause"},
		{"heal with a list", "POST", at + "/heal", asJSON, `[]`, 400, "object"},
		{"operate without a state", "POST", at + "/operate", asJSON, `{}`, 400, "changeStateTo"},
		{"operate to sleep", "POST", at + "/operate", asJSON, `{"changeStateTo": "SLEEPING"}`, 400, "SLEEPING"},
		{"start what is started", "POST", at + "/operate", asJSON, `{"changeStateTo": "STARTED"}`, 409, "STARTED"},
		{"change to no flavour", "POST", at + "/change_flavour", asJSON, `{}`, 400, "newFlavourId"},
		{"change the only flavour", "POST", at + "/change_flavour", asJSON, `{"newFlavourId": "other"}`, 404, "no other flavour"},
		{"connect nothing", "POST", at + "/change_ext_conn", asJSON, `{}`, 400, "extVirtualLinks"},
		{"connect an unknown CP", "POST", at + "/change_ext_conn", asJSON, cp("none_CP", "["+ethernet+"]"), 400, "none_CP"},
		{"connect a CP twice", "POST", at + "/change_ext_conn", asJSON, cp("gateway_CP1", "["+ethernet+","+ethernet+"]"), 400, "too long"},
		{"connect a CP without a configuration", "POST", at + "/change_ext_conn", asJSON, cp("gateway_CP1", "[]"), 400, "too short"},
		{"connect to an address that is none", "POST", at + "/change_ext_conn", asJSON, cp("gateway_CP1", address(`{"type": "IPV4", "fixedAddresses": ["10.0.0.999"]}`)), 400, "10.0.0.999"},
		{"connect in two ways", "POST", at + "/change_ext_conn", asJSON, cp("gateway_CP1", address(`{"type": "IPV4", "fixedAddresses": ["10.0.0.9"], "numDynamicAddresses": 1}`)), 400, "exactly one"},
		{"connect in an unknown VIM", "POST", at + "/change_ext_conn", asJSON, strings.TrimSuffix(cp("gateway_CP1", "["+ethernet+"]"), "}") + `, "vimConnectionInfo": [{"id": "a", "vimId": "` + nobody + `", "vimType": "openstack"}]}`, 400, nobody},
		{"terminate in no way", "POST", at + "/terminate", asJSON, `{}`, 400, "terminationType"},
		{"terminate before now", "POST", at + "/terminate", asJSON, `{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}`, 400, "gracefulTerminationTimeout"},
		{"instantiate twice", "POST", at + "/instantiate", asJSON, `{"flavourId": "default"}`, 409, "INSTANTIATED"},
		{"delete what lives", "DELETE", at, "", ``, 409, "INSTANTIATED"},

		{"scale what is not there", "POST", instancesPath + "/" + idle + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "gateway_group"}`, 409, "NOT ACTIVE"},
		{"scale to a level what is not there", "POST", instancesPath + "/" + idle + "/scale_to_level", asJSON, `{"instantiationLevelId": "instantiation_level_1"}`, 409, "NOT ACTIVE"},
		{"heal what does not live", "POST", instancesPath + "/" + idle + "/heal", asJSON, `{}`, 409, "NOT_INSTANTIATED"},
		{"stop what does not live", "POST", instancesPath + "/" + idle + "/operate", asJSON, `{"changeStateTo": "STOPPED"}`, 409, "NOT_INSTANTIATED"},
		{"change the flavour of what does not live", "POST", instancesPath + "/" + idle + "/change_flavour", asJSON, `{"newFlavourId": "default"}`, 409, "NOT_INSTANTIATED"},
		{"connect what does not live", "POST", instancesPath + "/" + idle + "/change_ext_conn", asJSON, cp("gateway_CP1", "["+ethernet+"]"), 409, "not instantiated"},
		{"terminate what does not live", "POST", instancesPath + "/" + idle + "/terminate", asJSON, `{"terminationType": "FORCEFUL"}`, 409, "NOT_INSTANTIATED"},
		{"scale nobody", "POST", instancesPath + "/" + nobody + "/scale", asJSON, `{"type": "SCALE_OUT", "aspectId": "a"}`, 404, nobody},

		{"a patch that is a list", "PATCH", at, asPatch, `[{"op": "replace"}]`, 400, "object"},
		{"a patch that is a text", "PATCH", at, asPatch, `"x"`, 400, "object"},
		{"a patch that is cut short", "PATCH", at, asPatch, `{"metadata": {`, 400, "line 1"},
		{"a patch of another kind", "PATCH", at, "application/json-patch+json", `[]`, 415, "json-patch"},
		{"a name that is a number", "PATCH", at, asPatch, `{"vnfInstanceName": 7}`, 400, "vnfInstanceName"},
		{"metadata that are a list", "PATCH", at, asPatch, `{"metadata": ["x"]}`, 400, "metadata"},
		{"another VNFD that there is not", "PATCH", at, asPatch, `{"vnfdId": "` + nobody + `"}`, 400, nobody},
		{"a VIM for what has none", "PATCH", instancesPath + "/" + idle, asPatch, `{"vimConnectionInfo": [{"id": "a", "vimType": "openstack"}]}`, 400, "vimConnectionInfo"},
		{"a patch of nobody", "PATCH", instancesPath + "/" + nobody, asPatch, `{}`, 404, nobody},

		{"retry what is done", "POST", op + "/retry", "", ``, 409, "COMPLETED"},
		{"roll back what is done", "POST", op + "/rollback", "", ``, 409, "FAILED_TEMP"},
		{"give up what is done", "POST", op + "/fail", "", ``, 409, "FAILED_TEMP"},
		{"cancel what is done", "POST", op + "/cancel", asJSON, `{"cancelMode": "FORCEFUL"}`, 409, "COMPLETED"},
		{"cancel in no way", "POST", op + "/cancel", asJSON, `{}`, 400, "cancelMode"},
		{"cancel soon", "POST", op + "/cancel", asJSON, `{"cancelMode": "SOON"}`, 400, "SOON"},
		{"cancel nobody", "POST", opOccsPath + "/" + nobody + "/cancel", asJSON, `{"cancelMode": "FORCEFUL"}`, 404, nobody},
		{"change an op occ", "PATCH", op, asJSON, `{}`, 405, ""},

		{"op occs by nothing", "GET", opOccsPath + "?filter=(eq,nothing,x)", "", ``, 400, "nothing"},
		{"op occs by an operator that is none", "GET", opOccsPath + "?filter=(like,id,x)", "", ``, 400, "like"},
		{"op occs by half a filter", "GET", opOccsPath + "?filter=(eq,id,'x)", "", ``, 400, "single quotes"},
		{"op occs with an unknown field", "GET", opOccsPath + "?fields=colour", "", ``, 400, "colour"},
		{"op occs with all and some", "GET", opOccsPath + "?all_fields&fields=error", "", ``, 400, "all_fields"},
		{"a marker that is none", "GET", opOccsPath + "?nextpage_opaque_marker=AAAA", "", ``, 400, "marker"},
		{"instances by what is no parameter", "GET", instancesPath + "?colour=red", "", ``, 400, "colour"},

		{"a subscription to nobody", "POST", subscriptionsPath, asJSON, `{}`, 400, "callbackUri"},
		{"a callback that is no URI", "POST", subscriptionsPath, asJSON, `{"callbackUri": "here"}`, 400, "here"},
		{"a callback by gopher", "POST", subscriptionsPath, asJSON, `{"callbackUri": "gopher://host/"}`, 400, "gopher"},
		{"a callback to the metadata service", "POST", subscriptionsPath, asJSON, `{"callbackUri": "http://169.254.169.254/latest/meta-data"}`, 400, "Failed to Test Notification"},
		{"a filter of unknown operations", "POST", subscriptionsPath, asJSON, `{"callbackUri": "http://127.0.0.1:1/", "filter": {"operationTypes": ["DANCE"]}}`, 400, "DANCE"},
		{"a password for nobody", "POST", subscriptionsPath, asJSON, `{"callbackUri": "http://127.0.0.1:1/", "authentication": {"authType": ["BASIC"]}}`, 400, "paramsBasic"},
		{"an authentication by magic", "POST", subscriptionsPath, asJSON, `{"callbackUri": "http://127.0.0.1:1/", "authentication": {"authType": ["MAGIC"]}}`, 400, "MAGIC"},
		{"subscriptions by nothing", "GET", subscriptionsPath + "?filter=(eq,nothing,x)", "", ``, 400, "nothing"},
		{"a subscription that is none", "DELETE", subscriptionsPath + "/" + nobody, "", ``, 404, nobody},

		{"a body of ten megabytes", "POST", at + "/heal", asJSON, big, 413, "4194304"},
		{"a million nested arrays", "POST", at + "/heal", asJSON, deep, 400, "nested"},
		{"a million nested arrays within", "PATCH", at, asPatch, `{"metadata": {"a": ` + deep + `}}`, 400, "nested"},
		{"a filter of forty kilobytes", "GET", opOccsPath + "?filter=(eq,id," + strings.Repeat("x", 40<<10) + ")", "", ``, 414, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := l.api.Send(ctx, c.method, c.path, c.contentType, []byte(c.body))
			must(t, err)
			if r.Status != c.status {
				t.Errorf("status %d, want %d: %s", r.Status, c.status, r.Body)
			}
			if got := harness.Detail(r.Body); !strings.Contains(got, c.says) {
				t.Errorf("the detail is %q, want it to name %q", got, c.says)
			}
			checkProblem(t, c.path, r)
		})
	}
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		status             int
	}{
		{"a version that there is not", "GET", at, http.Header{"Version": {"99.0.0"}}, 406},
		{"a version that is none", "GET", at, http.Header{"Version": {"newest"}}, 400},
		{"an answer as a picture", "GET", at, http.Header{"Accept": {"image/png"}}, 406},
		{"a version of the resource that was", "PATCH", at, http.Header{"If-Match": {`"0"`}, "Content-Type": {asPatch}}, 412},
		{"a deletion of what was", "DELETE", instancesPath + "/" + idle, http.Header{"If-Match": {`"4711"`}}, 412},
		{"a header that is too large", "GET", at, http.Header{"X-Large": {strings.Repeat("x", 128<<10)}}, 431},
		{"a key that is too long", "POST", at + "/heal", http.Header{"Idempotency-Key": {strings.Repeat("k", 10<<10)}, "Content-Type": {asJSON}}, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body io.Reader
			if c.header.Get("Content-Type") != "" {
				body = strings.NewReader(`{}`)
			}
			req, err := http.NewRequestWithContext(ctx, c.method, l.Nodes[0].URL+c.path, body)
			must(t, err)
			req.Header = c.header
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			raw, err := io.ReadAll(resp.Body)
			must(t, err)
			must(t, resp.Body.Close())
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, raw)
			}
			if c.status != 431 { // that one is Go's own
				checkProblem(t, c.path, &harness.Response{Status: resp.StatusCode, Header: resp.Header, Body: raw})
			}
		})
	}
}

// badCallbacks subscribes callbacks that do not pass the test: each is refused in a moment, in the words that clients of
// Tacker know.
func (l *lab) badCallbacks(ctx context.Context, t *testing.T) {
	t.Helper()
	elsewhere := newSubscriber(t)
	over := make(chan struct{})
	var handlers sync.WaitGroup
	t.Cleanup(handlers.Wait)
	t.Cleanup(func() { close(over) })
	endless := func(w io.Writer) {
		block := bytes.Repeat([]byte("x"), 1<<16)
		for range 1 << 14 { // a gigabyte
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"redirects for ever": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		"hangs":                         func(http.ResponseWriter, *http.Request) { <-over },
		"says OK":                       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "OK") },
		"fails":                         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"asks who is there":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"answers a gigabyte":            func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"answers garbage":               func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, "it is not HTTP at all\r\n\r\n") },
		"answers a gigabyte of headers": func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, "HTTP/1.1 204 No Content\r\nX: ", endless) },
		"hangs up":                      func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handlers.Add(1)
				defer handlers.Done()
				answer(w, r)
			}))
			t.Cleanup(func() {
				s.CloseClientConnections()
				go s.Close() // one that hangs is let go when all are through
			})
			began := time.Now()
			r, err := l.api.Send(ctx, "POST", subscriptionsPath, "application/json", []byte(`{"callbackUri": `+strconv.Quote(s.URL+"/told")+`}`))
			must(t, err)
			if r.Status != 400 || harness.Detail(r.Body) != "Failed to Test Notification" {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
			if took := time.Since(began); took > 2*time.Minute { // the callback has five seconds
				t.Errorf("it took %s", took)
			}
			checkProblem(t, subscriptionsPath, r)
		})
	}
	if got := elsewhere.about(""); len(got) > 0 {
		t.Errorf("a redirection was followed: %v", got)
	}
}

// rawAnswer answers a request with bytes of its own, and hangs up.
func rawAnswer(w http.ResponseWriter, text string, more ...func(io.Writer)) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text)
	for _, m := range more {
		m(conn)
	}
}

// badConnections has clients that say what they say slowly, or not at all.
func (l *lab) badConnections(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	addr := strings.TrimPrefix(l.Nodes[0].URL, "http://")
	head := "POST " + instancesPath + "/" + id + "/heal HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, text string
		status     int // 0: the connection is just closed
	}{
		{"half a header", head, 0},
		{"nothing", "", 0},
		{"half a body", head + "Content-Length: 100\r\n\r\n{", 408},
		{"no body", head + "Content-Length: 100\r\n\r\n", 408},
		{"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n10\r\n{", 408},
		{"a body of less than nothing", head + "Content-Length: -1\r\n\r\n", 400},
		{"a body of two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"a body that is said to be endless", head + "Content-Length: 9223372036854775807\r\n\r\n{", 413},
		{"a chunk that is none", head + "Transfer-Encoding: chunked\r\n\r\nmany\r\n{}\r\n0\r\n\r\n", 400},
		{"no HTTP", "hello\r\n\r\n", 400},
		{"two answers for one", head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			must(t, err)
			defer func() { _ = conn.Close() }()
			must(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
			_, err = io.WriteString(conn, c.text)
			must(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if c.status == 0 {
				if err == nil && resp.StatusCode < 400 {
					t.Errorf("it is answered %d", resp.StatusCode)
				}
				if err != nil && !isClosed(err) {
					t.Errorf("the connection is still there: %v", err)
				}
				return
			}
			must(t, err)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			_ = resp.Body.Close()
		})
	}
}

// isClosed tells an end of the connection from a deadline.
func isClosed(err error) bool {
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
