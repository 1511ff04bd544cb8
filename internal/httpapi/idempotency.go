package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxIdempotencyKey is how long an Idempotency-Key may be, in characters.
const maxIdempotencyKey = 255

// keyed reads the Idempotency-Key of a POST, and leaves it with a fingerprint of the request for whoever stores its
// effect.
func (s *server) keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := r.Header.Values("Idempotency-Key")
		if r.Method != http.MethodPost || len(keys) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if len(keys) > 1 || !isKey(keys[0]) {
			s.fail(w, r, lcm.Errorf(lcm.KindInvalid,
				"Malformed Idempotency-Key header: it should be one key of 1 to %d printable ASCII characters.", maxIdempotencyKey))
			return
		}
		c := callOf(r.Context())
		c.request.Fingerprint = s.fingerprint(r.Method, r.URL.Path, c.scope.ProjectID, string(c.raw))
		c.request.Key = keys[0]
		next.ServeHTTP(w, r)
	})
}

func isKey(key string) bool {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxIdempotencyKey
}

// fingerprint digests what makes two requests the same, under a key: bodies hold secrets, and who reads the digests must not
// be able to try guesses. Each part goes in with its length.
func (s *server) fingerprint(parts ...string) []byte {
	h := hmac.New(sha256.New, s.cfg.MarkerKey)
	for _, p := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p)))) // never fails (hash.Hash)
		_, _ = h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// again answers a request whose Idempotency-Key has had its effect already as the first was answered; ok is false when
// it has not. A request that failed now may be such a one too: the first has changed what it would need.
func (s *server) again(r *http.Request, err error) (answer *reply, ok bool, failure error) {
	c, there := r.Context().Value(callKey{}).(*call)
	if !there || c.request == nil || c.request.Key == "" {
		return nil, false, err
	}
	var first *lcm.RepeatedError
	if !errors.As(err, &first) && s.cfg.Requests != nil && problemOf(err).Status < http.StatusInternalServerError {
		if looked := s.cfg.Requests.Repeated(r.Context(), c.request); looked != nil {
			err = looked
		}
	}
	if !errors.As(err, &first) {
		return nil, false, err
	}
	answer, err = s.replay(r.Context(), c, chi.RouteContext(r.Context()).RoutePattern(), first)
	return answer, err == nil, err
}

// replay builds the answer of a route's first request from what it made.
func (s *server) replay(ctx context.Context, c *call, route string, first *lcm.RepeatedError) (*reply, error) {
	for _, res := range []*resource{instances, packages, subscriptions} {
		if route == res.path {
			variant := ""
			if res == packages {
				variant = packageVariant(first.Body)
			}
			return s.created(res, first, variant), nil
		}
	}
	switch route {
	case vimsPath:
		vim, err := s.deps.VIMs.Get(ctx, c.scope, first.ResourceID)
		if err != nil {
			return nil, err
		}
		return jsonReply(http.StatusCreated, vimEnvelope(vim, nil))
	case packages.path + "/{vnfPkgId}/package_content/upload_from_uri":
		return &reply{status: http.StatusAccepted}, nil
	case opOccs.path + "/{vnfLcmOpOccId}/fail":
		return &reply{status: http.StatusOK, etag: etag(first.Version, ""),
			body: opOccs.appendRepresentation(nil, s.endpoint, first.ResourceID, first.Body, selection{})}, nil
	default: // a task: of an instance, answered with its op occ, or of the op occ itself
		return &reply{status: http.StatusAccepted, location: s.cfg.EndpointURL + opOccs.path + "/" + first.ResourceID}, nil
	}
}

// created answers the creation of a resource.
func (s *server) created(res *resource, first *lcm.RepeatedError, variant string) *reply {
	return &reply{
		status: http.StatusCreated, etag: etag(first.Version, variant),
		location: s.cfg.EndpointURL + res.path + "/" + first.ResourceID,
		body:     res.appendRepresentation(nil, s.endpoint, first.ResourceID, first.Body, selection{}),
	}
}
