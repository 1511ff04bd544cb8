// Package jwtauth verifies OAuth 2.0 access tokens that are JSON Web Tokens (RFC 9068), by the keys that their issuer
// publishes.
package jwtauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Config says whose tokens are taken.
type Config struct {
	Issuer   string // the iss claim that tokens must have
	Audience string // what the aud claim must name; "" takes any
	// JWKSURL is where the issuer's keys are; by default the issuer's metadata tell (RFC 8414, OpenID Connect Discovery).
	JWKSURL    string
	Algorithms []string      // of signatures; Algorithms() by default
	Skew       time.Duration // how far the clocks may be apart
	HTTP       *http.Client  // a client of 10 s when nil
	Now        func() time.Time
}

// asymmetric are the algorithms that there are: with one of a shared key, whoever verifies could also sign.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Algorithms returns the names of the algorithms that a Config may name.
func Algorithms() []string { return append([]string(nil), asymmetric...) }

// maxToken limits a token, in bytes.
const maxToken = 16 << 10

// Claims is what a token says.
type Claims struct {
	Subject string
	Scopes  []string // of scope (RFC 9068) or scp, as some issuers call it
	All     map[string]any
}

// Text returns the text at a claim's path, whose names are joined by dots; "" when there is none.
func (c Claims) Text(path string) string {
	if text, ok := c.All[path].(string); ok { // a name may have dots of its own, as URLs do
		return text
	}
	var at any = c.All
	for name := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[name]
	}
	text, _ := at.(string)
	return text
}

// Verifier verifies tokens. Make one with New.
type Verifier struct {
	cfg  Config
	algs []jose.SignatureAlgorithm
	keys *keySet
}

// New makes a Verifier; the issuer is not asked for its keys before the first token comes. Errors: an algorithm that is
// unknown or of a shared key.
func New(cfg Config) (*Verifier, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	if len(cfg.Algorithms) == 0 {
		cfg.Algorithms = asymmetric
	}
	v := &Verifier{cfg: cfg, keys: &keySet{cfg: cfg}}
	for _, name := range cfg.Algorithms {
		known := false
		for _, a := range asymmetric {
			known = known || a == name
		}
		if !known {
			return nil, fmt.Errorf("%q is none of the algorithms %s", name, strings.Join(asymmetric, ", "))
		}
		v.algs = append(v.algs, jose.SignatureAlgorithm(name))
	}
	return v, nil
}

func refused(format string, args ...any) error {
	return lcm.Errorf(lcm.KindUnauthorized, format, args...)
}

// Verify tells what a token says whose signature, issuer, audience and times are right. Unauthorized: it is not one that
// we take. Unavailable: the issuer's keys cannot be had.
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, refused("The token is longer than %d bytes.", maxToken)
	}
	parsed, err := jwt.ParseSigned(token, v.algs)
	if err != nil || len(parsed.Headers) != 1 {
		return Claims{}, refused("The token is no JSON Web Token signed with an algorithm that is taken here: %w", err)
	}
	head := parsed.Headers[0]
	candidates, err := v.keys.find(ctx, head.KeyID, head.Algorithm)
	if err != nil {
		return Claims{}, err
	}
	for _, key := range candidates {
		var std jwt.Claims
		var all map[string]any
		if err = parsed.Claims(key, &std, &all); err == nil {
			return v.check(std, all)
		}
	}
	return Claims{}, refused("The token's signature is by no key of %s.", v.cfg.Issuer)
}

func (v *Verifier) check(std jwt.Claims, all map[string]any) (Claims, error) {
	if std.Expiry == nil {
		return Claims{}, refused("The token does not say when it expires.")
	}
	want := jwt.Expected{Issuer: v.cfg.Issuer, Time: v.cfg.Now()}
	if v.cfg.Audience != "" {
		want.AnyAudience = jwt.Audience{v.cfg.Audience}
	}
	switch err := std.ValidateWithLeeway(want, v.cfg.Skew); {
	case errors.Is(err, jwt.ErrExpired):
		return Claims{}, refused("The token has expired.")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return Claims{}, refused("The token is not valid yet.")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Claims{}, refused("The token is not meant for this server.")
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return Claims{}, refused("The token is of another issuer.")
	case err != nil:
		return Claims{}, refused("The token is not valid: %w", err)
	}
	c := Claims{Subject: std.Subject, All: all}
	for _, name := range []string{"scope", "scp"} {
		switch scopes := all[name].(type) {
		case string:
			c.Scopes = append(c.Scopes, strings.Fields(scopes)...)
		case []any:
			for _, s := range scopes {
				if text, ok := s.(string); ok {
					c.Scopes = append(c.Scopes, text)
				}
			}
		}
	}
	return c, nil
}
