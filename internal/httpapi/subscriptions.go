package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vnflcmapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Subscriptions to notifications of lifecycle changes (SOL003 v2.6.1 §5.4.18-19).

func (v vnflcm) CreateSubscription(ctx context.Context, req vnflcmapi.CreateSubscriptionRequestObject) (vnflcmapi.CreateSubscriptionResponseObject, error) {
	c := callOf(ctx)
	sub, err := v.deps.Subscriptions.Subscribe(ctx, c.scope, *req.Body, c.raw)
	var same *lcm.SubscribedError
	if errors.As(err, &same) {
		// A request that comes again finds what it has made itself.
		first, ok, failure := v.again(c.req, lcm.Errorf(lcm.KindConflict, "%w", err))
		if ok {
			return response{first}, nil
		}
		if !errors.As(failure, &same) { // its key was another request's
			return nil, failure
		}
		return response{&reply{status: http.StatusSeeOther, location: v.cfg.EndpointURL + subscriptions.path + "/" + same.ID}}, nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(sub.Representation())
	if err != nil {
		return nil, fmt.Errorf("write subscription %s: %w", sub.ID, err)
	}
	return response{&reply{
		status: http.StatusCreated, etag: etag(sub.Version, ""), location: v.cfg.EndpointURL + subscriptions.path + "/" + sub.ID,
		body: subscriptions.appendRepresentation(nil, v.endpoint, sub.ID, raw, selection{}),
	}}, nil
}

func (v vnflcm) ListSubscriptions(ctx context.Context, _ vnflcmapi.ListSubscriptionsRequestObject) (vnflcmapi.ListSubscriptionsResponseObject, error) {
	return v.list(ctx, subscriptions, v.deps.Reader.Subscriptions)
}

func (v vnflcm) GetSubscription(ctx context.Context, req vnflcmapi.GetSubscriptionRequestObject) (vnflcmapi.GetSubscriptionResponseObject, error) {
	b, err := v.deps.Reader.SubscriptionBody(ctx, callOf(ctx).scope, req.SubscriptionId)
	if err != nil {
		return nil, err
	}
	return v.show(subscriptions, b, req.Params.IfNoneMatch, ""), nil
}

// DeleteSubscription checks If-Match against the subscription as it is: it never changes.
func (v vnflcm) DeleteSubscription(ctx context.Context, req vnflcmapi.DeleteSubscriptionRequestObject) (vnflcmapi.DeleteSubscriptionResponseObject, error) {
	scope := callOf(ctx).scope
	if req.Params.IfMatch != "" {
		b, err := v.deps.Reader.SubscriptionBody(ctx, scope, req.SubscriptionId)
		if err != nil {
			return nil, err
		}
		if !matches(req.Params.IfMatch, etag(b.Version, ""), false) {
			return nil, errPrecondition(req.Params.IfMatch)
		}
	}
	if err := v.deps.Subscriptions.Unsubscribe(ctx, scope, req.SubscriptionId); err != nil {
		return nil, err
	}
	return response{&reply{status: http.StatusNoContent}}, nil
}
