package main

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/jwtauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/keystoneauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/servertls"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// authenticator makes the ways of authentication that are configured into one. What a request names on purpose, in a
// header, goes before the certificate of its connection.
func authenticator(a config.Auth) (httpapi.Authenticator, error) {
	var ways httpapi.Any
	for _, way := range []struct {
		name string
		make func(config.Auth) (httpapi.Authenticator, error)
	}{{"none", none}, {"basic", basic}, {"bearer", bearer}, {"keystone", keystone}, {"mtls", mutualTLS}} {
		if !slices.Contains(a.Ways(), way.name) {
			continue
		}
		one, err := way.make(a)
		if err != nil {
			return nil, fmt.Errorf("auth.%s: %w", way.name, err)
		}
		ways = append(ways, one)
	}
	return ways, nil
}

func none(config.Auth) (httpapi.Authenticator, error) { return httpapi.None{}, nil }

func basic(a config.Auth) (httpapi.Authenticator, error) {
	users := make(map[string]httpapi.BasicUser, len(a.Basic.Users))
	for name, password := range a.Basic.Users {
		users[name] = httpapi.BasicUser{Password: lcm.Secret(password.Reveal()), ProjectID: a.ProjectOf(name), Role: role(a.RoleOf(name))}
	}
	return httpapi.NewBasic(users), nil
}

func bearer(a config.Auth) (httpapi.Authenticator, error) {
	b := a.Bearer
	client, err := httpClient(b.CAFile, b.Timeout)
	if err != nil {
		return nil, err
	}
	verifier, err := jwtauth.New(jwtauth.Config{
		Issuer: b.Issuer, Audience: b.Audience, JWKSURL: b.JWKSURL, Algorithms: b.Algorithms, Skew: b.ClockSkew, HTTP: client,
	})
	if err != nil {
		return nil, err
	}
	return httpapi.NewBearer(verifier, httpapi.BearerConfig{
		Scopes: roles(b.Scopes), UserClaim: b.UserClaim, ProjectClaim: b.ProjectClaim, Project: b.Project,
	}), nil
}

func keystone(a config.Auth) (httpapi.Authenticator, error) {
	k := a.Keystone
	client, err := httpClient(k.CAFile, k.Timeout)
	if err != nil {
		return nil, err
	}
	return httpapi.NewKeystone(keystoneauth.New(keystoneauth.Config{
		AuthURL: k.AuthURL, Username: k.Username, Password: lcm.Secret(k.Password.Reveal()), UserDomainName: k.UserDomainName,
		ProjectName: k.ProjectName, ProjectDomainName: k.ProjectDomainName, HTTP: client,
	}), httpapi.KeystoneConfig{AuthURL: k.AuthURL, Roles: roles(k.Roles), Bearer: !slices.Contains(a.Ways(), "bearer")}), nil
}

func mutualTLS(a config.Auth) (httpapi.Authenticator, error) {
	users := make(map[string]httpapi.CertificateUser, len(a.MTLS.Users))
	for certificate, name := range a.MTLS.Users {
		users[certificate] = httpapi.CertificateUser{Name: name, ProjectID: a.ProjectOf(name), Role: role(a.RoleOf(name))}
	}
	return httpapi.MutualTLS{Users: users}, nil
}

// role returns the role of a name, which the configuration has been checked for.
func role(name string) lcm.Role {
	r, _ := lcm.ParseRole(name)
	return r
}

func roles(names map[string]string) map[string]lcm.Role {
	out := make(map[string]lcm.Role, len(names))
	for from, name := range names {
		out[from] = role(name)
	}
	return out
}

// tlsFiles reads the files of the listener's TLS; nil without any. Client certificates may be left out where there are
// other ways to say who one is.
func tlsFiles(cfg *config.Config, log *slog.Logger) (*servertls.Files, error) {
	if cfg.TLS.Cert == "" {
		return nil, nil //nolint:nilnil // plain HTTP
	}
	clients := servertls.NotAsked
	if cfg.TLS.ClientCA != "" {
		clients = servertls.Required
		if ways := cfg.Auth.Ways(); len(ways) > 1 && slices.Contains(ways, "mtls") {
			clients = servertls.IfGiven
		}
	}
	return servertls.New(servertls.Config{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key, ClientCA: cfg.TLS.ClientCA, Clients: clients, Log: log})
}
