package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// subscriber takes every notification and keeps what it was told, by instance.
type subscriber struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string][]telling
}

// telling is one POST of a notification.
type telling struct {
	id string
	at time.Time
}

func newSubscriber() *subscriber {
	s := &subscriber{told: map[string][]telling{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		var n struct {
			ID, VnfInstanceID string
		}
		raw, err := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && (err != nil || json.Unmarshal(raw, &n) != nil) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			s.mu.Lock()
			s.told[n.VnfInstanceID] = append(s.told[n.VnfInstanceID], telling{n.ID, at})
			s.mu.Unlock()
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	return s
}

// about returns what was told about an instance, in order.
func (s *subscriber) about(instance string) []telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[instance])
}

// after returns when the first was told about an instance after t.
func (s *subscriber) after(instance string, t time.Time) (time.Time, bool) {
	for _, n := range s.about(instance) {
		if n.at.After(t) {
			return n.at, true
		}
	}
	return time.Time{}, false
}

// toldWithin is how long it may take until a subscriber has been told everything.
const toldWithin = 5 * time.Minute

// judgeNotifications sees that the outbox has each notification of an instance's history once, and that the subscriber
// has been told all of them in order. What comes again has the same id and is the one that came last, unless the
// database too has lost something: then it may be older.
func (l *lane) judgeNotifications(ctx context.Context, s *subject) error {
	rows, err := l.Notifications(ctx, s.id)
	if err != nil {
		return err
	}
	kinds := map[string]string{} // by id
	var ids, made []string
	for _, n := range rows {
		kind := n.Type
		if n.OpOccID != "" {
			var body sol003.VnfLcmOperationOccurrenceNotification
			if err := json.Unmarshal(n.Body, &body); err != nil {
				return fmt.Errorf("notification %s: %w", n.ID, err)
			}
			kind = fmt.Sprintf("%s %s %d %s", body.Operation, n.OpOccID, n.Seq, body.OperationState)
		}
		kinds[n.ID] = kind
		ids, made = append(ids, n.ID), append(made, kind)
	}
	if d := cmp.Diff(s.history, made); d != "" {
		return fmt.Errorf("the outbox does not have the notification of each state once (-want +got):\n%s", d)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toldWithin, fmt.Errorf("after %s a subscriber has not been told everything", toldWithin))
	defer cancel()
	var told []telling
	waited := harness.Await(ctx, "the subscriber has been told everything", func(context.Context) (bool, error) {
		told = l.told.about(s.id)
		return len(told) > 0 && told[len(told)-1].id == ids[len(ids)-1], nil
	})
	var got []string
	have := map[string]bool{}
	last := ""
	for _, n := range told {
		switch {
		case !have[n.id]:
			have[n.id] = true
			got = append(got, kinds[n.id])
		case n.id != last && !l.forgetful:
			return fmt.Errorf("the subscriber was told again of %s after %s", kinds[n.id], kinds[last])
		}
		last = n.id
	}
	if d := cmp.Diff(made, got); d != "" {
		return fmt.Errorf("the subscriber was not told everything in order (-want +got):\n%s", d)
	}
	return waited
}
