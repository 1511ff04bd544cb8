package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/jwtauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TokenVerifier tells what an access token says. An *lcm.Error of kind unauthorized: it is not one that we take.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (jwtauth.Claims, error)
}

// BearerConfig says what a token's claims mean.
type BearerConfig struct {
	Scopes       map[string]lcm.Role // roles by scope; of several the highest counts
	UserClaim    string              // the claim that names the user; "sub" when empty
	ProjectClaim string              // the claim that names the project; "" for none
	Project      string              // of tokens without that claim; "" refuses them unless they are an administrator's
}

// Bearer knows callers by an OAuth 2.0 access token (RFC 6750; SOL013 v2.6.1 §8.3.4). Make one with NewBearer.
type Bearer struct {
	verifier TokenVerifier
	cfg      BearerConfig
	needed   string // the scopes that are known, for insufficient_scope
}

const bearerChallenge = `Bearer realm="vnfm"`

// NewBearer makes an Authenticator that has tokens verified by v.
func NewBearer(v TokenVerifier, cfg BearerConfig) *Bearer {
	if cfg.UserClaim == "" {
		cfg.UserClaim = "sub"
	}
	names := make([]string, 0, len(cfg.Scopes))
	for name := range cfg.Scopes {
		names = append(names, name)
	}
	slices.Sort(names)
	return &Bearer{verifier: v, cfg: cfg, needed: strings.Join(names, " ")}
}

// bearerError is a challenge that says what is wrong with the request or its token (RFC 6750 §3.1).
func bearerError(code, detail string) []string {
	quoted := strings.NewReplacer(`"`, "'", `\`, "/").Replace(detail)
	return []string{bearerChallenge + `, error="` + code + `", error_description="` + quoted + `"`}
}

// Authenticate implements Authenticator. A header that holds no token is invalid, a token that is not taken
// unauthorized, and one whose scopes give no role forbidden.
func (b *Bearer) Authenticate(r *http.Request) (lcm.Scope, error) {
	token, given := credentials(r, "Bearer")
	if !given {
		return lcm.Scope{}, &Unauthorized{Challenges: []string{bearerChallenge}, Detail: needsAuthentication, Absent: true}
	}
	if len(r.Header.Values("Authorization")) > 1 || !isToken68(token) {
		const detail = "Malformed Authorization header: it should be Bearer and one token."
		return lcm.Scope{}, &Unauthorized{Challenges: bearerError("invalid_request", detail), Detail: detail, Kind: lcm.KindInvalid}
	}
	claims, err := b.verifier.Verify(r.Context(), token)
	if lcm.Is(err, lcm.KindUnauthorized) {
		const detail = "The access token is expired, or not valid here."
		return lcm.Scope{}, &Unauthorized{Challenges: bearerError("invalid_token", detail), Detail: detail, Cause: err}
	}
	if err != nil {
		return lcm.Scope{}, err
	}
	return b.scope(claims)
}

func (b *Bearer) scope(claims jwtauth.Claims) (lcm.Scope, error) {
	role, ok := highest(claims.Scopes, b.cfg.Scopes)
	if !ok {
		const detail = "The access token has no scope that gives a role here."
		challenges := bearerError("insufficient_scope", detail)
		challenges[0] += `, scope="` + b.needed + `"`
		return lcm.Scope{}, &Unauthorized{Challenges: challenges, Detail: detail, Kind: lcm.KindForbidden}
	}
	s := granted(lcm.Scope{User: claims.Text(b.cfg.UserClaim), ProjectID: b.cfg.Project}, role)
	if b.cfg.ProjectClaim != "" {
		if project := claims.Text(b.cfg.ProjectClaim); project != "" {
			s.ProjectID = project
		}
	}
	if s.User == "" { // client credentials: the client is the user (RFC 9068 §2.2)
		if s.User = claims.Subject; s.User == "" {
			s.User = claims.Text("client_id")
		}
	}
	if s.ProjectID == "" && !s.Admin {
		return lcm.Scope{}, lcm.Errorf(lcm.KindForbidden, "The access token names no project.")
	}
	return s, nil
}

// isToken68 tells whether a text is what a Bearer token is made of (RFC 6750 §2.1).
func isToken68(text string) bool {
	body := strings.TrimRight(text, "=")
	if body == "" {
		return false
	}
	for _, c := range []byte(body) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}
