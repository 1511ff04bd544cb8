package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

type fakeVerifier struct{ *fake }

var seenAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (f fakeVerifier) Verify(_ context.Context, s lcm.Scope, id string) (*lcm.Verification, error) {
	f.scope = s
	if err := f.check(id, "Can not find requested vnf instance: %s"); err != nil {
		return nil, err
	}
	return &lcm.Verification{InstanceID: id, VimID: "vim", Version: 7, At: seenAt, Since: seenAt.Add(-time.Hour), Differences: []lcm.Difference{{
		Kind: lcm.DifferenceMissing, Part: lcm.PartVNFC, ID: "c", Name: "VDU", Recorded: "server s", Found: "no such server", Mend: lcm.HealOf("c"),
		Resource: &sol003.ResourceHandle{VimConnectionId: "vim", ResourceId: "s", VimLevelResourceType: "OS::Nova::Server"},
	}}}, nil
}

func (f fakeVerifier) VerificationBody(_ context.Context, s lcm.Scope, id string) (lcm.Body, error) {
	f.scope = s
	return find(f.err, []lcm.Body{{ID: known, JSON: []byte(`{"vnfInstanceId":"` + known + `","result":"SAME"}`)}}, id, "Vnf instance %s has not been verified.")
}

func (f fakeVerifier) Verifications(_ context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	f.scope = s
	return f.list(q, []lcm.Body{{ID: known, JSON: []byte(`{"vnfInstanceId":"` + known + `","result":"DIFFERS","differences":[{"kind":"MISSING"}]}`)}})
}

const differs = `{"vnfInstanceId":"` + known + `","vimId":"vim","result":"DIFFERS","verifiedAt":"2026-01-02T03:04:05Z","differsSince":"2026-01-02T02:04:05Z",
	"differenceCount":1,"differences":[{"kind":"MISSING","part":"VNFC","id":"c","name":"VDU","recorded":"server s","found":"no such server",
	"resource":{"vimConnectionId":"vim","resourceId":"s","vimLevelResourceType":"OS::Nova::Server"},"mend":{"operation":"HEAL","vnfcInstanceId":["c"]}}]}`

const verifyOf = "/vnfm/v1/vnf_instances/"

func TestVerify(t *testing.T) {
	const verify = verifyOf
	for _, tt := range []struct {
		target string
		err    error
		status int
		want   string // the whole body, or the problem's detail
	}{
		{verify + known + "/verify", nil, 200, differs},
		{verify + busy + "/verify", nil, 409, busy + " is busy"},
		{verify + unknown + "/verify", nil, 404, "Can not find requested vnf instance: " + unknown},
		{verify + known + "/verify", &lcm.Error{Kind: lcm.KindTerminal, Status: 502, Detail: "Keystone refuses"}, 502, "Keystone refuses"},
		{verify + known + "/verify", lcm.Errorf(lcm.KindRetryable, "no answer"), 503, "no answer"},
		{verify + known + "/verify", &lcm.Error{Kind: lcm.KindUnsupported, Status: 404, Detail: "not there"}, 404, "not there"},
		{"/vnfm/v1/verifications/" + known, nil, 200, `{"vnfInstanceId":"` + known + `","result":"SAME"}`},
		{"/vnfm/v1/verifications/" + unknown, nil, 404, "Vnf instance " + unknown + " has not been verified."},
		{"/vnfm/v1/verifications?all_fields", nil, 200, `[{"vnfInstanceId":"` + known + `","result":"DIFFERS","differences":[{"kind":"MISSING"}]}]`},
		{"/vnfm/v1/verifications?filter=(neq,result,SAME)", nil, 200, `[{"vnfInstanceId":"` + known + `","result":"DIFFERS"}]`},
		{"/vnfm/v1/verifications?fields=differences&filter=(eq,differences/part,VNFC)", nil, 200, `[{"vnfInstanceId":"` + known + `","result":"DIFFERS","differences":[{"kind":"MISSING"}]}]`},
		{"/vnfm/v1/verifications?filter=(eq,no,VNFC)", nil, 400, "Invalid"},
		{"/vnfm/v1/verifications?colour=red", nil, 400, "Not supported parameters: colour"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			f := newFake()
			f.err = tt.err
			res := ask(t, f.handler(Config{Log: slog.New(slog.DiscardHandler)}), http.MethodGet, tt.target, "")
			if res.StatusCode != tt.status {
				t.Fatalf("%d: %s", res.StatusCode, content(t, res))
			}
			if tt.status != 200 {
				if d := detail(t, res); len(d) < len(tt.want) || d[:len(tt.want)] != tt.want && tt.status != 400 {
					t.Errorf("%s", d)
				}
				return
			}
			var got, want any
			if err := json.Unmarshal([]byte(content(t, res)), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestVerifyRoles has readers see what was seen, and operators look now, of their own project, and nobody else.
func TestVerifyRoles(t *testing.T) {
	for target, role := range map[string]lcm.Role{
		verifyOf + known + "/verify": lcm.RoleOperator, "/vnfm/v1/verifications/" + known: lcm.RoleReader, "/vnfm/v1/verifications": lcm.RoleReader,
	} {
		f := newFake()
		h := f.handler(Config{Auth: NewBasic(map[string]BasicUser{
			"r": {Password: "p", ProjectID: "mine", Role: role}, "s": {Password: "p", ProjectID: "mine", Role: lcm.RoleReader},
		})})
		if res := ask(t, h, http.MethodGet, target, "", "Authorization: Basic czpw"); (res.StatusCode == 403) != (role > lcm.RoleReader) {
			t.Errorf("%s as a reader: %d %s", target, res.StatusCode, content(t, res))
		}
		if res := ask(t, h, http.MethodGet, target, ""); res.StatusCode != 401 {
			t.Errorf("%s without credentials: %d", target, res.StatusCode)
		}
		if res := ask(t, h, http.MethodGet, target, "", "Authorization: Basic cjpw"); res.StatusCode != 200 {
			t.Errorf("%s as %s: %d %s", target, role, res.StatusCode, content(t, res))
		}
		if f.scope.ProjectID != "mine" || f.scope.Admin {
			t.Errorf("%s: scope %+v", target, f.scope)
		}
		if res := ask(t, h, http.MethodPost, target, "{}", "Authorization: Basic cjpw"); res.StatusCode != 405 {
			t.Errorf("POST %s: %d", target, res.StatusCode)
		}
	}
}
