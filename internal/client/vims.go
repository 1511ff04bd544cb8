package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

const vimsPath = "/v1.0/vims"

// VIMChange is what `vim register` and `vim set` say beside the configuration file.
type VIMChange struct {
	// ConfigFile is a YAML file with auth_url, type, credentials and project.
	ConfigFile string
	// TenantID, Name and Description are left alone when empty; so is IsDefault when nil.
	TenantID, Name, Description string
	IsDefault                   *bool
}

// RegisterVIM registers a VIM and returns it.
func (c *Client) RegisterVIM(ctx context.Context, ch VIMChange) (*Object, error) {
	conf, err := readVIMFile(ch.ConfigFile)
	if err != nil {
		return nil, err
	}
	authURL, ok := conf.Get("auth_url")
	if !ok {
		return nil, fmt.Errorf("Auth URL must be specified")
	}
	u, err := url.Parse(text(authURL))
	if err != nil || u.Scheme == "" || u.Host == "" {
		return nil, fmt.Errorf("Invalid auth URL")
	}
	vim := NewObject().Set("auth_url", text(authURL))
	if err := vimBody(conf, vim); err != nil {
		return nil, err
	}
	ch.lay(vim)
	return c.vimCall(ctx, request{method: http.MethodPost, path: vimsPath + ".json", body: NewObject().Set("vim", vim)})
}

// SetVIM changes a VIM given by name or id and returns it.
func (c *Client) SetVIM(ctx context.Context, nameOrID string, ch VIMChange) (*Object, error) {
	vim := NewObject()
	if ch.ConfigFile != "" {
		conf, err := readVIMFile(ch.ConfigFile)
		if err != nil {
			return nil, err
		}
		if err := vimBody(conf, vim); err != nil {
			return nil, err
		}
		vim.Delete("type") // cannot be changed
	}
	ch.lay(vim)
	id, err := c.FindVIM(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	return c.vimCall(ctx, request{method: http.MethodPut, path: vimsPath + "/" + seg(id) + ".json", body: NewObject().Set("vim", vim)})
}

func (ch VIMChange) lay(vim *Object) {
	if ch.TenantID != "" {
		vim.Set("tenant_id", ch.TenantID)
	}
	if ch.Name != "" {
		vim.Set("name", ch.Name)
	}
	if ch.Description != "" {
		vim.Set("description", ch.Description)
	}
	if ch.IsDefault != nil {
		vim.Set("is_default", *ch.IsDefault)
	}
}

// VIMs lists the registered VIMs.
func (c *Client) VIMs(ctx context.Context) ([]*Object, error) {
	return c.vimList(ctx, "")
}

func (c *Client) vimList(ctx context.Context, query string) ([]*Object, error) {
	out := []*Object{}
	for seen := map[string]bool{}; ; {
		o, err := c.object(ctx, request{method: http.MethodGet, path: vimsPath + ".json", query: query})
		if err != nil {
			return nil, err
		}
		list, ok := o.Values["vims"].([]any)
		if !ok {
			return nil, fmt.Errorf("GET %s: the answer has no list of VIMs", vimsPath)
		}
		for _, e := range list {
			if v, ok := e.(*Object); ok {
				out = append(out, v)
			}
		}
		next := ""
		links, _ := o.Values["vims_links"].([]any)
		for _, e := range links {
			if l, ok := e.(*Object); ok && l.Text("rel") == "next" {
				if u, err := url.Parse(l.Text("href")); err == nil {
					next = u.RawQuery
				}
			}
		}
		if next == "" || seen[next] {
			return out, nil
		}
		seen[next] = true
		query = next
	}
}

// VIM reads a VIM given by name or id.
func (c *Client) VIM(ctx context.Context, nameOrID string) (*Object, error) {
	id, err := c.FindVIM(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	return c.vimCall(ctx, request{method: http.MethodGet, path: vimsPath + "/" + seg(id) + ".json"})
}

// DeleteVIM deletes a VIM given by name or id.
func (c *Client) DeleteVIM(ctx context.Context, nameOrID string) error {
	id, err := c.FindVIM(ctx, nameOrID)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, request{method: http.MethodDelete, path: vimsPath + "/" + seg(id) + ".json"})
	return err
}

func (c *Client) vimCall(ctx context.Context, r request) (*Object, error) {
	o, err := c.object(ctx, r)
	if err != nil {
		return nil, err
	}
	vim, ok := o.Values["vim"].(*Object)
	if !ok {
		return nil, fmt.Errorf("%s %s: the answer has no vim", r.method, r.path)
	}
	return vim, nil
}

var uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// FindVIM returns the id of the one VIM with this id or, failing that, this name.
func (c *Client) FindVIM(ctx context.Context, nameOrID string) (string, error) {
	by := func(key string) ([]*Object, error) {
		return c.vimList(ctx, key+"="+url.QueryEscape(nameOrID)+"&fields=id")
	}
	if uuidText.MatchString(nameOrID) {
		list, err := by("id")
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return list[0].Text("id"), nil
		}
	}
	list, err := by("name")
	if err != nil {
		return "", err
	}
	switch len(list) {
	case 0:
		return "", fmt.Errorf("Unable to find vim with name '%s'", nameOrID)
	case 1:
		return list[0].Text("id"), nil
	}
	return "", fmt.Errorf("Multiple vim matches found for name '%s', use an ID to be more specific.", nameOrID)
}

