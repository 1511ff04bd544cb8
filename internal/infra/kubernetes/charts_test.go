package kubernetes

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func TestChoose(t *testing.T) {
	index := []byte(`
entries:
  web:
  - {version: 1.2.0, urls: [web-1.2.0.tgz]}
  - {version: 1.10.0, urls: [web-1.10.0.tgz], digest: abc}
  - {version: 2.0.0-rc1, urls: [web-2.tgz]}
  - {version: not a version, urls: [x]}
  - {version: 0.1.0}
  only-early: [{version: 1.0.0-alpha, urls: [x]}]
`)
	for _, tt := range []struct{ chart, version, want, err string }{
		{chart: "web", want: "1.10.0"},
		{chart: "web", version: "1.2.0", want: "1.2.0"},
		{chart: "web", version: "v1.2.0", want: "1.2.0"},
		{chart: "web", version: "2.0.0-rc1", want: "2.0.0-rc1"},
		{chart: "web", version: "3", err: "Helm repository https://charts/x has no version 3 of chart web"},
		{chart: "web", version: "0.1.0", err: "Helm repository https://charts/x does not say where chart web 0.1.0 is"},
		{chart: "only-early", err: "Helm repository https://charts/x has no version that is no pre-release of chart only-early"},
		{chart: "db", err: "Helm repository https://charts/x has no chart db"},
	} {
		got, err := choose(index, &chart{External: true, Name: tt.chart, Repository: "https://charts/x"}, tt.version)
		if tt.err != "" {
			if !lcm.Is(err, lcm.KindTerminal) || err.Error() != tt.err {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		if err != nil || got.Version != tt.want {
			t.Errorf("%+v: %+v %v", tt, got, err)
		}
	}
	if _, err := choose([]byte("entries: ["), &chart{External: true}, ""); !lcm.Is(err, lcm.KindTerminal) {
		t.Errorf("no YAML: %v", err)
	}
}

func FuzzChoose(f *testing.F) {
	f.Add([]byte("entries: {web: [{version: 1.0.0, urls: [a]}]}"), "")
	f.Fuzz(func(t *testing.T, index []byte, version string) {
		if e, err := choose(index, &chart{Name: "web"}, version); err == nil && (len(e.URLs) == 0 || e.Version == "" && version != "") {
			t.Errorf("%+v", e)
		}
	})
}

func TestCompleteCharts(t *testing.T) {
	x := &lcm.Execution{Instance: &lcm.Instance{ID: "01a2"}, Flavour: &vnfd.Flavour{Aspects: []vnfd.ScalingAspect{{ID: "a"}, {ID: "b"}}}}
	good := chart{External: "false", Path: "web.tgz"}
	for name, tt := range map[string]struct {
		charts   []chart
		replicas map[string]string
		err      string
	}{
		"named by number":    {charts: []chart{good, {External: false, Path: "db.tgz", Release: "db"}, {External: "True", Name: "x", Repository: "https://y"}}},
		"none":               {err: "Parameter input values missing for the key 'using_helm_install_param'"},
		"whence":             {charts: []chart{{Path: "x"}}, err: "Parameter input values missing for the key 'exthelmchart'"},
		"no path":            {charts: []chart{{External: "false"}}, err: "Parameter input values missing for the key 'helmchartfile_path'"},
		"no chart":           {charts: []chart{{External: "true", Repository: "x"}}, err: "Parameter input values missing for the key 'helmchartname'"},
		"no repository":      {charts: []chart{{External: "true", Name: "x"}}, err: "Parameter input values missing for the key 'exthelmrepo_url'"},
		"a flag for a name":  {charts: []chart{{External: "false", Path: "x", Release: "--debug"}}, err: "is no name of a Helm release"},
		"the same twice":     {charts: []chart{{External: "false", Path: "x", Release: "a"}, {External: "false", Path: "x", Release: "a"}}, err: "two releases a"},
		"no value":           {charts: []chart{{External: "false", Path: "x", Parameters: []string{"secret"}}}, err: "not of the form name=value"},
		"an aspect is not":   {charts: []chart{good}, replicas: map[string]string{"a": "replicas"}, err: "Replica value for aspectId 'b' is missing"},
		"all of the aspects": {charts: []chart{good}, replicas: map[string]string{"a": "replicas", "b": "back.replicas"}},
	} {
		p := &params{Charts: tt.charts, Replicas: tt.replicas}
		err := p.complete(x)
		if tt.err != "" {
			if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "named by number" {
			got := []string{p.Charts[0].Release, p.Charts[1].Release, p.Charts[2].Release}
			if diff := cmp.Diff([]string{"vnf-01a2", "db", "vnf-01a2-3"}, got); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestMine: what is an instance's by its label, by its release, by a hook, by a claim's labels; and what is not.
func TestMine(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := at.Format(time.RFC3339)
	made := func(when time.Time, labels, annotations map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetCreationTimestamp(metav1.NewTime(when))
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
		return u
	}
	helms := map[string]string{managedLabel: "Helm"}
	of := func(name, ns string) map[string]string {
		return map[string]string{releaseAnnotation: name, namespaceAnnotation: ns}
	}
	for name, tt := range map[string]struct {
		o    object
		u    *unstructured.Unstructured
		want bool
	}{
		"label":                 {object{}, made(at, map[string]string{instanceLabel: "id"}, nil), true},
		"another's label":       {object{}, made(at, map[string]string{instanceLabel: "other"}, nil), false},
		"of the release":        {object{Release: "web", Since: since}, made(at, helms, of("web", "ns")), true},
		"release not ours":      {object{Release: "web"}, made(at, helms, of("web", "ns")), false},
		"of another release":    {object{Release: "web", Since: since}, made(at, helms, of("db", "ns")), false},
		"of another namespace":  {object{Release: "web", Since: since}, made(at, helms, of("web", "other")), false},
		"not marked":            {object{Release: "web", Since: since}, made(at, nil, nil), false},
		"our label alone":       {object{Release: "web", Since: since}, made(at, map[string]string{instanceLabel: "id"}, nil), false},
		"a hook's":              {object{Release: "web", Since: since, Hook: true}, made(at, nil, map[string]string{hookAnnotation: "pre-install"}), true},
		"older than the hook":   {object{Release: "web", Since: since, Hook: true}, made(at.Add(-time.Second), nil, map[string]string{hookAnnotation: "pre-install"}), false},
		"in place of a hook's":  {object{Release: "web", Since: since, Hook: true}, made(at, nil, nil), false},
		"what a hook has made":  {object{Release: "web", Since: since, Hook: true, Noted: true, UID: "u"}, identified(made(at, nil, map[string]string{hookAnnotation: "pre-install"}), "u"), true},
		"another's hook's":      {object{Release: "web", Since: since, Hook: true, Noted: true, UID: "u"}, identified(made(at, nil, map[string]string{hookAnnotation: "pre-install"}), "v"), false},
		"after a hook's":        {object{Release: "web", Since: since, Hook: true, Noted: true}, identified(made(at, nil, map[string]string{hookAnnotation: "pre-install"}), "v"), false},
		"a claim":               {object{Release: "web", Since: since, Claim: true, Selector: map[string]string{"app": "db"}}, made(at, map[string]string{"app": "db", "x": "y"}, nil), true},
		"a claim of before":     {object{Release: "web", Since: since, Claim: true, Selector: map[string]string{"app": "db"}}, made(at.Add(-time.Hour), map[string]string{"app": "db"}, nil), false},
		"a claim of others":     {object{Release: "web", Since: since, Claim: true, Selector: map[string]string{"app": "db"}}, made(at, map[string]string{"app": "web"}, nil), false},
		"a claim of no release": {object{Release: "web", Claim: true, Selector: map[string]string{"app": "db"}}, made(at, map[string]string{"app": "db"}, nil), false},
	} {
		if got := tt.o.mine(tt.u, "ns", "id"); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func identified(u *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	u.SetUID(uid)
	return u
}

// TestDiscovered: what charts may ask for, of an API server that tells kinds and of one that does not.
func TestDiscovered(t *testing.T) {
	for said, want := range map[string][]string{
		`{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1"}]}]}`: {"apps/v1"},
		`{"kind":"APIVersions","versions":["v1"]}`:                                                   nil,
		`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"responseKind":{"group":"","version":"v1","kind":"Pod"}}]}]},
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"responseKind":{"group":"apps","version":"v1","kind":"Deployment"}},{"resource":"odd"}]}]}]}`: {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"},
	} {
		var d discovered
		if err := json.Unmarshal([]byte(said), &d); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.apis()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestHelmTurn: a step that runs helm waits without a worker for helm's turn, and its run takes no other; other steps do not.
func TestHelmTurn(t *testing.T) {
	runner := helm.New(helm.Config{MaxConcurrent: 1, TempDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	workers := crew.New(2)
	d := New(Config{Helm: runner, Crew: workers}, slog.New(slog.DiscardHandler))
	steps := d.shared([]lcm.Step{{Name: "respawn-delete"}, {Name: "ready"}})
	x := func(helm any) *lcm.Execution {
		return &lcm.Execution{
			Op: &lcm.OpOcc{}, Target: &lcm.VimTarget{VIM: lcm.VIM{ID: "vim"}},
			Instance: &lcm.Instance{ID: "i", Request: &sol003.InstantiateVnfRequest{AdditionalParams: map[string]any{helmKey: helm}}},
		}
	}
	leave, ok := runner.Turn()
	if !ok {
		t.Fatal("there is no turn")
	}
	if got, wait := steps[0].Turn(t.Context(), x("true")); got != nil || wait.After() == 0 || !strings.Contains(wait.Note, "helm") {
		t.Errorf("%v", wait)
	}
	for n, helm := range []any{"false", "true"} {
		if done, _ := steps[n].Turn(t.Context(), x(helm)); done == nil {
			t.Errorf("step %d runs no helm and waits for it", n)
		} else {
			done()
		}
	}
	leave()
	done, _ := steps[0].Turn(t.Context(), x("true"))
	if done == nil {
		t.Fatal("the turn has not come")
	}
	if _, ok := runner.Turn(); ok {
		t.Error("there is another turn")
	}
	done()
	if _, ok := runner.Turn(); !ok {
		t.Error("the turn has not been given back")
	}
}

func TestStanding(t *testing.T) {
	for _, tt := range []struct {
		list []string
		want int
	}{
		{nil, 0},
		{[]string{"pending-install"}, 0},
		{[]string{"failed"}, 0},
		{[]string{"deployed"}, 1},
		{[]string{"superseded", "deployed", "pending-upgrade"}, 2},
		{[]string{"superseded", "superseded", "failed"}, 2},
		{[]string{"deployed", "failed", "failed"}, 1},
	} {
		var list []revision
		for n, status := range tt.list {
			list = append(list, revision{number: n + 1, status: status})
		}
		got := 0
		if r := standing(list); r != nil {
			got = r.number
		}
		if got != tt.want {
			t.Errorf("%v: %d", tt.list, got)
		}
	}
}
