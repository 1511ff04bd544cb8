package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// What clients write otherwise than the standard does arrives as the standard has it.
func TestNormalised(t *testing.T) {
	for _, c := range []struct {
		path, body, raw string // raw is what is handed on, "" for the body as it came
		want            any
	}{
		{"/scale", `{"type":"SCALE_OUT","aspectId":"a","numberOfSteps":"2"}`, `{"aspectId":"a","numberOfSteps":2,"type":"SCALE_OUT"}`,
			sol003.ScaleVnfRequest{Type: "SCALE_OUT", AspectId: "a", NumberOfSteps: 2}},
		{"/scale", `{ "type":"SCALE_IN", "aspectId":"a" }`, ``, sol003.ScaleVnfRequest{Type: "SCALE_IN", AspectId: "a"}},
		{"/scale_to_level", `{"scaleInfo":[{"aspectId":"a","scaleLevel":"3"}]}`, `{"scaleInfo":[{"aspectId":"a","scaleLevel":3}]}`,
			sol003.ScaleVnfToLevelRequest{ScaleInfo: []sol003.ScaleInfo{{AspectId: "a", ScaleLevel: 3}}}},
		{"/heal", `{"vnfcInstanceId":"v"}`, `{"vnfcInstanceId":["v"]}`, sol003.HealVnfRequest{VnfcInstanceId: []string{"v"}}},
		{"/heal", `{"vnfcInstanceId":["v","w"]}`, ``, sol003.HealVnfRequest{VnfcInstanceId: []string{"v", "w"}}},
		{"/operate", `{"changeStateTo":"STOPPED","stopType":"GRACEFUL","gracefulStopTimeout":"5"}`,
			`{"changeStateTo":"STOPPED","gracefulStopTimeout":5,"stopType":"GRACEFUL"}`,
			sol003.OperateVnfRequest{ChangeStateTo: "STOPPED", StopType: "GRACEFUL", GracefulStopTimeout: 5}},
	} {
		f := newFake()
		if res := ask(t, f.handler(Config{}), "POST", vi+"/"+known+c.path, c.body, jsn); res.StatusCode != 202 {
			t.Errorf("%s %s: %s", c.path, c.body, content(t, res))
			continue
		}
		if c.raw == "" {
			c.raw = c.body
		}
		if string(f.raw) != c.raw {
			t.Errorf("%s %s is handed on as %s, want %s", c.path, c.body, f.raw, c.raw)
		}
		if diff := cmp.Diff(c.want, f.req); diff != "" {
			t.Errorf("%s %s: %s", c.path, c.body, diff)
		}
	}
	f := newFake()
	h := f.handler(Config{})
	ask(t, h, "POST", oc+"/"+opOcc+"/cancel", `{"cancelMode":"FORCEFUL"}`, jsn)
	if f.mode != sol003.CancelModeTypeForceful {
		t.Errorf("cancel mode %q", f.mode)
	}
	ask(t, h, "PATCH", vi+"/"+known, `{"metadata":{"a":null},"vnfInstanceName":null}`, mrg, `If-Match: "7"`)
	if string(f.raw) != `{"metadata":{"a":null},"vnfInstanceName":null}` || f.ifMatch != 7 {
		t.Errorf("PATCH: %s with version %d", f.raw, f.ifMatch)
	}
}

func TestSubscriptionRequests(t *testing.T) {
	whole := sol003.VnfProductsFromProvider{VnfProvider: "p", VnfProducts: []sol003.VnfProduct{{VnfProductName: "n"}}}
	products := `{"vnfProvider":"p","vnfProducts":[{"vnfProductName":"n"}]}`
	auth := `{"authType":["BASIC"],"paramsBasic":{"userName":"u","password":"hunter2"}}`
	for _, body := range []string{
		`{"callbackUri":"http://h","authentication":` + auth + `,"filter":{"vnfInstanceSubscriptionFilter":{"vnfProductsFromProviders":[` + products + `]}}}`,
		`{"callbackUri":"http://h","subscriptionAuthentication":` + auth + `,"filter":{"vnfInstanceSubscriptionFilter":{"vnfProductsFromProviders":` + products + `}}}`,
	} {
		f := newFake()
		res := ask(t, f.handler(Config{}), "POST", su, body, jsn)
		if got := content(t, res); res.StatusCode != 201 || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %d %s", body, res.StatusCode, got)
		}
		got, _ := f.req.(sol003.LccnSubscriptionRequest)
		if got.Authentication == nil || got.Authentication.ParamsBasic.Password != "hunter2" {
			t.Errorf("%s: authentication %+v", body, got.Authentication)
		}
		if got.Filter == nil || got.Filter.VnfInstanceSubscriptionFilter == nil ||
			!cmp.Equal(got.Filter.VnfInstanceSubscriptionFilter.VnfProductsFromProviders, []sol003.VnfProductsFromProvider{whole}) {
			t.Errorf("%s: filter %+v", body, got.Filter)
		}
	}
	// A password that breaks a rule is not shown.
	res := ask(t, newFake().handler(Config{}), "POST", su, `{"callbackUri":"http://h","authentication":{"authType":["BASIC"],"paramsBasic":{"userName":"u","password":["hunter2"]}}}`, jsn)
	if got := detail(t, res); res.StatusCode != 400 || strings.Contains(got, "hunter2") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
}

