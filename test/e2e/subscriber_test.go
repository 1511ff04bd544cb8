package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// loopbackCallbacks lets a server call subscribers on this machine.
const loopbackCallbacks = "VNFM_NOTIFY_ALLOW=127.0.0.0/8"

// subscriber is an NFVO's callback: it passes the test, and keeps what it is told.
type subscriber struct {
	*httptest.Server
	user, password string // asked for when not empty

	mu   sync.Mutex
	told []told
}

// told is one notification as it came in.
type told struct {
	id, kind, instance, op, operation, state string
	body                                     map[string]json.RawMessage
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	s := &subscriber{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.Close)
	return s
}

func (s *subscriber) take(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if s.user != "" && (user != s.user || password != s.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="subscriber"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		raw, err := io.ReadAll(r.Body)
		n := told{}
		if err == nil {
			err = json.Unmarshal(raw, &n.body)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		n.id, n.kind, n.instance, n.op = n.text("id"), n.text("notificationType"), n.text("vnfInstanceId"), n.text("vnfLcmOpOccId")
		n.operation, n.state = n.text("operation"), n.text("operationState")
		s.mu.Lock()
		s.told = append(s.told, n)
		s.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

func (n told) text(attribute string) string {
	var text string
	_ = json.Unmarshal(n.body[attribute], &text)
	return text
}

// line says in short what a notification tells.
func (n told) line() string {
	switch n.kind {
	case "VnfLcmOperationOccurrenceNotification":
		return n.operation + " " + n.state
	default:
		return n.kind
	}
}

// about lists what has come in about an instance, without repetitions: delivery is at least once.
func (s *subscriber) about(instance string) []told {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []told
	for _, n := range s.told {
		if n.instance == instance && !slices.ContainsFunc(out, func(o told) bool { return o.id == n.id }) {
			out = append(out, n)
		}
	}
	return out
}

// lines waits until the subscriber has been told the last line about the instance, and returns all.
func (s *subscriber) lines(ctx context.Context, t *testing.T, instance, last string) []string {
	t.Helper()
	var out []string
	err := harness.Await(ctx, "the subscriber has been told "+last, func(context.Context) (bool, error) {
		out = nil
		for _, n := range s.about(instance) {
			out = append(out, n.line())
		}
		return len(out) > 0 && out[len(out)-1] == last, nil
	})
	if err != nil {
		t.Fatalf("%v; it was told %q", err, out)
	}
	return out
}

// checkBody holds a notification against SOL003 v2.6.1 §5.5.2.17 to 19.
func (n told) checkBody(t *testing.T, endpoint, subscription string) {
	t.Helper()
	must1 := func(ok bool, format string, args ...any) {
		t.Helper()
		if !ok {
			t.Errorf("notification %s (%s): %s", n.id, n.line(), fmt.Sprintf(format, args...))
		}
	}
	_, err := uuid.Parse(n.id)
	must1(err == nil, "the id is none")
	must1(n.text("subscriptionId") == subscription, "it is of subscription %s, want %s", n.text("subscriptionId"), subscription)
	at, err := time.Parse(time.RFC3339Nano, n.text("timeStamp"))
	must1(err == nil && time.Since(at) < testTime && time.Until(at) < time.Second, "timeStamp is %s", n.text("timeStamp"))
	var links map[string]struct{ Href string }
	must1(json.Unmarshal(n.body["_links"], &links) == nil, "_links are %s", n.body["_links"])
	want := map[string]string{
		"vnfInstance":  endpoint + "/vnflcm/v1/vnf_instances/" + n.instance,
		"subscription": endpoint + "/vnflcm/v1/subscriptions/" + subscription,
	}
	if n.op != "" {
		want["vnfLcmOpOcc"] = endpoint + "/vnflcm/v1/vnf_lcm_op_occs/" + n.op
	}
	for name, href := range want {
		must1(links[name].Href == href, "link %s leads to %q, want %q", name, links[name].Href, href)
	}
	must1(len(links) == len(want), "it has the links %v", links)
	if n.kind != "VnfLcmOperationOccurrenceNotification" {
		return
	}
	live := slices.Contains([]string{"STARTING", "PROCESSING", "ROLLING_BACK"}, n.state)
	status := "RESULT"
	if live {
		status = "START"
	}
	must1(n.text("notificationStatus") == status, "notificationStatus is %s, want %s", n.text("notificationStatus"), status)
	must1(string(n.body["isAutomaticInvocation"]) == "false", "isAutomaticInvocation is %s", n.body["isAutomaticInvocation"])
	_, err = uuid.Parse(n.op)
	must1(err == nil, "vnfLcmOpOccId is %q", n.op)
	for _, a := range []string{"affectedVnfcs", "affectedVirtualLinks", "affectedVirtualStorages", "changedInfo", "changedExtConnectivity", "error"} {
		if _, there := n.body[a]; there && live {
			must1(false, "it has %s, and nothing has come of it yet", a)
		}
	}
	failed := slices.Contains([]string{"FAILED_TEMP", "FAILED", "ROLLED_BACK"}, n.state)
	_, hasError := n.body["error"]
	must1(hasError == failed, "error is %s", n.body["error"])
}
