package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestSubscriberAway has a subscriber be away for the whole of ten operations: back at its address it is told of all of them,
// in order, and nobody has waited for it meanwhile.
func TestSubscriberAway(t *testing.T) {
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{loopbackCallbacks, "VNFM_NOTIFY_RETRY_MIN=50ms", "VNFM_NOTIFY_RETRY_MAX=500ms"}})
	own := ourCluster(t)
	pkg, err := l.api.Onboard(ctx, own.zip)
	must(t, err)
	away, present := newSubscriber(t), newSubscriber(t)
	for _, s := range []*subscriber{away, present} {
		_, err := l.api.Subscribe(ctx, s.URL)
		must(t, err)
	}
	i, err := l.api.CreateInstance(ctx, pkg.VnfdId)
	must(t, err)
	const created = "VnfIdentifierCreationNotification"
	away.lines(ctx, t, i.Id, created)
	away.Close()

	want := []string{created}
	var ops []string
	for n := range 10 {
		op, err := l.api.Modify(ctx, i.Id, map[string]any{"metadata": map[string]any{"turn": fmt.Sprint(n)}})
		must(t, err)
		done, err := l.api.AwaitOpOcc(ctx, op)
		must(t, err)
		if done.OperationState != sol003.LcmOperationStateCompleted {
			t.Fatalf("operation %d is %s", n, done.OperationState)
		}
		ops = append(ops, op)
		want = append(want, "MODIFY_INFO PROCESSING", "MODIFY_INFO COMPLETED")
	}
	must(t, l.api.DeleteInstance(ctx, i.Id))
	const deleted = "VnfIdentifierDeletionNotification"
	want = append(want, deleted)
	if diff := cmp.Diff(want, present.lines(ctx, t, i.Id, deleted)); diff != "" {
		t.Errorf("who was there was told (- want, + got):\n%s", diff)
	}
	if told := away.about(i.Id); len(told) != 1 {
		t.Errorf("who was away was told %d things", len(told))
	}

	address := away.Listener.Addr().String()
	again, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	must(t, err)
	back := httptest.NewUnstartedServer(http.HandlerFunc(away.take))
	must(t, back.Listener.Close())
	back.Listener = again
	back.Start()
	t.Cleanup(back.Close)
	if diff := cmp.Diff(want, away.lines(ctx, t, i.Id, deleted)); diff != "" {
		t.Errorf("who was away was told (- want, + got):\n%s", diff)
	}
	var told []string
	for _, n := range away.about(i.Id) {
		if n.op != "" {
			told = append(told, n.op)
		}
	}
	if diff := cmp.Diff(ops, slices.Compact(told)); diff != "" {
		t.Errorf("operations that were told of, in order (- want, + got):\n%s", diff)
	}
}
