package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vimsapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// vims implements the VIM API, in the form that the OpenStack clients know.
type vims struct{ *server }

var _ vimsapi.StrictServerInterface = vims{}

const vimsPath = "/v1.0/vims"

// authenticatedButVersions lets anybody ask for the versions.
func (v vims) authenticatedButVersions(next http.Handler) http.Handler {
	authenticated := v.authenticated(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			next.ServeHTTP(w, r)
			return
		}
		authenticated.ServeHTTP(w, r)
	})
}

func (v vims) GetVersions(context.Context, vimsapi.GetVersionsRequestObject) (vimsapi.GetVersionsResponseObject, error) {
	out, err := jsonReply(http.StatusOK, vimsapi.Versions{Versions: []vimsapi.VersionEntry{{
		Id: "v1.0", Status: "CURRENT", Links: []vimsapi.VersionLink{{Rel: "self", Href: v.cfg.EndpointURL + "/v1.0"}},
	}}})
	return response{out}, err
}

func (v vims) ListExtensions(context.Context, vimsapi.ListExtensionsRequestObject) (vimsapi.ListExtensionsResponseObject, error) {
	return response{&reply{status: http.StatusOK, body: []byte(`{"extensions":[]}`)}}, nil
}

// vimAttribute says where an attribute of a VIM may be given, and what it must be.
type vimAttribute struct {
	post, put, required bool
	// object attributes must not be empty when they are required.
	kind string // string, boolean, object
}

var vimAttributes = map[string]vimAttribute{
	"type":           {post: true, required: true, kind: "string"},
	"auth_url":       {post: true, required: true, kind: "string"},
	"auth_cred":      {post: true, put: true, required: true, kind: "object"},
	"vim_project":    {post: true, put: true, required: true, kind: "object"},
	"name":           {post: true, put: true, required: true, kind: "string"},
	"description":    {post: true, put: true, kind: "string"},
	"is_default":     {post: true, put: true, kind: "boolean"},
	"tenant_id":      {post: true, kind: "string"},
	"extra":          {post: true, put: true, kind: "object"},
	"id":             {},
	"status":         {},
	"placement_attr": {},
	"created_at":     {},
	"updated_at":     {},
}

