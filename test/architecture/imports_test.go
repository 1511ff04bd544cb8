// Package architecture tests that the house stands as it is drawn: who may import whom, what a room may be called, that
// generated code is fresh.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-f1a0ccf1/vnfm"

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		all = append(all, p)
	}
	if len(all) < 15 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// may says what of our own a room's packages may import besides their own room; a room is a path and all below it.
var may = map[string][]string{
	"api/openapi":         {"api/openapi"},
	"migrations":          {},
	"deploy":              {"internal/csar"},
	"internal/vnfd":       {},
	"internal/csar":       {},
	"internal/lcm":        {"api/openapi/sol003", "internal/vnfd"},
	"internal/httpapi":    {"api/openapi", "internal/lcm", "internal/vnfd", "internal/csar"},
	"internal/store":      {"api/openapi/sol003", "internal/lcm", "internal/vnfd", "internal/csar", "migrations"},
	"internal/outbound":   {"internal/lcm"},
	"internal/notify":     {"api/openapi/sol003", "internal/lcm", "internal/outbound"},
	"internal/nfvo":       {"api/openapi/sol003", "internal/lcm", "internal/outbound"},
	"internal/pkgm":       {"api/openapi/sol003", "internal/lcm", "internal/vnfd", "internal/csar", "internal/outbound"},
	"internal/vim":        {"api/openapi/sol003", "internal/lcm", "internal/vnfd", "internal/csar"},
	"internal/infra":      {"api/openapi/sol003", "internal/lcm", "internal/vnfd", "internal/csar", "internal/outbound", "internal/infra/crew"},
	"internal/infra/crew": {"internal/lcm"},
	"internal/mgmt":       {"api/openapi/sol003", "internal/lcm", "internal/vnfd", "internal/csar"},
	"internal/metrics":    {"api/openapi/sol003", "internal/lcm"},
	"internal/config":     {},
	"internal/privatepg":  {},
	"internal/client":     {"api/openapi/sol003"},
	"internal/quickstart": {"api/openapi/sol003"},
	"internal/vimsim":     {},
}

// testing gives the packages that exist for tests what they need besides.
var testing_ = map[string][]string{
	"internal/store/storetest": {"internal/privatepg"},
	"internal/nfvo/nfvotest":   {"api/openapi"},
}

func room(p string) string {
	best := ""
	for r := range may {
		if (p == r || strings.HasPrefix(p, r+"/")) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

func below(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return p == r || strings.HasPrefix(p, r+"/") })
}

// TestImportLaw: rooms know the domain and never one another; two kinds of VIM or of management driver never know one
// another either.
func TestImportLaw(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "cmd/") || strings.HasPrefix(p.ImportPath, "test/") {
			continue
		}
		r := room(p.ImportPath)
		if r == "" {
			t.Errorf("%s stands in no room: give it one here and in CONTRIBUTING.md", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			own, ok := strings.CutPrefix(i, module+"/")
			if !ok {
				continue
			}
			switch {
			case below(own, may[r]), below(own, testing_[p.ImportPath]):
			case below(own, []string{r}) && !strangers(r, p.ImportPath, own):
			default:
				t.Errorf("%s must not import %s", p.ImportPath, own)
			}
		}
	}
}

// strangers tells whether two packages of one room are different drivers.
func strangers(r, a, b string) bool {
	if r != "internal/infra" && r != "internal/mgmt" {
		return false
	}
	head := func(p string) string {
		h, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, r), "/"), "/")
		return h
	}
	return head(a) != "" && head(b) != "" && head(a) != head(b) && !strings.HasSuffix(head(b), "test")
}

// outside says which libraries belong to one room alone.
var outside = map[string][]string{
	"github.com/jackc/pgx":               {"internal/store", "internal/privatepg", "internal/metrics"},
	"github.com/riverqueue/river":        {"internal/store"},
	"github.com/gophercloud/gophercloud": {"internal/infra/openstack", "internal/vim"},
	"github.com/sony/gobreaker":          {"internal/infra/openstack"},
	"github.com/go-chi/chi":              {"internal/httpapi", "internal/vimsim", "api/openapi"},
	"k8s.io":                             {"internal/infra/kubernetes"},
	"sigs.k8s.io":                        {"internal/infra/kubernetes"},
	"github.com/fluxcd/cli-utils":        {"internal/infra/kubernetes"},
	"github.com/spf13/cobra":             {"cmd"},
}

// TestLibrariesStayInTheirRoom keeps the domain free of pgx, chi, gophercloud and client-go, and every library where it
// has its reason.
func TestLibrariesStayInTheirRoom(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "test/") || strings.HasSuffix(p.ImportPath, "test") {
			continue
		}
		for _, i := range p.Imports {
			for lib, rooms := range outside {
				if (i == lib || strings.HasPrefix(i, lib+"/")) && !below(p.ImportPath, rooms) {
					t.Errorf("%s must not import %s, which belongs to %s", p.ImportPath, i, strings.Join(rooms, ", "))
				}
			}
		}
	}
}

// TestNames: no room says nothing about what is in it.
func TestNames(t *testing.T) {
	bad := []string{"util", "utils", "common", "helper", "helpers", "models", "types", "pkg", "misc", "shared", "base"}
	for _, p := range packages(t) {
		if slices.Contains(bad, path.Base(p.ImportPath)) {
			t.Errorf("%s: the name says nothing", p.ImportPath)
		}
	}
}

// TestNobodyImportsTests: what exists for tests is imported by nothing that ships.
func TestNobodyImportsTests(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "test/") || strings.HasSuffix(p.ImportPath, "test") {
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, module+"/test/") || strings.HasPrefix(i, module+"/") && strings.HasSuffix(i, "test") || i == "testing" {
				t.Errorf("%s must not import %s", p.ImportPath, i)
			}
		}
	}
}
