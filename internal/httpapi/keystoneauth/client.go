// Package keystoneauth validates Keystone tokens with plain HTTP calls to the Identity API v3.
package keystoneauth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Identity is who holds a token and where.
type Identity struct {
	UserID    string
	UserName  string
	ProjectID string // empty when the token is not scoped to a project
	Roles     []string
	ExpiresAt time.Time
}

// Config says how to reach Keystone and as whom to ask it.
type Config struct {
	AuthURL           string // with or without /v3
	Username          string
	Password          lcm.Secret
	UserDomainName    string // "Default" when empty
	ProjectName       string
	ProjectDomainName string       // "Default" when empty
	HTTP              *http.Client // a client of 10 s when nil
}

// Client asks Keystone about tokens, with a token of its own that it renews when Keystone no longer takes it.
type Client struct {
	cfg  Config
	base string

	mu    sync.Mutex
	token string
}

// New makes a Client; nothing is asked yet.
func New(cfg Config) *Client {
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	if cfg.UserDomainName == "" {
		cfg.UserDomainName = "Default"
	}
	if cfg.ProjectDomainName == "" {
		cfg.ProjectDomainName = "Default"
	}
	base := strings.TrimRight(cfg.AuthURL, "/")
	if !strings.HasSuffix(base, "/v3") {
		base += "/v3"
	}
	return &Client{cfg: cfg, base: base}
}

const maxAnswer = 4 << 20

// Validate tells who holds the token (Identity API v3, GET /v3/auth/tokens). Unauthorized: nobody. Unavailable: Keystone
// does not answer, or does not let us ask.
func (c *Client) Validate(ctx context.Context, token string) (Identity, error) {
	c.mu.Lock()
	own := c.token
	c.mu.Unlock()
	for range 2 {
		if own == "" {
			var err error
			if own, err = c.login(ctx); err != nil {
				return Identity{}, err
			}
		}
		id, status, err := c.ask(ctx, own, token)
		if err != nil || status == http.StatusOK {
			return id, err
		}
		switch status {
		case http.StatusNotFound:
			return Identity{}, lcm.Errorf(lcm.KindUnauthorized, "the token is not valid")
		case http.StatusUnauthorized:
			own = "" // our own token is not valid any more
		default:
			return Identity{}, lcm.Errorf(lcm.KindUnavailable, "Keystone at %s answered %d when asked about a token.", c.base, status)
		}
	}
	return Identity{}, lcm.Errorf(lcm.KindUnavailable, "Keystone at %s does not take the token that it gave to %s.", c.base, c.cfg.Username)
}

type tokenAnswer struct {
	Token struct {
		ExpiresAt time.Time `json:"expires_at"`
		User      struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"user"`
		Project struct {
			ID string `json:"id"`
		} `json:"project"`
		Roles []struct {
			Name string `json:"name"`
		} `json:"roles"`
	} `json:"token"`
}

func (c *Client) ask(ctx context.Context, own, token string) (Identity, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/auth/tokens?nocatalog", nil)
	if err != nil {
		return Identity{}, 0, fmt.Errorf("ask Keystone at %s about a token: %w", c.base, err)
	}
	// A token may hold anything that its sender likes.
	if strings.ContainsAny(token, "\r\n\x00") {
		return Identity{}, 0, lcm.Errorf(lcm.KindUnauthorized, "the token is not valid")
	}
	req.Header.Set("X-Auth-Token", own)
	req.Header.Set("X-Subject-Token", token)
	req.Header.Set("Accept", "application/json")
	res, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return Identity{}, 0, lcm.Errorf(lcm.KindUnavailable, "Keystone at %s does not answer: %w", c.base, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection can be used again
		return Identity{}, res.StatusCode, nil
	}
	var a tokenAnswer
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&a); err != nil {
		return Identity{}, 0, lcm.Errorf(lcm.KindUnavailable, "Keystone at %s answered what is no token: %w", c.base, err)
	}
	id := Identity{UserID: a.Token.User.ID, UserName: a.Token.User.Name, ProjectID: a.Token.Project.ID, ExpiresAt: a.Token.ExpiresAt}
	for _, r := range a.Token.Roles {
		id.Roles = append(id.Roles, r.Name)
	}
	return id, http.StatusOK, nil
}

// login gets a token of our own by password and keeps it.
func (c *Client) login(ctx context.Context) (string, error) {
	domain := func(name string) map[string]any { return map[string]any{"name": name} }
	body, err := json.Marshal(map[string]any{"auth": map[string]any{
		"identity": map[string]any{
			"methods": []string{"password"},
			"password": map[string]any{"user": map[string]any{
				"name": c.cfg.Username, "password": c.cfg.Password.Reveal(), "domain": domain(c.cfg.UserDomainName)}},
		},
		"scope": map[string]any{"project": map[string]any{"name": c.cfg.ProjectName, "domain": domain(c.cfg.ProjectDomainName)}},
	}})
	if err != nil {
		return "", fmt.Errorf("write the log-in to Keystone at %s: %w", c.base, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/auth/tokens?nocatalog", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("log in to Keystone at %s: %w", c.base, err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return "", lcm.Errorf(lcm.KindUnavailable, "Keystone at %s does not answer: %w", c.base, err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection can be used again
	token := res.Header.Get("X-Subject-Token")
	if res.StatusCode != http.StatusCreated || token == "" {
		return "", lcm.Errorf(lcm.KindUnavailable, "Keystone at %s refused the log-in of %s with %d.", c.base, c.cfg.Username, res.StatusCode)
	}
	c.mu.Lock()
	c.token = token
	c.mu.Unlock()
	return token, nil
}
