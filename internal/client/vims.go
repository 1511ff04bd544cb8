package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

const vimsPath = "/v1.0/vims"

// VIMChange is what `vim register` and `vim set` say beside the configuration file.
type VIMChange struct {
	// ConfigFile is a YAML file with auth_url, type, credentials and project. Beside a kubeconfig it may say less: what it
	// says counts.
	ConfigFile string
	// Kubeconfig is a kubeconfig file. Its Context (the current one when empty) says where a cluster is, how it is verified
	// and how it is logged in to; Namespace stands for the context's when it is not empty. With SkipVerify the operator
	// wants the cluster's certificate not to be verified.
	Kubeconfig, Context, Namespace string
	SkipVerify                     bool
	// TenantID, Name and Description are left alone when empty; so is IsDefault when nil.
	TenantID, Name, Description string
	IsDefault                   *bool
}

// RegisterVIM registers a VIM and returns it.
func (c *Client) RegisterVIM(ctx context.Context, ch VIMChange) (*Object, error) {
	conf, imported, err := c.vimConfiguration(ch)
	if err != nil {
		return nil, err
	}
	if _, ok := conf.Get("project_name"); !ok && imported {
		conf.Set("project_name", "default") // as kubectl has it
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

// clusterCredentials are the attributes of auth_cred by which a cluster knows its clients, and they it.
var clusterCredentials = []string{
	"bearer_token", "username", "password", "oidc_token_url", "client_id", "client_secret", "client_cert", "client_key", "ssl_ca_cert",
}

// SetVIM changes a VIM given by name or id and returns it.
func (c *Client) SetVIM(ctx context.Context, nameOrID string, ch VIMChange) (*Object, error) {
	vim := NewObject()
	conf, imported, err := c.vimConfiguration(ch)
	if err != nil {
		return nil, err
	}
	if ch.ConfigFile != "" || imported {
		_, hasProject := conf.Get("project_name")
		if imported && !hasProject {
			conf.Set("project_name", "default")
		}
		if err := vimBody(conf, vim); err != nil {
			return nil, err
		}
		vim.Delete("type")                                                 // cannot be changed
		if cred, ok := vim.Values["auth_cred"].(*Object); ok && imported { // it is the whole identity: nothing of another one stays
			for _, key := range clusterCredentials {
				if _, given := cred.Get(key); !given {
					cred.Set(key, nil)
				}
			}
		}
		if imported && !hasProject {
			vim.Delete("vim_project") // it stays as it is
		}
	}
	ch.lay(vim)
	id, err := c.FindVIM(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	if imported {
		if err := c.sameCluster(ctx, id, text(conf.Values["auth_url"])); err != nil {
			return nil, err
		}
	}
	return c.vimCall(ctx, request{method: http.MethodPut, path: vimsPath + "/" + seg(id) + ".json", body: NewObject().Set("vim", vim)})
}

// sameCluster refuses the credentials of another cluster than the VIM's, whose auth_url cannot be changed.
func (c *Client) sameCluster(ctx context.Context, id, authURL string) error {
	vim, err := c.vimCall(ctx, request{method: http.MethodGet, path: vimsPath + "/" + seg(id) + ".json"})
	if err != nil {
		return err
	}
	if at := vim.Text("auth_url"); strings.TrimRight(at, "/") != strings.TrimRight(authURL, "/") {
		return &InputError{Reason: fmt.Sprintf("the kubeconfig is of the API server %s, the VIM is at %s. If they are the same, say auth_url: %s "+
			"in a --config-file beside --kubeconfig; if not, register the other as a VIM of its own", authURL, at, at)}
	}
	return nil
}

// vimConfiguration reads what a change names: a configuration file, a kubeconfig, or both. imported tells whether there was
// a kubeconfig.
func (c *Client) vimConfiguration(ch VIMChange) (conf *Object, imported bool, err error) {
	conf = NewObject()
	if ch.ConfigFile != "" {
		if conf, err = readYAMLFile(ch.ConfigFile); err != nil {
			return nil, false, err
		}
	}
	path, context := ch.Kubeconfig, ch.Context
	if named, ok := conf.Get("kubeconfig"); ok && path == "" {
		if path = scalar(named); path == "" {
			return nil, false, &InputError{Reason: ch.ConfigFile + ": kubeconfig names no file"}
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok { // no shell has seen it
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, false, fmt.Errorf("find %s: %w", path, err)
			}
			path = filepath.Join(home, rest)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(ch.ConfigFile), path)
		}
	}
	if path == "" {
		if ch.Context != "" || ch.Namespace != "" || ch.SkipVerify {
			return nil, false, &InputError{Reason: "--context, --namespace and --insecure-skip-tls-verify go with --kubeconfig"}
		}
		if conf.Values["type"] == "kubernetes" {
			conf.Delete("cert_verify") // python-tackerclient does not know it there; ssl_ca_cert: None says the same
		}
		return conf, false, nil
	}
	if kind, ok := conf.Get("type"); ok && kind != "kubernetes" {
		return nil, false, &InputError{Reason: fmt.Sprintf("%s: a VIM of type %s has no kubeconfig", ch.ConfigFile, text(kind))}
	}
	if named, ok := conf.Get("context"); ok && context == "" {
		context = scalar(named)
	}
	conf.Delete("kubeconfig")
	conf.Delete("context")
	unverified := ch.SkipVerify
	if v, ok := conf.Get("cert_verify"); ok {
		unverified = unverified || strings.EqualFold(text(v), "false")
	}
	file, err := readKubeconfig(path, c.now)
	if err != nil {
		return nil, false, err
	}
	out, err := file.imported(context, conf, unverified)
	if err != nil {
		return nil, false, err
	}
	out.Merge(conf)
	if ch.Namespace != "" {
		out.Set("project_name", ch.Namespace)
	}
	if ch.SkipVerify {
		out.Set("cert_verify", "False")
	}
	return out, true, nil
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

// readYAMLFile reads a YAML file of keys and values, with the order of the keys.
func readYAMLFile(path string) (*Object, error) {
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
	left := maxNodes
	v, err := fromYAML(doc.Content[0], 0, &left)
	if err != nil {
		return nil, &InputError{Reason: fmt.Sprintf("%s: %v", path, err)}
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, &InputError{Reason: fmt.Sprintf("%s: keys and values are wanted", path)}
	}
	return o, nil
}

// maxNodes bounds what aliases may make of a YAML file.
const maxNodes = 100_000

// fromYAML returns what a node holds; left is how many nodes there may be yet.
func fromYAML(n *yaml.Node, depth int, left *int) (any, error) {
	if *left--; depth > 50 || *left < 0 {
		return nil, fmt.Errorf("line %d: nested too deeply", n.Line)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return fromYAML(n.Alias, depth+1, left)
	case yaml.MappingNode:
		o := NewObject()
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := fromYAML(n.Content[i+1], depth+1, left)
			if err != nil {
				return nil, err
			}
			o.Set(n.Content[i].Value, v)
		}
		return o, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, e := range n.Content {
			v, err := fromYAML(e, depth+1, left)
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
	case conf.Values["client_cert"] != nil && conf.Values["client_key"] != nil:
	default:
		return fmt.Errorf("username and password or bearer_token must be provided")
	}
	if kind == "kubernetes" {
		for _, k := range []string{"client_cert", "client_key", "ssl_ca_cert"} {
			if v := conf.Values[k]; v != nil && v != "" {
				cred.Set(k, v)
			}
		}
		if v, ok := conf.Get("cert_verify"); ok {
			verify := text(v)
			if verify != "True" && verify != "False" {
				return fmt.Errorf("Supported cert_verify types: True, False")
			}
			cred.Set("cert_verify", verify)
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
