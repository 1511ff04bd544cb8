package openstack

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// subscriber takes every notification, and keeps the states of op occs in the order in which it was told of them.
type subscriber struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string][]string // states, by op occ
	seen map[string]bool     // ids of notifications
	news chan struct{}       // closed, and made anew, with every notification
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	s := &subscriber{told: map[string][]string{}, seen: map[string]bool{}, news: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.Close)
	return s
}

func (s *subscriber) take(w http.ResponseWriter, r *http.Request) {
	var n struct {
		ID             string `json:"id"`
		OpOcc          string `json:"vnfLcmOpOccId"`
		OperationState string `json:"operationState"`
	}
	if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&n) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n.OpOcc != "" {
		s.mu.Lock()
		if !s.seen[n.ID] { // it may be delivered again
			s.seen[n.ID] = true
			s.told[n.OpOcc] = append(s.told[n.OpOcc], n.OperationState)
			close(s.news)
			s.news = make(chan struct{})
		}
		s.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

// states returns what was told of an op occ, and a channel that is closed when there is more of anything.
func (s *subscriber) states(opOcc string) ([]string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[opOcc]), s.news
}
