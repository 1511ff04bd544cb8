package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestPermit: a rule gives a right when it names all that the right is about, and no single objects.
func TestPermit(t *testing.T) {
	scale := right{"patch", "apps", "deployments", "scale", "ns"}
	for _, tt := range []struct {
		rule  string
		right right
		want  bool
	}{
		{`{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}`, scale, true},
		{`{"verbs":["patch"],"apiGroups":["apps"],"resources":["deployments/scale"]}`, scale, true},
		{`{"verbs":["patch"],"apiGroups":["apps"],"resources":["*/scale"]}`, scale, true},
		{`{"verbs":["patch"],"apiGroups":["apps"],"resources":["deployments"]}`, scale, false},
		{`{"verbs":["patch"],"apiGroups":["apps"],"resources":["deployments/scale"],"resourceNames":["web"]}`, scale, false},
		{`{"verbs":["get","list"],"apiGroups":[""],"resources":["pods","services"]}`, right{"list", "", "pods", "", "ns"}, true},
		{`{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`, right{"list", "", "pods", "", "ns"}, false},
		{`{"verbs":["list"],"apiGroups":["apps"],"resources":["pods"]}`, right{"list", "", "pods", "", "ns"}, false},
		{`{"verbs":["list"],"apiGroups":[""],"resources":["*/scale"]}`, right{"list", "", "pods", "", "ns"}, false},
	} {
		var r rule
		if err := json.Unmarshal([]byte(tt.rule), &r); err != nil {
			t.Fatal(err)
		}
		if got := permit([]rule{r}, tt.right); got != tt.want {
			t.Errorf("%s permits %v: %t", tt.rule, tt.right, got)
		}
	}
}

// TestReviews: what is listed for a namespace is not asked for one by one; what is not, and where the list says that it is not
// all, is.
func TestReviews(t *testing.T) {
	const list = `{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`
	for _, tt := range []struct {
		name, status  string // of the list; "" when it may not be had
		lists, singly int
		lacks         string
	}{
		{name: "in the list", status: `{"resourceRules":[` + list + `,{"verbs":["get"],"apiGroups":["apps"],"resources":["deployments"]}]}`, lists: 1},
		{name: "one is not", status: `{"resourceRules":[` + list + `]}`, lists: 1, singly: 1, lacks: "to get deployments.apps in namespace ns"},
		{name: "not all", status: `{"resourceRules":[` + list + `],"incomplete":true}`, lists: 1, singly: 2, lacks: "to get deployments.apps in namespace ns"},
		{name: "none may be had", lists: 1, singly: 2, lacks: "to get deployments.apps in namespace ns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lists, singly := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				body, _ := io.ReadAll(r.Body)
				switch {
				case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews") && tt.status == "":
					lists++
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","code":403}`)
				case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
					lists++
					_, _ = io.WriteString(w, `{"status":`+tt.status+`}`)
				case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
					singly++
					_, _ = fmt.Fprintf(w, `{"status":{"allowed":%t}}`, strings.Contains(string(body), `"pods"`))
				default:
					_, _ = io.WriteString(w, "ok")
				}
			}))
			defer server.Close()
			c, err := newDriver(t, Config{}).connect(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}})
			if err != nil {
				t.Fatal(err)
			}
			rights := []right{{"get", "", "pods", "", "ns"}, {"get", "apps", "deployments", "", "ns"}}
			err = c.review(t.Context(), rights)
			if tt.lacks == "" && err != nil || tt.lacks != "" && (err == nil || !strings.Contains(err.Error(), tt.lacks)) {
				t.Errorf("the review says %v", err)
			}
			if lists != tt.lists || singly != tt.singly {
				t.Errorf("%d lists, %d single reviews", lists, singly)
			}
		})
	}
}
