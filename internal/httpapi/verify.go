package httpapi

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Verifier compares what is recorded of VNF instances with what is there.
type Verifier interface {
	// Verify looks at an instance now, and keeps what it sees. Not found; conflict: it is not INSTANTIATED, or an operation is
	// at it; unsupported; terminal and retryable: its VIM refuses, or does not answer.
	Verify(ctx context.Context, s lcm.Scope, id string) (*lcm.Verification, error)
}

// Verifications reads what was last seen of instances.
type Verifications interface {
	// VerificationBody reads a Verification. Not found: also when nobody has looked.
	VerificationBody(ctx context.Context, s lcm.Scope, instanceID string) (lcm.Body, error)
	// Verifications lists Verifications.
	Verifications(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
}

// verifications are what was last seen of instances; each has its instance's id.
var verifications = &resource{path: "/vnfm/v1/verifications", schema: "Verification", strict: true, complex: []string{"differences"}}

// verifyPath is where an instance is verified now.
const verifyPath = "/vnfm/v1/vnf_instances/{vnfInstanceId}/verify"

// verification is a Verification (vnfm.yaml) that was made just now.
type verification struct {
	VnfInstanceID   string           `json:"vnfInstanceId"`
	VimID           string           `json:"vimId"`
	Result          string           `json:"result"`
	VerifiedAt      time.Time        `json:"verifiedAt"`
	DiffersSince    *time.Time       `json:"differsSince,omitempty"`
	DifferenceCount int              `json:"differenceCount"`
	Differences     []lcm.Difference `json:"differences"`
}

func verificationOf(v *lcm.Verification) verification {
	out := verification{
		VnfInstanceID: v.InstanceID, VimID: v.VimID, Result: "SAME", VerifiedAt: v.At.UTC(),
		DifferenceCount: len(v.Differences), Differences: []lcm.Difference{},
	}
	if len(v.Differences) > 0 {
		out.Result, out.Differences = "DIFFERS", v.Differences
	}
	if !v.Since.IsZero() {
		since := v.Since.UTC()
		out.DiffersSince = &since
	}
	return out
}

// verifyRoutes are those of the comparison with what is there, described by vnfm.yaml.
func (s *server) verifyRoutes(r chi.Router) {
	answered := func(answer func(r *http.Request) (writer, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			out, err := answer(r)
			if err == nil {
				err = out.write(w)
			}
			if err != nil {
				s.fail(w, r, err)
			}
		}
	}
	if s.deps.Verifier != nil {
		r.Get(verifyPath, answered(func(r *http.Request) (writer, error) {
			v, err := s.deps.Verifier.Verify(r.Context(), callOf(r.Context()).scope, chi.URLParam(r, "vnfInstanceId"))
			if err != nil {
				return nil, err
			}
			return jsonReply(http.StatusOK, verificationOf(v))
		}))
	}
	if s.deps.Verifications != nil {
		r.Get(verifications.path, answered(func(r *http.Request) (writer, error) {
			return s.list(r.Context(), verifications, s.deps.Verifications.Verifications)
		}))
		r.Get(verifications.path+"/{vnfInstanceId}", answered(func(r *http.Request) (writer, error) {
			b, err := s.deps.Verifications.VerificationBody(r.Context(), callOf(r.Context()).scope, chi.URLParam(r, "vnfInstanceId"))
			if err != nil {
				return nil, err
			}
			return s.show(verifications, b, "", ""), nil
		}))
	}
}
