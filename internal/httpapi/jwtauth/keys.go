package jwtauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const (
	// keysFor is how long keys are used before they are looked up again: a key that the issuer has withdrawn is good for no
	// longer, unless the issuer cannot be reached.
	keysFor = 10 * time.Minute
	// keysGap is the shortest time between two look-ups, however many tokens name keys that nobody knows.
	keysGap = 5 * time.Second
	// maxKeys limits the issuer's answers, in bytes.
	maxKeys = 1 << 20
	// leastRSA is the least size of an RSA key, in bits (RFC 7518 §3.3).
	leastRSA = 2048
)

// keySet is the issuer's published keys. They are fetched when they are needed first, when they have become old, and
// when a token names one that is not among them, which is how issuers change keys.
type keySet struct {
	cfg     Config
	flights singleflight.Group

	mu      sync.Mutex
	url     string // of the keys, once it is known
	keys    []jose.JSONWebKey
	fetched time.Time // when keys were
	tried   time.Time // when keys were last asked for
	failure error     // of that
}

// find returns the public keys that a token with the key id and the algorithm may be signed by; several when it names
// none. Unavailable: there are no keys, and they cannot be fetched.
func (k *keySet) find(ctx context.Context, id, algorithm string) ([]any, error) {
	now := k.cfg.Now()
	k.mu.Lock()
	found, there := match(k.keys, id, algorithm), k.keys != nil
	old := now.Sub(k.fetched) >= keysFor
	recent := !k.tried.IsZero() && now.Sub(k.tried) < keysGap
	failure := k.failure
	k.mu.Unlock()
	if len(found) > 0 && !old {
		return found, nil
	}
	if !recent {
		_, failure, _ = k.flights.Do("", func() (any, error) {
			// Several callers may wait for this one answer: it ends by its own time, not by the first caller's.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
			defer cancel()
			return nil, k.fetch(ctx)
		})
		k.mu.Lock()
		found, there = match(k.keys, id, algorithm), k.keys != nil
		k.mu.Unlock()
	}
	if !there && failure != nil {
		return nil, lcm.Errorf(lcm.KindUnavailable, "The keys of the token issuer %s cannot be had at the moment: %w",
			k.cfg.Issuer, failure)
	}
	return found, nil // an issuer that is away does not make its tokens bad
}

// match returns the keys that verify signatures of the algorithm.
func match(keys []jose.JSONWebKey, id, algorithm string) []any {
	var out []any
	for _, key := range keys {
		if id != "" && key.KeyID != id || key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != algorithm {
			continue
		}
		fits := false
		switch public := key.Key.(type) {
		case *rsa.PublicKey:
			fits = public.N.BitLen() >= leastRSA && (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS"))
		case *ecdsa.PublicKey:
			fits = strings.HasPrefix(algorithm, "ES")
		case ed25519.PublicKey:
			fits = algorithm == "EdDSA"
		}
		if fits {
			out = append(out, key.Key)
		}
	}
	return out
}

// fetch looks the keys up and keeps them; old ones stay when it fails.
func (k *keySet) fetch(ctx context.Context) error {
	keys, err := k.download(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried, k.failure = k.cfg.Now(), err
	if err == nil {
		k.keys, k.fetched = keys, k.tried
	}
	return err
}

func (k *keySet) download(ctx context.Context) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	url := k.url
	k.mu.Unlock()
	if url == "" {
		url = k.cfg.JWKSURL
	}
	if url == "" {
		var metadata struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		if err := k.get(ctx, strings.TrimRight(k.cfg.Issuer, "/")+"/.well-known/openid-configuration", &metadata); err != nil {
			return nil, err
		}
		if metadata.Issuer != k.cfg.Issuer || metadata.JWKSURI == "" {
			return nil, fmt.Errorf("the issuer's metadata are of %q and name the keys %q", metadata.Issuer, metadata.JWKSURI)
		}
		url = metadata.JWKSURI
	}
	// Keys of types that are not known here are no reason to refuse the others.
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, url, &set); err != nil {
		return nil, err
	}
	keys := []jose.JSONWebKey{}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && key.IsPublic() && key.Valid() {
			keys = append(keys, key)
		}
	}
	k.mu.Lock()
	k.url = url
	k.mu.Unlock()
	return keys, nil
}

func (k *keySet) get(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := k.cfg.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", url, res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxKeys)).Decode(into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	return nil
}