// checkVIM checks the vim of a request's body: the attributes of which the client sends texts for booleans are
// normalised. It returns the body to decode.
func checkVIM(c *call) (map[string]any, error) {
	invalid := func(format string, args ...any) error { return lcm.Errorf(lcm.KindInvalid, format, args...) }
	body, _ := c.tree.(map[string]any)
	vim, ok := body["vim"].(map[string]any)
	if !ok {
		return nil, invalid("Unable to find 'vim' in request body")
	}
	post := c.req.Method == http.MethodPost
	given := make([]string, 0, len(vim))
	var unknown []string
	for name := range vim {
		given = append(given, name)
		if _, ok := vimAttributes[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(given)
	slices.Sort(unknown)
	if len(unknown) > 0 {
		return nil, invalid("Unrecognized attribute(s) '%s'", clip(strings.Join(unknown, ", ")))
	}
	for _, name := range given {
		a := vimAttributes[name]
		switch {
		case post && !a.post:
			return nil, invalid("Attribute '%s' not allowed in POST", name)
		case !post && !a.put:
			return nil, invalid("Cannot update read-only attribute %s", name)
		}
		if err := checkVIMAttribute(vim, name, a); err != nil {
			return nil, err
		}
	}
	if post {
		for _, name := range []string{"type", "auth_url", "auth_cred", "vim_project", "name"} {
			if _, ok := vim[name]; !ok {
				return nil, invalid("Failed to parse request. Required attribute '%s' not specified", name)
			}
		}
	}
	return vim, nil
}

func checkVIMAttribute(vim map[string]any, name string, a vimAttribute) error {
	v := vim[name]
	invalid := func(reason string) error {
		return lcm.Errorf(lcm.KindInvalid, "Invalid input for %s. Reason: %s", name, reason)
	}
	switch a.kind {
	case "object":
		m, ok := v.(map[string]any)
		if !ok || a.required && len(m) == 0 {
			return invalid("'" + repr(v, !ok && lcm.SecretKey(name)) + "' is not a valid dictionary or it is an empty dictionary.")
		}
	case "boolean":
		b, ok := v.(bool)
		if text, isText := v.(string); isText {
			parsed, err := strconv.ParseBool(strings.ToLower(text))
			b, ok = parsed, err == nil
		}
		if !ok {
			return invalid(repr(v, false) + " cannot be converted to boolean.")
		}
		vim[name] = b
	default:
		text, ok := v.(string)
		limit := 255
		if name == "description" {
			limit = 1024
		}
		switch {
		case v == nil && name == "description":
			vim[name] = ""
		case !ok:
			return invalid(repr(v, false) + " is not a valid string.")
		case text == "" && a.required:
			return invalid("'' is an empty string.")
		case utf8.RuneCountInString(text) > limit:
			return invalid("the value is longer than " + strconv.Itoa(limit) + " characters.")
		case name == "auth_url":
			if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return invalid(repr(text, false) + " is not a valid URL.")
			}
		}
	}
	return nil
}

func (v vims) RegisterVim(ctx context.Context, req vimsapi.RegisterVimRequestObject) (vimsapi.RegisterVimResponseObject, error) {
	c := callOf(ctx)
	vim := req.Body.Vim
	scope := c.scope
	if vim.TenantId != "" && vim.TenantId != scope.ProjectID {
		if !scope.Admin {
			return nil, lcm.Errorf(lcm.KindInvalid, "Specifying 'tenant_id' other than authenticated tenant in request requires admin privileges")
		}
		scope.ProjectID = vim.TenantId
	}
	made, err := v.deps.VIMs.Register(ctx, scope, lcm.VIM{
		ProjectID: scope.ProjectID, Name: vim.Name, Desc: vim.Description, Type: vim.Type, AuthURL: vim.AuthUrl,
		Auth: vim.AuthCred, Project: vim.VimProject, Extra: vim.Extra, Default: vim.IsDefault,
	})
	if err != nil {
		return nil, err
	}
	out, err := jsonReply(http.StatusCreated, vimEnvelope(made, nil))
	return response{out}, err
}

func (v vims) UpdateVim(ctx context.Context, req vimsapi.UpdateVimRequestObject) (vimsapi.UpdateVimResponseObject, error) {
	vim := req.Body.Vim
	changed, err := v.deps.VIMs.Update(ctx, callOf(ctx).scope, req.VimId, lcm.VIMChange{
		Name: vim.Name, Desc: vim.Description, Auth: vim.AuthCred, Project: vim.VimProject, Extra: vim.Extra, Default: vim.IsDefault,
	})
	if err != nil {
		return nil, err
	}
	out, err := jsonReply(http.StatusOK, vimEnvelope(changed, nil))
	return response{out}, err
}

func (v vims) GetVim(ctx context.Context, req vimsapi.GetVimRequestObject) (vimsapi.GetVimResponseObject, error) {
	got, err := v.deps.VIMs.Get(ctx, callOf(ctx).scope, req.VimId)
	if err != nil {
		return nil, err
	}
	out, err := jsonReply(http.StatusOK, vimEnvelope(got, req.Params.Fields))
	if err != nil {
		return nil, err
	}
	if out.etag, err = vimTag(got); err != nil {
		return nil, err
	}
	if known := req.Params.IfNoneMatch; known != "" && matches(known, out.etag, true) {
		out = &reply{status: http.StatusNotModified, etag: out.etag}
	}
	return response{out}, nil
}

// vimTag is the entity tag of a VIM: its version, and a digest of what is found out about it without a change.
func vimTag(v *lcm.VIM) (string, error) {
	raw, err := json.Marshal(vimObject(v))
	if err != nil {
		return "", fmt.Errorf("write VIM %s: %w", v.ID, err)
	}
	sum := sha256.Sum256(raw)
	return etag(max(v.Version, 1), "-"+hex.EncodeToString(sum[:8])), nil
}

func (v vims) DeleteVim(ctx context.Context, req vimsapi.DeleteVimRequestObject) (vimsapi.DeleteVimResponseObject, error) {
	if err := v.deps.VIMs.Delete(ctx, callOf(ctx).scope, req.VimId); err != nil {
		return nil, err
	}
	return response{&reply{status: http.StatusNoContent}}, nil
}

// ListVims lists VIMs: equality filters by attribute, fields, sorting and paging as the OpenStack clients use them.
func (v vims) ListVims(ctx context.Context, _ vimsapi.ListVimsRequestObject) (vimsapi.ListVimsResponseObject, error) {
	c := callOf(ctx)
	q, err := parseQuery(c.req.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	all, err := v.deps.VIMs.List(ctx, c.scope)
	if err != nil {
		return nil, err
	}
	shown := make([]map[string]any, 0, len(all))
	for i := range all {
		if vim := vimObject(&all[i]); vimMatches(vim, q) {
			shown = append(shown, vim)
		}
	}
	more := false
	if shown, more, err = pageOfVIMs(shown, q); err != nil {
		return nil, err
	}
	out := map[string]any{}
	if more {
		next := url.Values(q)
		next.Set("marker", shown[len(shown)-1]["id"].(string)) //nolint:forcetypeassert // vimObject made it
		out["vims_links"] = []map[string]string{{"rel": "next", "href": v.cfg.EndpointURL + vimsPath + "?" + next.Encode()}}
	}
	for i, vim := range shown {
		shown[i] = project(vim, q["fields"])
	}
	out["vims"] = shown
	r, err := jsonReply(http.StatusOK, out)
	return response{r}, err
}

// vimMatches tells whether a VIM has what the query asks of its attributes.
func vimMatches(vim map[string]any, q query) bool {
	for name, wanted := range q {
		switch v := vim[name].(type) {
		case string:
			if !slices.Contains(wanted, v) {
				return false
			}
		case bool:
			if !slices.ContainsFunc(wanted, func(w string) bool { b, err := strconv.ParseBool(strings.ToLower(w)); return err == nil && b == v }) {
				return false
			}
		}
	}
	return true
}

// pageOfVIMs sorts by sort_key and sort_dir, and takes limit VIMs after the marker.
func pageOfVIMs(all []map[string]any, q query) (page []map[string]any, more bool, err error) {
	if key := q.get("sort_key"); key != "" {
		if _, ok := vimAttributes[key]; !ok {
			return nil, false, lcm.Errorf(lcm.KindInvalid, "Invalid input for sort_key. Reason: %s is not an attribute.", repr(key, false))
		}
		slices.SortStableFunc(all, func(a, b map[string]any) int {
			return cmp.Compare(plainText(a[key], false), plainText(b[key], false))
		})
		if strings.EqualFold(q.get("sort_dir"), "desc") {
			slices.Reverse(all)
		}
	}
	if after := q.get("marker"); after != "" {
		i := slices.IndexFunc(all, func(vim map[string]any) bool { return vim["id"] == after })
		if i < 0 {
			return nil, false, lcm.Errorf(lcm.KindInvalid, "Invalid input for marker. Reason: there is no VIM %s.", repr(after, false))
		}
		all = all[i+1:]
	}
	if text := q.get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return nil, false, lcm.Errorf(lcm.KindInvalid, "Invalid input for limit. Reason: %s is not a number of VIMs.", repr(text, false))
		}
		if limit > 0 && limit < len(all) {
			return all[:limit], true, nil
		}
	}
	return all, false, nil
}

