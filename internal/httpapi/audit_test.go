package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// record is a Requests that remembers keys as a store does.
type record struct {
	f       *fake
	refused []lcm.Request
	status  []int
	keys    map[string]lcm.Request
	first   map[string]*lcm.RepeatedError
}

func newRecord(f *fake) *record {
	return &record{f: f, keys: map[string]lcm.Request{}, first: map[string]*lcm.RepeatedError{}}
}

func (r *record) AuditEvents(_ context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	r.f.scope = s
	return r.f.list(q, []lcm.Body{body(known, map[string]any{"action": "POST /x", "status": 201})})
}

func (r *record) Refused(req *lcm.Request, status int) {
	r.refused, r.status = append(r.refused, *req), append(r.status, status)
}

func (r *record) Repeated(_ context.Context, req *lcm.Request) error {
	switch had, ok := r.keys[req.Key]; {
	case !ok:
		return nil
	case string(had.Fingerprint) != string(req.Fingerprint):
		return &lcm.Error{Kind: lcm.KindInvalid, Status: 422, Detail: "another"}
	default:
		return r.first[req.Key]
	}
}

// keep notes the context's request, as the transaction of its effect does.
func (r *record) keep(ctx context.Context, first *lcm.RepeatedError) error {
	req := lcm.RequestOf(ctx)
	if req == nil {
		return errors.New("nobody's request")
	}
	if req.Key == "" {
		return nil
	}
	if err := r.Repeated(ctx, req); err != nil {
		return err
	}
	r.keys[req.Key], r.first[req.Key] = *req, first
	return nil
}

// keepingLCM makes each instance once a key; a second instantiation finds the instance busy.
type keepingLCM struct {
	fakeLCM
	r    *record
	busy bool
}

func (k *keepingLCM) Create(ctx context.Context, s lcm.Scope, req sol003.CreateVnfRequest) (*lcm.Instance, error) {
	i, err := k.fakeLCM.Create(ctx, s, req)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(i.Representation())
	if err != nil {
		return nil, err
	}
	return i, k.r.keep(ctx, &lcm.RepeatedError{ResourceID: i.ID, Body: raw, Version: 1})
}

func (k *keepingLCM) Instantiate(ctx context.Context, _ lcm.Scope, _ string, _ sol003.InstantiateVnfRequest, _ json.RawMessage) (string, error) {
	if k.busy {
		return "", lcm.Errorf(lcm.KindConflict, "busy")
	}
	k.busy = true
	return opOcc, k.r.keep(ctx, &lcm.RepeatedError{ResourceID: opOcc})
}

func keeping(cfg Config) (http.Handler, *record) {
	f := newFake()
	r := newRecord(f)
	cfg.Requests = r
	cfg.Log = slog.New(slog.DiscardHandler)
	return New(cfg, Deps{LCM: &keepingLCM{fakeLCM: fakeLCM{f}, r: r}, Reader: fakeReader{f}, Packages: fakePackages{f}, VIMs: fakeVIMs{f},
		Subscriptions: fakeSubscriptions{f}}), r
}

