package vim_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vim"
)

// TestWaysOfLoggingIn changes how a cluster is logged in to: what the cluster knew us by before is not kept beside the new
// way, which would be ignored then; what is only renewed leaves the others alone.
func TestWaysOfLoggingIn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type auth = map[string]any
	issuer := auth{"oidc_token_url": "https://i", "client_id": "c", "client_secret": "s", "username": "u", "password": "p"}
	with := func(m, more auth) auth {
		out := maps.Clone(m)
		maps.Copy(out, more)
		return out
	}
	for name, c := range map[string]struct{ stored, change, want auth }{
		"a token for a password":           {auth{"username": "u", "password": "p", "ssl_ca_cert": "ca"}, auth{"bearer_token": "t"}, auth{"bearer_token": "t", "ssl_ca_cert": "ca"}},
		"a token for a token":              {auth{"bearer_token": "t"}, auth{"bearer_token": "t2"}, auth{"bearer_token": "t2"}},
		"a token for a certificate":        {auth{"client_cert": "c", "client_key": "k"}, auth{"bearer_token": "t"}, auth{"bearer_token": "t"}},
		"a token beside a certificate":     {auth{"client_cert": "c", "client_key": "k", "bearer_token": "t"}, auth{"bearer_token": "t2"}, auth{"client_cert": "c", "client_key": "k", "bearer_token": "t2"}},
		"a token for an issuer":            {issuer, auth{"bearer_token": "t"}, auth{"bearer_token": "t"}},
		"a certificate for a token":        {auth{"bearer_token": "t"}, auth{"client_cert": "c", "client_key": "k"}, auth{"client_cert": "c", "client_key": "k"}},
		"a certificate, the token masked":  {auth{"bearer_token": "t"}, auth{"client_cert": "c", "client_key": "k", "bearer_token": "***"}, auth{"client_cert": "c", "client_key": "k"}},
		"another certificate":              {auth{"client_cert": "c", "client_key": "k"}, auth{"client_cert": "c2", "client_key": "k2"}, auth{"client_cert": "c2", "client_key": "k2"}},
		"an issuer for a token":            {auth{"bearer_token": "t"}, issuer, issuer},
		"an issuer, of the client":         {auth{"username": "u", "password": "p"}, auth{"oidc_token_url": "https://i", "client_id": "c", "client_secret": "s"}, auth{"oidc_token_url": "https://i", "client_id": "c", "client_secret": "s"}},
		"the password at the issuer":       {issuer, auth{"password": "p2"}, with(issuer, auth{"password": "p2"})},
		"user and password at the issuer":  {issuer, auth{"username": "u2", "password": "p2"}, with(issuer, auth{"username": "u2", "password": "p2"})},
		"a password for a token":           {auth{"bearer_token": "t"}, auth{"username": "u", "password": "p"}, auth{"username": "u", "password": "p"}},
		"what a client sends for nothing":  {auth{"bearer_token": "t"}, auth{"username": "None", "password": "None", "bearer_token": "t2"}, auth{"bearer_token": "t2"}},
		"what is taken away":               {auth{"bearer_token": "t", "client_cert": "c", "client_key": "k"}, auth{"bearer_token": "t2", "client_cert": nil, "client_key": nil}, auth{"bearer_token": "t2"}},
		"a password, the issuer is away":   {issuer, auth{"username": "u2", "password": "p2", "oidc_token_url": nil}, auth{"username": "u2", "password": "p2"}},
		"the authority only":               {auth{"bearer_token": "t"}, auth{"ssl_ca_cert": "ca"}, auth{"bearer_token": "t", "ssl_ca_cert": "ca"}},
		"all of it as it is shown, masked": {auth{"bearer_token": "t", "ssl_ca_cert": "ca"}, auth{"bearer_token": "***", "ssl_ca_cert": "ca"}, auth{"bearer_token": "t", "ssl_ca_cert": "ca"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, prober := newService(t, vim.Config{})
			prober.anything = true
			v := register(t, s, user, lcm.VIM{Name: "k", Type: lcm.VimKubernetes, AuthURL: "https://k", Auth: c.stored, Project: map[string]any{"name": "default"}})
			if _, err := s.Update(ctx, user, v.ID, lcm.VIMChange{Auth: c.change}); err != nil {
				t.Fatal(err)
			}
			target, err := s.Resolve(ctx, user, []sol003.VimConnectionInfo{{VimId: v.ID}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, target.Auth); diff != "" {
				t.Errorf("auth_cred (- want, + got):\n%s", diff)
			}
		})
	}
}

// TestCertificateInExtra: python-tackerclient can send a client certificate only in extra, from where it is taken.
func TestCertificateInExtra(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, _, prober := newService(t, vim.Config{})
	prober.anything = true
	v := register(t, s, user, lcm.VIM{
		Name: "k", Type: lcm.VimKubernetes, AuthURL: "https://k", Project: map[string]any{"name": "default"},
		Auth: map[string]any{"bearer_token": nil}, Extra: map[string]any{"client_cert": "CERT", "client_key": "KEY", "use_helm": true},
	})
	if v.Auth["client_cert"] != "CERT" || v.Auth["client_key"] != "***" {
		t.Errorf("auth_cred is shown as %v", v.Auth)
	}
	if diff := cmp.Diff(map[string]any{"use_helm": true}, v.Extra); diff != "" {
		t.Errorf("extra (- want, + got):\n%s", diff)
	}
	changed, err := s.Update(ctx, user, v.ID, lcm.VIMChange{Auth: map[string]any{"bearer_token": nil}, Extra: map[string]any{"client_cert": "CERT2", "client_key": "KEY2"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"use_helm": true}, changed.Extra); diff != "" {
		t.Errorf("extra after a change (- want, + got):\n%s", diff)
	}
	target, err := s.Resolve(ctx, user, []sol003.VimConnectionInfo{{VimId: v.ID}})
	if err != nil || target.Auth["client_cert"] != "CERT2" || target.Auth["client_key"] != "KEY2" {
		t.Errorf("drivers get %v (error: %v)", target.Auth, err)
	}
}