func vimEnvelope(v *lcm.VIM, fields []string) map[string]any {
	return map[string]any{"vim": project(vimObject(v), fields)}
}

// project leaves in the object the attributes that fields names; all when it names none.
func project(vim map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return vim
	}
	out := map[string]any{}
	for _, list := range fields {
		for name := range strings.SplitSeq(list, ",") {
			if v, ok := vim[name]; ok {
				out[name] = v
			}
		}
	}
	return out
}

// mask stands for a secret in the answers of this API.
const mask = "***"

// masked returns the object with its secrets masked.
func masked(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch t := v.(type) {
		case map[string]any:
			out[k] = masked(t)
		case nil:
			out[k] = nil
		case string:
			if out[k] = t; (lcm.SecretKey(k) || k == "secret_uuid" || k == "helm_info") && t != "" {
				out[k] = mask
			}
		default:
			if out[k] = lcm.Redact(v); lcm.SecretKey(k) {
				out[k] = mask
			}
		}
	}
	return out
}

func vimObject(v *lcm.VIM) map[string]any {
	var updated any // null until changed, as the clients know it
	if !v.Updated.IsZero() {
		updated = v.Updated.UTC().Format(time.RFC3339Nano)
	}
	regions := v.Regions
	if regions == nil {
		regions = []string{}
	}
	return map[string]any{
		"id": v.ID, "type": v.Type, "tenant_id": v.ProjectID, "name": v.Name, "description": v.Desc,
		"placement_attr": map[string]any{"regions": regions}, "is_default": v.Default,
		"created_at": v.Created.UTC().Format(time.RFC3339Nano), "updated_at": updated,
		"extra": masked(v.Extra), "status": v.Status, "auth_url": v.AuthURL, "vim_project": masked(v.Project), "auth_cred": masked(v.Auth),
	}
}

// normaliseVIM is what the VIM API does with a body before it is decoded.
func normaliseVIM(c *call) error {
	vim, err := checkVIM(c)
	if err != nil {
		return err
	}
	c.raw, err = json.Marshal(map[string]any{"vim": vim})
	return err
}