// readVIMFile reads the YAML file of a VIM with the order of its keys.
func readVIMFile(path string) (*Object, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("File %s does not exist or user does not have read privileges to it", path)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("%s: %v", path, err)}
	}
	if len(doc.Content) == 0 {
		return nil, &InputError{Reason: "The parameter file is empty"}
	}
	v, err := fromYAML(doc.Content[0], 0)
	if err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("%s: %v", path, err)}
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, &InputError{Reason: fmt.Sprintf("%s: keys and values are wanted", path)}
	}
	return o, nil
}

func fromYAML(n *yaml.Node, depth int) (any, error) {
	if depth > 50 {
		return nil, fmt.Errorf("line %d: nested too deeply", n.Line)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return fromYAML(n.Alias, depth+1)
	case yaml.MappingNode:
		o := NewObject()
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			o.Set(n.Content[i].Value, v)
		}
		return o, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, e := range n.Content {
			v, err := fromYAML(e, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return b, nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
	}
	return n.Value, nil
}

// text is a scalar of a YAML file as a text.
func text(v any) string { return pyStr(v, false) }

// vimBody moves the keys of a VIM file to where the API wants them.
func vimBody(conf, vim *Object) error {
	take := func(key, otherwise string) any {
		if v, ok := conf.Get(key); ok {
			return v
		}
		return otherwise
	}
	kind := text(take("type", "openstack"))
	if kind != "openstack" && kind != "kubernetes" {
		return fmt.Errorf("Supported VIM types: openstack, kubernetes")
	}
	vim.Set("type", kind)
	project := NewObject().Set("name", take("project_name", ""))
	if kind == "openstack" {
		project.Set("project_domain_name", take("project_domain_name", ""))
	}
	vim.Set("vim_project", project)
	if name := project.Values["name"]; name == nil || name == "" {
		if kind == "kubernetes" {
			return fmt.Errorf("Project name must be specified in Kubernetes VIM, it is namespace in Kubernetes environment")
		}
		return fmt.Errorf("Project name must be specified")
	}
	_, hasUser := conf.Get("username")
	_, hasPassword := conf.Get("password")
	cred := NewObject()
	switch {
	case kind == "openstack":
		verify := take("cert_verify", "True")
		if b, ok := verify.(bool); ok { // unquoted in the file
			verify = pyStr(b, false)
		}
		if verify != "True" && verify != "False" {
			return fmt.Errorf("Supported cert_verify types: True, False")
		}
		cred.Set("username", take("username", "")).Set("password", take("password", "")).
			Set("user_domain_name", take("user_domain_name", "")).Set("cert_verify", verify)
	case conf.Values["oidc_token_url"] != nil:
		_, hasClient := conf.Get("client_id")
		if !hasUser || !hasPassword || !hasClient {
			return fmt.Errorf("oidc_token_url must be specified with username, password, client_id, client_secret(optional).")
		}
		for _, k := range []string{"oidc_token_url", "username", "password", "client_id", "client_secret"} {
			if v, ok := conf.Get(k); ok {
				cred.Set(k, v)
			}
		}
	case hasUser && hasPassword:
		cred.Set("username", conf.Values["username"]).Set("password", conf.Values["password"])
	case conf.Values["bearer_token"] != nil:
		cred.Set("bearer_token", conf.Values["bearer_token"])
	default:
		return fmt.Errorf("username and password or bearer_token must be provided")
	}
	if kind == "kubernetes" {
		if ca := conf.Values["ssl_ca_cert"]; ca != nil && ca != "" {
			cred.Set("ssl_ca_cert", ca)
		}
	}
	vim.Set("auth_cred", cred)
	if extra, ok := conf.Values["extra"].(*Object); ok && len(extra.Keys) > 0 {
		vim.Set("extra", extra)
	}
	return nil
}

// ParseBool reads what --is-default takes: True, t, yes, y, on and 1 are true in any case, everything else is false.
func ParseBool(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "t", "yes", "y", "on", "1":
		return true
	}
	return false
}
