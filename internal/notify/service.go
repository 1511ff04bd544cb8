// Package notify keeps subscriptions to notifications of the lifecycle of VNFs, and delivers what the store has put down
// for them (SOL003 v2.6.1 §5.4.18-20): at least once, in order for each subscription and VNF instance, and without an
// operation ever waiting for it.
package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// Subscriptions is where subscriptions are kept.
type Subscriptions interface {
	// CreateSubscription inserts a subscription. *lcm.SubscribedError: there is the same already.
	CreateSubscription(ctx context.Context, sub *lcm.Subscription) error
	// SameSubscription returns the id of the project's subscription with the same callback and filter, "" for none.
	SameSubscription(ctx context.Context, sub *lcm.Subscription) (string, error)
	// DeleteSubscription deletes a subscription with all that it has not been told yet. Not found.
	DeleteSubscription(ctx context.Context, s lcm.Scope, id string) error
}

// Service makes and deletes subscriptions.
type Service struct {
	cfg    Config
	caller *caller
	store  Subscriptions
	now    func() time.Time
	newID  func() string
	log    *slog.Logger
}

// NewService makes a Service. It fails when the files of the TLS configuration cannot be used.
func NewService(cfg Config, store Subscriptions, now func() time.Time, newID func() string, log *slog.Logger) (*Service, error) {
	cfg = cfg.withDefaults()
	caller, err := newCaller(cfg)
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, caller: caller, store: store, now: now, newID: newID, log: log}, nil
}

// Subscribe makes a subscription (SOL003 v2.6.1 §5.4.18.3.1) after a test of its callback, unless tests are switched
// off. raw is the request's body as it came, in which the authentication may stand under the name that Tacker has for it.
// Errors: *lcm.SubscribedError when the project has the same; invalid when the callback may not be called, cannot be
// authenticated to, or does not pass the test.
func (s *Service) Subscribe(ctx context.Context, scope lcm.Scope, req sol003.LccnSubscriptionRequest, raw json.RawMessage) (*lcm.Subscription, error) {
	sub := &lcm.Subscription{
		ID: s.newID(), ProjectID: scope.ProjectID, AllProjects: scope.Admin, CallbackURI: req.CallbackUri,
		Filter: req.Filter, Auth: req.Authentication, Created: s.now(),
	}
	if sub.Auth == nil {
		var other struct {
			Auth *sol003.SubscriptionAuthentication `json:"subscriptionAuthentication"`
		}
		if len(raw) > 0 && json.Unmarshal(raw, &other) != nil {
			return nil, lcm.Errorf(lcm.KindInvalid, "subscriptionAuthentication is not as it should be")
		}
		sub.Auth = other.Auth
	}
	u, err := url.Parse(sub.CallbackURI)
	if err != nil {
		return nil, lcm.Errorf(lcm.KindInvalid, "callbackUri is not a URI")
	}
	if err := s.cfg.Guard.Check(u); err != nil {
		return nil, lcm.Errorf(lcm.KindInvalid, "callbackUri may not be called: %w", err)
	}
	client, err := s.caller.client(sub)
	if err != nil {
		return nil, err
	}
	defer s.caller.forget(client)
	same, err := s.store.SameSubscription(ctx, sub)
	if err != nil {
		return nil, err
	}
	if same != "" {
		return nil, &lcm.SubscribedError{ID: same}
	}
	if s.cfg.TestCallback {
		if err := s.test(ctx, client, sub); err != nil {
			s.log.InfoContext(ctx, "a callback did not pass its test", "callback", shown(sub), "error", err)
			return nil, &lcm.Error{Kind: lcm.KindInvalid, Detail: "Failed to Test Notification", Err: err}
		}
	}
	if err := s.store.CreateSubscription(ctx, sub); err != nil {
		return nil, err
	}
	return sub, nil
}

// test calls the callback as SOL003 v2.6.1 §5.4.20.3.2 has it: GET is answered with 204.
func (s *Service) test(ctx context.Context, client *outbound.Client, sub *lcm.Subscription) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, sub.CallbackURI, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answered %d, not 204", resp.StatusCode)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, drain)
	return nil
}

// Unsubscribe deletes a subscription with all that it has not been told yet (SOL003 v2.6.1 §5.4.19.3.5). Not found.
func (s *Service) Unsubscribe(ctx context.Context, scope lcm.Scope, id string) error {
	return s.store.DeleteSubscription(ctx, scope, id)
}
