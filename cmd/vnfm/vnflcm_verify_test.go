package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const difference = `{"kind":"MISSING","part":"VNFC","id":"c2","name":"VDU1","recorded":"server s","found":"no such server",
	"resource":{"vimConnectionId":"v","resourceId":"s","vimLevelResourceType":"OS::Nova::Server"},"mend":{"operation":"HEAL","vnfcInstanceId":["c2"]}}`

// TestVerifyCommand has the command say what the API answers, in every format, and end as it says that it does.
func TestVerifyCommand(t *testing.T) {
	answers := map[string]string{
		"/vnfm/v1/vnf_instances/same/verify": `{"vnfInstanceId":"same","vimId":"v","result":"SAME","verifiedAt":"2026-01-02T03:04:05Z","differenceCount":0,"differences":[]}`,
		"/vnfm/v1/vnf_instances/one/verify":  `{"vnfInstanceId":"one","result":"DIFFERS","differsSince":"2026-01-01T00:00:00Z","differenceCount":1,"differences":[` + difference + `]}`,
		"/vnfm/v1/vnf_instances/whole/verify": `{"vnfInstanceId":"whole","result":"DIFFERS","differenceCount":2,"differences":[` + difference + `,
			{"kind":"UNRECORDED","part":"VNFC","name":"VDU1","found":"server t","mend":{"operation":"HEAL"}}]}`,
		"/vnfm/v1/vnf_instances/busy/verify": `{"vnfInstanceId":"busy","result":"DIFFERS","differenceCount":1,"differences":[
			{"kind":"BUSY","part":"VNF","found":"the stack is UPDATE_IN_PROGRESS","mend":{"first":"wait"}}]}`,
		"/vnfm/v1/verifications/one":    `{"vnfInstanceId":"one","result":"DIFFERS","changedSince":true,"verifiedAt":"2026-01-02T03:04:05Z","differenceCount":1,"differences":[` + difference + `]}`,
		"/vnfm/v1/verifications/failed": `{"vnfInstanceId":"failed","result":"UNVERIFIED","problem":"VIM v does not answer","differenceCount":0,"differences":[]}`,
		"/vnfm/v1/verifications?filter=%28neq%2Cresult%2CSAME%29": `[{"vnfInstanceId":"one","vnfInstanceName":"n","vimId":"v","result":"DIFFERS","differenceCount":12,"differsSince":"2026-01-01T00:00:00Z","verifiedAt":"2026-01-02T03:04:05Z"},
			{"vnfInstanceId":"two","result":"UNVERIFIED","differenceCount":0,"problem":"VIM v does not answer"}]`,
	}
	const all = "/vnfm/v1/verifications?filter=%28neq%2Cresult%2CSAME%29"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[strings.TrimPrefix(r.RequestURI, "/unverified")]
		if r.RequestURI == "/unverified"+all {
			body = `[{"vnfInstanceId":"two","result":"UNVERIFIED","differenceCount":0,"problem":"VIM v does not answer"}]`
		}
		if !ok || r.Method != http.MethodGet {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			body = `{"status":409,"detail":"Vnf instance x has LCM operation occurrence o: HEAL in PROCESSING."}`
		}
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	for _, tt := range []struct {
		args     string
		code     int
		out, err []string // parts of what is printed
	}{
		{"same", 0, nil, []string{"VNF instance same is what is recorded of it (2026-01-02T03:04:05Z)."}},
		{"same -f json", 0, []string{"[]"}, nil},
		{"one", 3, []string{"| Kind ", "| MISSING | VNFC | VDU1 | c2 | s ", "| server s | no such server | heal vnfcInstanceId c2 |"},
			[]string{"is not what is recorded of it, as was first seen at 2026-01-01T00:00:00Z.", "To mend it: vnfm vnflcm heal one --vnfc-instance c2\n"}},
		{"one -f value -c Kind -c ID", 3, []string{"MISSING c2\n"}, nil},
		{"one -f yaml -c Mend", 3, []string{"- Mend: heal vnfcInstanceId c2"}, nil},
		{"one -f json -c Found --noindent", 3, []string{`[{"Found": "no such server"}]`}, nil},
		{"whole", 3, []string{"heal (the whole VNF)"}, []string{"To mend it: vnfm vnflcm heal whole\n"}},
		{"busy -f value -c Mend", 3, []string{"wait\n"}, nil},
		{"one --recorded", 3, []string{"MISSING"}, []string{"has been changed since it was verified (2026-01-02T03:04:05Z)"}},
		{"failed --recorded", 1, nil, []string{"VNF instance failed could not be verified: VIM v does not answer"}},
		{"--all -f value", 3, []string{"one n v DIFFERS 12 2026-01-01T00:00:00Z 2026-01-02T03:04:05Z  \n", "two   UNVERIFIED 0    VIM v does not answer\n"}, nil},
		{"--all --os-endpoint " + s.URL + "/unverified", 1, []string{"UNVERIFIED", "| Changed | Problem "}, []string{"1 VNF instances could not be verified"}},
		{"--all --recorded", 2, nil, []string{"--recorded is for one VNF instance"}},
		{"unknown", 1, nil, []string{"HEAL in PROCESSING"}},
		{"", 2, nil, []string{"either a VNF instance or --all is wanted"}},
		{"one --all", 2, nil, []string{"either a VNF instance or --all is wanted"}},
		{"one two", 2, nil, []string{"accepts at most 1 arg"}},
		{"one -f shell", 2, nil, []string{"invalid choice"}},
	} {
		code, out, errs := ours(append([]string{"vnflcm", "verify", "--os-auth-type", "none", "--os-endpoint", s.URL}, strings.Fields(tt.args)...)...)
		if code != tt.code {
			t.Errorf("verify %s: exit status %d, not %d\n%s%s", tt.args, code, tt.code, out, errs)
		}
		for _, part := range tt.out {
			if !strings.Contains(out, part) {
				t.Errorf("verify %s prints\n%swithout %q", tt.args, out, part)
			}
		}
		for _, part := range tt.err {
			if !strings.Contains(errs, part) {
				t.Errorf("verify %s says %q, without %q", tt.args, errs, part)
			}
		}
		if strings.Contains(errs, errDiffers.Error()) {
			t.Errorf("verify %s says twice that there are differences: %q", tt.args, errs)
		}
	}
}