func TestIdempotencyKey(t *testing.T) {
	for name, c := range map[string]struct{ path, body, other string }{
		"create":      {vi, `{"vnfdId":"` + vnfdID + `"}`, `{"vnfdId":"` + vnfdID + `","vnfInstanceName":"x"}`},
		"instantiate": {vi + "/" + known + "/instantiate", `{"flavourId":"simple"}`, `{"flavourId":"other"}`},
	} {
		h, r := keeping(Config{})
		type answer struct {
			Status               int
			Location, ETag, Body string
		}
		post := func(body, key string) answer {
			res := ask(t, h, "POST", c.path, body, "Idempotency-Key: "+key)
			return answer{res.StatusCode, res.Header.Get("Location"), res.Header.Get("ETag"), content(t, res)}
		}
		first, again := post(c.body, "k 1"), post(c.body, "k 1")
		if first.Status/100 != 2 || first.Location == "" || cmp.Diff(first, again) != "" {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
		if len(r.refused) != 0 {
			t.Errorf("%s: a repetition is no refusal: %v", name, r.status)
		}
		if got := post(c.other, "k 1"); got.Status != 422 {
			t.Errorf("%s: the key for another request: %+v", name, got)
		}
		if got := post(c.body, "k 2"); name == "instantiate" && got.Status != 409 || name == "create" && got.Status != 201 {
			t.Errorf("%s: another key: %+v", name, got)
		}
		for _, bad := range []string{"", strings.Repeat("x", 256), "a\tb", "ä"} {
			if got := post(c.body, bad); got.Status != 400 {
				t.Errorf("%s: key %q: %+v", name, bad, got)
			}
		}
		if got := post(c.body, strings.Repeat("x", 255)); got.Status >= 400 && got.Status != 409 {
			t.Errorf("%s: the longest key: %+v", name, got)
		}
		if res := ask(t, h, "POST", c.path, c.body, "Idempotency-Key: a", "Idempotency-Key: b"); res.StatusCode != 400 {
			t.Errorf("%s: two keys: %d", name, res.StatusCode)
		}
	}
}

// What a route's first request was answered can be answered again.
func TestReplay(t *testing.T) {
	stored := lcm.RepeatedError{ResourceID: known, Body: []byte(`{"id":"` + known + `","operationState":"FAILED","usageState":"NOT_IN_USE"}`), Version: 3}
	for _, c := range []struct {
		path, body string
		status     int
		location   string
		tag, want  string
	}{
		{vi, `{"vnfdId":"` + vnfdID + `"}`, 201, vi + "/" + known, `"3"`, `"_links":{"self"`},
		{vi + "/" + known + "/terminate", `{"terminationType":"FORCEFUL"}`, 202, oc + "/" + known, "", ""},
		{oc + "/" + known + "/retry", "", 202, oc + "/" + known, "", ""},
		{oc + "/" + known + "/rollback", "", 202, oc + "/" + known, "", ""},
		{oc + "/" + known + "/fail", "", 200, "", `"3"`, `"operationState":"FAILED"`},
		{pk, "{}", 201, pk + "/" + known, `"3"`, `"packageContent"`},
		{pk + "/" + known + "/package_content/upload_from_uri", `{"addressInformation":"http://h/p.zip"}`, 202, "", "", ""},
		{vm, vimBody, 201, "", "", `"password":"***"`},
	} {
		f := newFake()
		f.err = &stored
		h := f.handler(Config{Requests: newRecord(f)})
		if c.path == vm { // fails for what the first has made, and is found to be a repetition then
			f.err = nil
			h = New(Config{Requests: lateRecord{newRecord(f), &stored}, Log: slog.New(slog.DiscardHandler)}, Deps{LCM: fakeLCM{f}, Reader: fakeReader{f},
				Packages: fakePackages{f}, VIMs: takenVIMs{fakeVIMs{f}}, Subscriptions: fakeSubscriptions{f}})
		}
		res := ask(t, h, "POST", c.path, c.body, "Idempotency-Key: k")
		got := content(t, res)
		location := strings.TrimPrefix(res.Header.Get("Location"), host)
		if res.StatusCode != c.status || location != c.location || res.Header.Get("ETag") != c.tag || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s %v", c.path, res.StatusCode, got, res.Header)
		}
	}
}

// takenVIMs has a VIM of every name.
type takenVIMs struct{ fakeVIMs }

func (takenVIMs) Register(context.Context, lcm.Scope, lcm.VIM) (*lcm.VIM, error) {
	return nil, lcm.Errorf(lcm.KindConflict, "there is one")
}

// lateRecord knows every key.
type lateRecord struct {
	*record
	first *lcm.RepeatedError
}

func (l lateRecord) Repeated(context.Context, *lcm.Request) error { return l.first }

