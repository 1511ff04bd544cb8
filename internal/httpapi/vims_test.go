package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestListVims(t *testing.T) {
	f := newFake()
	f.vims = []lcm.VIM{
		{ID: "1", Name: "b", Default: true, Status: "REACHABLE", ProjectID: "p", Auth: map[string]any{"password": "x"}},
		{ID: "2", Name: "a", Type: "kubernetes"},
		{ID: "3", Name: "c"},
	}
	for _, c := range []struct {
		query string
		want  []string
		err   string
	}{
		{"", []string{"1", "2", "3"}, ""},
		{"id=2&fields=id", []string{"2"}, ""},
		{"id=b&fields=id", nil, ""},
		{"name=b&fields=id", []string{"1"}, ""},
		{"name=b&name=c", []string{"1", "3"}, ""},
		{"is_default=True", []string{"1"}, ""},
		{"is_default=false&type=kubernetes", []string{"2"}, ""},
		{"sort_key=name", []string{"2", "1", "3"}, ""},
		{"sort_key=name&sort_dir=desc&limit=2", []string{"3", "1"}, ""},
		{"limit=2", []string{"1", "2"}, ""},
		{"limit=2&marker=2", []string{"3"}, ""},
		{"marker=9", nil, "Invalid input for marker. Reason: there is no VIM '9'."},
		{"limit=x", nil, "Invalid input for limit. Reason: 'x' is not a number of VIMs."},
		{"sort_key=x", nil, "Invalid input for sort_key. Reason: 'x' is not an attribute."},
	} {
		res := ask(t, f.handler(Config{}), "GET", vm+".json?"+c.query, "")
		if c.err != "" {
			if got := detail(t, res); res.StatusCode != 400 || got != c.err {
				t.Errorf("%s: %d %s", c.query, res.StatusCode, got)
			}
			continue
		}
		var got struct {
			Vims  []map[string]any
			Links []struct{ Rel, Href string } `json:"vims_links"`
		}
		raw := content(t, res)
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Vims == nil {
			t.Fatalf("%s: %s: %v", c.query, raw, err)
		}
		var ids []string
		for _, v := range got.Vims {
			ids = append(ids, v["id"].(string))
			if strings.Contains(c.query, "fields=id") && len(v) != 1 {
				t.Errorf("%s: %v", c.query, v)
			}
		}
		if !cmp.Equal(ids, c.want) {
			t.Errorf("%s: %v, want %v", c.query, ids, c.want)
		}
		if more := strings.Contains(c.query, "limit=2") && !strings.Contains(c.query, "marker"); more != (len(got.Links) == 1) {
			t.Errorf("%s: links %v", c.query, got.Links)
		}
	}
}

func TestVimSecrets(t *testing.T) {
	v := &lcm.VIM{ID: "1", Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Regions: []string{"r"},
		Auth: map[string]any{"username": "u", "password": "hunter2", "bearer_token": "hunter2", "client_secret": "hunter2", "secret_uuid": "hunter2",
			"project_id": nil, "key_type": "k", "oidc_token_url": "http://t", "nested": map[string]any{"password": "hunter2"}, "passwords": []any{"hunter2"}},
		Extra: map[string]any{"helm_info": "{'masternode_password': 'hunter2'}", "use_helm": true},
	}
	raw, err := json.Marshal(vimObject(v))
	if err != nil || strings.Contains(string(raw), "hunter2") || strings.Count(string(raw), `"***"`) != 7 {
		t.Errorf("%s, %v", raw, err)
	}
	for _, want := range []string{`"updated_at":"2026-01-02T03:04:05Z"`, `"placement_attr":{"regions":["r"]}`, `"oidc_token_url":"http://t"`, `"project_id":null`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s lacks %s", raw, want)
		}
	}
}

func TestVimTenant(t *testing.T) {
	f := newFake()
	h := f.handler(Config{Auth: NewBasic(map[string]BasicUser{"u": {Password: "p", ProjectID: "x", Role: lcm.RoleOperator}})})
	foreign := strings.Replace(vimBody, `"name":"VIM0"`, `"tenant_id":"y","name":"VIM0"`, 1)
	res := ask(t, h, "POST", vm, foreign, "Authorization: Basic dTpw")
	if got := detail(t, res); res.StatusCode != 400 || !strings.Contains(got, "requires admin privileges") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	if res := ask(t, h, "POST", vm, strings.Replace(foreign, `"y"`, `"x"`, 1), "Authorization: Basic dTpw"); res.StatusCode != 201 || f.vim.ProjectID != "x" {
		t.Errorf("%d %+v", res.StatusCode, f.vim)
	}
	for message, class := range map[string]string{
		"Default VIM already exists 1.": "VimDefaultDuplicateException", "VIM 1 is still in use by VNF": "VimInUseException",
		"vim already exist with given ['tenant_id', 'name', 'deleted_at']": "DuplicateEntity", "other": "HTTPConflict",
	} {
		f.err = lcm.Errorf(lcm.KindConflict, "%s", message)
		res := ask(t, h, "DELETE", vm+"/"+known, "", "Authorization: Basic dTpw")
		if f.err = nil; res.StatusCode != 409 || !strings.Contains(content(t, res), `"type":"`+class+`"`) {
			t.Errorf("%s: %d", message, res.StatusCode)
		}
	}
}
