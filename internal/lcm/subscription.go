package lcm

import (
	"context"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Subscription is a subscription to notifications of the lifecycle of VNFs (SOL003 v2.6.1 §5.5.2.16) with what their
// delivery needs.
type Subscription struct {
	ID          string
	ProjectID   string
	AllProjects bool // made by an administrator: told of every project's instances
	CallbackURI string
	Filter      *sol003.LifecycleChangeNotificationsFilter
	// Auth is how the callback knows us: sealed at rest, never answered. nil: not at all.
	Auth    *sol003.SubscriptionAuthentication `json:"-"`
	Version int64                              // the ETag
	Created time.Time
}

// Representation returns the subscription as the API shows it, without _links.
func (s *Subscription) Representation() *sol003.LccnSubscription {
	r := &sol003.LccnSubscription{Id: s.ID, CallbackUri: s.CallbackURI, Filter: s.Filter}
	if r.Filter == nil {
		r.Filter = &sol003.LifecycleChangeNotificationsFilter{}
	}
	return r
}

// SubscribedError says that there is a subscription with the same callback and filter already: the answer is 303 with
// its address (SOL003 v2.6.1 §5.4.18.3.1).
type SubscribedError struct {
	ID string
}

// Error implements error.
func (e *SubscribedError) Error() string { return "there is such a subscription already: " + e.ID }

// Delivery is a notification that a subscription has still to be told of.
type Delivery struct {
	Seq            int64
	InstanceID     string
	Attempts       int       // how often it has been tried
	NextAt         time.Time // when it may be tried next; zero: at once
	NotificationID string
	OpOccID        string    // "" in a notification of an identifier
	At             time.Time // when it happened
	Body           []byte    // the notification without id, subscriptionId, timeStamp and _links: one JSON object
}

// DeliverySession is a node's right to deliver to subscriptions. It is lost with the session that it is made of: then
// others take over, and whatever is under way must end. Its methods are for one goroutine.
type DeliverySession interface {
	// Pending waits until there may be something to deliver, or wait has passed, and returns the subscriptions for which
	// there is and that are this session's: what nobody serves becomes this session's. An error means that the session is
	// lost.
	Pending(ctx context.Context, wait time.Duration) ([]string, error)
	// Release leaves a subscription to whoever wants it.
	Release(ctx context.Context, subscriptionID string) error
	// Close gives everything up.
	Close(ctx context.Context)
}