func TestRefusalsAreRecorded(t *testing.T) {
	users := map[string]BasicUser{"r": {Password: "p", ProjectID: "x"}, "o": {Password: "p", ProjectID: "x", Role: lcm.RoleOperator}}
	h, r := keeping(Config{Auth: NewBasic(users)})
	reader, operator := "Authorization: Basic cjpw", "Authorization: Basic bzpw"
	for _, c := range []struct {
		method, path, body, user string
		status                   int
		action                   string // that is recorded, "" for none
		caller                   string
	}{
		{"DELETE", vi + "/" + known, "", "", 401, "", ""}, // nobody: as often as they like
		{"DELETE", vi + "/" + known, "", reader, 403, "DELETE " + vi + "/{vnfInstanceId}", "r"},
		{"DELETE", vi + "/" + busy, "", operator, 409, "DELETE " + vi + "/{vnfInstanceId}", "o"},
		{"POST", vi, "{", operator, 400, "POST " + vi, "o"},
		{"DELETE", vm + "/" + busy, "", operator, 409, "DELETE " + vm + "/{vimId}", "o"},
		{"DELETE", vi + "/" + known, "", operator, 204, "", ""},
		{"GET", vi + "/" + unknown, "", reader, 404, "", ""},
		{"GET", vi, "", "", 401, "", ""},
	} {
		r.refused, r.status = nil, nil
		var headers []string
		if c.user != "" {
			headers = []string{c.user}
		}
		res := ask(t, h, c.method, c.path, c.body, headers...)
		if res.StatusCode != c.status {
			t.Errorf("%s %s: %d", c.method, c.path, res.StatusCode)
		}
		if c.action == "" {
			if len(r.refused) != 0 {
				t.Errorf("%s %s: recorded %+v", c.method, c.path, r.refused)
			}
			continue
		}
		want := lcm.Request{ID: res.Header.Get("X-Openstack-Request-Id"), Action: c.action, Address: "192.0.2.1"}
		if c.caller != "" {
			want.Caller = lcm.Scope{ProjectID: "x", User: c.caller, Role: users[c.caller].Role}
		}
		if len(r.refused) != 1 || cmp.Diff(want, r.refused[0]) != "" || r.status[0] != c.status {
			t.Errorf("%s %s: recorded %+v, %v", c.method, c.path, r.refused, r.status)
		}
	}
}

func TestAuditEvents(t *testing.T) {
	f := newFake()
	role := lcm.RoleReader
	const path = "/vnfm/v1/audit_events"
	get := func(query string) *http.Response {
		h := f.handler(Config{Requests: newRecord(f), Auth: as(granted(lcm.Scope{ProjectID: "p", User: "u"}, role))})
		return ask(t, h, "GET", path+query, "")
	}
	if res := get(""); res.StatusCode != 403 {
		t.Errorf("a reader: %d", res.StatusCode)
	}
	role = lcm.RoleOperator
	res := get("?filter=(eq,vnfInstanceId," + known + ")%3B(gte,time,2026-01-01T00:00:00Z)")
	if got := content(t, res); res.StatusCode != 200 || got != `[{"action":"POST /x","id":"`+known+`","status":201}]` || f.scope.Admin || f.scope.ProjectID != "p" {
		t.Errorf("%d %s as %+v", res.StatusCode, got, f.scope)
	}
	if len(f.query.Filter) != 2 {
		t.Errorf("filter %+v", f.query.Filter)
	}
	for _, bad := range []string{"?filter=(eq,password,x)", "?what=1", "?nextpage_opaque_marker=x"} {
		if res := get(bad); res.StatusCode != 400 {
			t.Errorf("%s: %d", bad, res.StatusCode)
		}
	}
	if res := ask(t, f.handler(Config{Requests: newRecord(f)}), "POST", path, ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET" {
		t.Errorf("POST: %d, %v", res.StatusCode, res.Header)
	}
	if res := ask(t, f.handler(Config{}), "GET", path, ""); res.StatusCode != 404 {
		t.Errorf("without a record: %d", res.StatusCode)
	}
}