// An op occ links to its grant where an NFVO was asked, whatever the NFVO calls it.
func TestGrantLink(t *testing.T) {
	for id, want := range map[string]string{
		"grant-1": "https://nfvo/grants/grant-1", "a b/\u00e4\"<": "https://nfvo/grants/a%20b%2F%C3%A4%22%3C", "": "",
	} {
		body, err := json.Marshal(sol003.VnfLcmOpOcc{Id: known, GrantId: id, VnfInstanceId: known})
		if err != nil {
			t.Fatal(err)
		}
		for grants, want := range map[string]string{"https://nfvo/grants": want, "": ""} {
			var got sol003.VnfLcmOpOcc
			if err := json.Unmarshal(opOccs.appendRepresentation(nil, origin{here: host, grants: grants}, known, body, selection{}), &got); err != nil {
				t.Fatal(err)
			}
			if href := got.UnderscoreLinks["grant"].Href; href != want {
				t.Errorf("grant %q of %q: %q, want %q", id, grants, href, want)
			}
		}
	}
}

// The links of a representation are those of what can be done with it now.
func TestLinks(t *testing.T) {
	info := func(scaleStatus string) string {
		return `{"instantiationState":"INSTANTIATED","instantiatedVnfInfo":{"flavourId":"f"` + scaleStatus + `}}`
	}
	op := func(operation, state, more string) string {
		return `{"operationState":"` + state + `","operation":"` + operation + `","vnfInstanceId":"` + known + `"` + more + `}`
	}
	some := []string{"changeExtConn", "changeFlavour", "heal", "operate", "self", "terminate"}
	all := append(slices.Clone(some), "scale", "scaleToLevel")
	ended := []string{"self", "vnfInstance"}
	live := append(slices.Clone(ended), "cancel")
	failed := append(slices.Clone(ended), "fail", "retry")
	undo := append(slices.Clone(failed), "rollback")
	for _, c := range []struct {
		res  *resource
		body string
		want []string
	}{
		{instances, `{"instantiationState":"NOT_INSTANTIATED"}`, []string{"instantiate", "self"}},
		{instances, info(``), some},
		{instances, info(`,"scaleStatus":[ ]`), some},
		{instances, info(`,"scaleStatus":[{"aspectId":"a","scaleLevel":0}]`), all},
		{opOccs, op("SCALE", "STARTING", `,"isCancelPending":false`), live},
		{opOccs, op("SCALE", "PROCESSING", `,"isCancelPending":false`), live},
		{opOccs, op("SCALE", "ROLLING_BACK", `,"isCancelPending":false`), live},
		{opOccs, op("SCALE", "PROCESSING", `,"isCancelPending":true`), ended},
		{opOccs, op("SCALE", "COMPLETED", `,"isCancelPending":false`), ended},
		{opOccs, op("SCALE", "FAILED", ``), ended},
		{opOccs, op("SCALE", "ROLLED_BACK", ``), ended},
		{opOccs, op("SCALE", "FAILED_TEMP", `,"operationParams":{"type":"SCALE_OUT"}`), undo},
		{opOccs, op("SCALE", "FAILED_TEMP", `,"operationParams":{"type":"SCALE_IN"}`), failed},
		{opOccs, op("INSTANTIATE", "FAILED_TEMP", ``), undo},
		{opOccs, op("SCALE_TO_LEVEL", "FAILED_TEMP", ``), undo},
		{opOccs, op("OPERATE", "FAILED_TEMP", ``), undo},
		{opOccs, op("CHANGE_EXT_CONN", "FAILED_TEMP", ``), undo},
		{opOccs, op("CHANGE_FLAVOUR", "FAILED_TEMP", ``), undo},
		{opOccs, op("MODIFY_INFO", "FAILED_TEMP", ``), undo},
		{opOccs, op("TERMINATE", "FAILED_TEMP", ``), failed},
		{opOccs, op("HEAL", "FAILED_TEMP", ``), failed},
		{subscriptions, `{"callbackUri":"x"}`, []string{"self"}},
	} {
		raw := c.res.appendRepresentation(nil, origin{here: host}, known, []byte(c.body), selection{})
		var got struct {
			Links map[string]sol003.Link `json:"_links"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		names := make([]string, 0, len(got.Links))
		for name, l := range got.Links {
			names = append(names, name)
			if !strings.HasPrefix(l.Href, host+"/vnflcm/v1/") {
				t.Errorf("%s: link %s leads to %s", c.body, name, l.Href)
			}
		}
		slices.Sort(names)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%s: %s", c.body, diff)
		}
	}
}

func TestErrorsOfTasks(t *testing.T) {
	for _, c := range []struct{ method, path, body string }{
		{"POST", vi + "/" + known + "/heal", `{}`},
		{"PATCH", vi + "/" + known, `{}`},
		{"POST", oc + "/" + opOcc + "/cancel", `{"cancelMode":"GRACEFUL"}`},
		{"POST", su, `{"callbackUri":"http://h"}`},
		{"GET", su, ``},
		{"GET", su + "/" + known, ``},
		{"DELETE", su + "/" + known, ``},
	} {
		for kind, status := range map[lcm.Kind]int{lcm.KindInvalid: 400, lcm.KindNotFound: 404, lcm.KindConflict: 409, lcm.KindUnavailable: 503} {
			f := newFake()
			f.err = lcm.Errorf(kind, "it is %s", kind)
			res := ask(t, f.handler(Config{}), c.method, c.path, c.body, jsn)
			got := detail(t, res)
			if res.StatusCode != status || got != "it is "+string(kind) && (kind != lcm.KindNotFound || c.method != "PATCH") {
				t.Errorf("%s %s, %s: %d %s", c.method, c.path, kind, res.StatusCode, got)
			}
		}
	}
}

func TestAliasesOfSubscriptions(t *testing.T) {
	for name, want := range subscriptions.aliases {
		f := newFake()
		value := map[string]string{"notificationTypes": "VnfIdentifierCreationNotification", "operationTypes": "SCALE", "operationStates": "FAILED"}[name]
		if value == "" {
			value = "x"
		}
		res := ask(t, f.handler(Config{}), "GET", su+"?filter=(eq,"+name+","+value+")", "")
		if res.StatusCode != 200 || len(f.query.Filter) != 1 || !slices.Equal(f.query.Filter[0].Path, want) {
			t.Errorf("%s: %d %+v", name, res.StatusCode, f.query.Filter)
		}
	}
}

// knowing has one thing to say of every Idempotency-Key.
type knowing struct {
	*record
	says error
}

func (k knowing) Repeated(context.Context, *lcm.Request) error { return k.says }

// A subscription that is there already is answered by what is known of the request's key.
func TestSubscriptionAgain(t *testing.T) {
	made := &lcm.RepeatedError{ResourceID: unknown, Body: []byte(`{"id":"` + unknown + `","callbackUri":"http://twice"}`), Version: 3}
	for _, c := range []struct {
		says   error
		header []string
		status int
		id     string
	}{
		{nil, nil, 303, known},
		{nil, []string{"Idempotency-Key: k"}, 303, known},
		{made, []string{"Idempotency-Key: k"}, 201, unknown},
		{&lcm.Error{Kind: lcm.KindInvalid, Status: 422, Detail: "the key was another request's"}, []string{"Idempotency-Key: k"}, 422, ""},
	} {
		f := newFake()
		res := ask(t, f.handler(Config{Requests: knowing{newRecord(f), c.says}}), "POST", su, `{"callbackUri":"http://twice"}`, c.header...)
		location := res.Header.Get("Location")
		if res.StatusCode != c.status || c.id != "" && location != host+su+"/"+c.id {
			t.Errorf("%v, %v: %d, Location %q, %s", c.says, c.header, res.StatusCode, location, content(t, res))
		}
	}
}
