package lcm

import "context"

// Request is what is known of the API request on whose account something is done: for the audit trail and for
// Idempotency-Key. The store records both in the transaction that has the effect.
type Request struct {
	ID      string // the request's own id, as in X-Openstack-Request-Id
	Action  string // method and route: "POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/scale"
	Address string // the caller's IP address
	Caller  Scope  // on whose behalf the request is made
	// Key is the Idempotency-Key's value, "" when there is none; Fingerprint is a digest of the request, which must be the
	// same when the key comes again.
	Key         string
	Fingerprint []byte
}

type requestKey struct{}

// WithRequest returns a context that carries the request.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf returns the context's request; nil when what runs is nobody's request.
func RequestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// RepeatedError says that a request with the same Idempotency-Key has had its effect already: nothing has been done now, and
// the answer is that of the first.
type RepeatedError struct {
	ResourceID string // what the first request made: an instance, an op occ, a subscription, a package
	Body       []byte // the representation that was answered then, without _links; nil for none
	Version    int64  // of that representation
}

// Error implements error.
func (r *RepeatedError) Error() string { return "repeated request; the first made " + r.ResourceID }
