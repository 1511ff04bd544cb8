package harness

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// Find returns the simulated cloud's stack of a VNF instance, nil when there is none that lives.
func (c *Cluster) Find(instanceID string) *vimsim.StackState {
	for _, s := range c.Sim.Cloud.State().Stacks {
		if s.Name == "vnflcm_"+instanceID && s.Status != "DELETE_COMPLETE" {
			return &s
		}
	}
	return nil
}

// Token logs in to the simulated Keystone and returns a token of the project that VIMs are registered with.
func (c *Cluster) Token(ctx context.Context) (string, error) {
	return c.TokenOf(ctx, User, Password, Project)
}

// TokenOf logs in to the simulated Keystone as a user of it, and returns a token of the project.
func (c *Cluster) TokenOf(ctx context.Context, user, password, project string) (string, error) {
	domain := map[string]any{"name": "Default"}
	r, err := NewClient(c.Sim.AuthURL).Call(ctx, http.MethodPost, "/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": user, "password": password, "domain": domain},
		}},
		"scope": map[string]any{"project": map[string]any{"name": project, "domain": domain}},
	}}, nil)
	if err != nil {
		return "", fmt.Errorf("log in to the simulated Keystone as %s: %w", user, err)
	}
	return r.Header.Get("X-Subject-Token"), nil
}

// NetworkID asks the simulated Neutron for the id of a network.
func (c *Cluster) NetworkID(ctx context.Context, name string) (string, error) {
	token, err := c.Token(ctx)
	if err != nil {
		return "", err
	}
	neutron := NewClient(c.Sim.URL + "/network/v2.0")
	neutron.Token = token
	var out struct {
		Networks []struct {
			ID string `json:"id"`
		} `json:"networks"`
	}
	if _, err := neutron.Call(ctx, http.MethodGet, "/networks?name="+url.QueryEscape(name), nil, &out); err != nil {
		return "", fmt.Errorf("list networks: %w", err)
	}
	if len(out.Networks) != 1 {
		return "", fmt.Errorf("there are %d networks of the name %s", len(out.Networks), name)
	}
	return out.Networks[0].ID, nil
}
