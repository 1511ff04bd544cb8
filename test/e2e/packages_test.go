package e2e

import (
	"archive/zip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// candidate is a package to be tried, and what is known of it.
type candidate struct {
	zip      []byte
	vnfdID   string // checked when not empty
	product  string
	provider string
	software string
	// artifacts are the paths that additionalArtifacts are to name, images the node and name of each software image,
	// sorted.
	artifacts, images []string
}

func packageHref(id, suffix string) map[string]any {
	return map[string]any{"href": "/vnfpkgm/v1/vnf_packages/" + id + suffix}
}

// createPackage creates a package with the client and checks the answer.
func (l *lab) createPackage(ctx context.Context, t *testing.T) string {
	t.Helper()
	f := l.show(ctx, t, "vnf", "package", "create", "--user-data", "owner=e2e")
	f.want(t, "vnf package create", map[string]string{
		"ID": anything, "Links": anything, "Onboarding State": "CREATED", "Operational State": "DISABLED",
		"Usage State": "NOT_IN_USE", "User Defined Data": "{\n    \"owner\": \"e2e\"\n}",
	})
	id := f.values["ID"]
	var links, want map[string]any
	f.json(t, "Links", &links)
	want = map[string]any{"self": packageHref(id, ""), "packageContent": packageHref(id, "/package_content")}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("the links of a new package (- want, + got):\n%s", diff)
	}
	return id
}

// onboard has the client upload the zip, waits and checks what it shows. It returns the VNFD's id.
func (l *lab) onboard(ctx context.Context, t *testing.T, id string, c candidate) string {
	t.Helper()
	l.says(ctx, t, "Upload request for VNF package "+id+" has been accepted.",
		"vnf", "package", "upload", "--path", l.file(t, "package.zip", c.zip), id)
	_, err := l.api.AwaitOnboarded(ctx, id)
	must(t, err)
	f := l.show(ctx, t, "vnf", "package", "show", id)
	f.want(t, "vnf package show", map[string]string{
		"Additional Artifacts": anything, "Checksum": anything, "ID": id, "Links": anything, "Onboarding State": "ONBOARDED",
		"Operational State": "ENABLED", "Software Images": anything, "Usage State": "NOT_IN_USE", "User Defined Data": anything,
		"VNF Product Name": c.product, "VNF Provider": c.provider, "VNF Software Version": c.software,
		"VNFD ID": anything, "VNFD Version": "1.0",
	})
	if got := f.values["VNFD ID"]; c.vnfdID != "" && got != c.vnfdID {
		t.Errorf("the VNFD's id is %s, want %s", got, c.vnfdID)
	}
	var sum map[string]string
	f.json(t, "Checksum", &sum)
	want := sha512.Sum512(c.zip)
	if diff := cmp.Diff(map[string]string{"algorithm": "sha512", "hash": hex.EncodeToString(want[:])}, sum); diff != "" {
		t.Errorf("the package's checksum (- want, + got):\n%s", diff)
	}
	checkArtifacts(t, f, c)
	checkImages(t, f, c)
	return f.values["VNFD ID"]
}

func checkArtifacts(t *testing.T, f fields, c candidate) {
	t.Helper()
	var artifacts []map[string]any
	if f.values["Additional Artifacts"] != "" { // without any there is no attribute
		f.json(t, "Additional Artifacts", &artifacts)
	}
	paths := []string{}
	for _, a := range artifacts {
		path, _ := a["artifactPath"].(string)
		paths = append(paths, path)
		sum, _ := a["checksum"].(map[string]any)
		if hash, _ := sum["hash"].(string); sum["algorithm"] != "SHA-256" || len(hash) != 64 || a["metadata"] == nil {
			t.Errorf("artifact %s: %v", path, a)
		}
	}
	if diff := cmp.Diff(c.artifacts, sorted(paths), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the artifacts (- want, + got):\n%s", diff)
	}
}

func checkImages(t *testing.T, f fields, c candidate) {
	t.Helper()
	var images []map[string]any
	f.json(t, "Software Images", &images)
	names := []string{}
	for _, i := range images {
		id, _ := i["id"].(string)
		name, _ := i["name"].(string)
		names = append(names, id+" "+name)
		for _, attribute := range []string{
			"size", "version", "name", "createdAt", "id", "containerFormat", "minDisk", "imagePath", "minRam", "diskFormat", "provider", "checksum", "userMetadata",
		} {
			if _, ok := i[attribute]; !ok {
				t.Errorf("software image %s has no %s", id, attribute)
			}
		}
	}
	if diff := cmp.Diff(c.images, sorted(names)); diff != "" {
		t.Errorf("the software images (- want, + got):\n%s", diff)
	}
}

// listPackages checks the package in the client's list.
func (l *lab) listPackages(ctx context.Context, t *testing.T, id, product, usage string) {
	t.Helper()
	rows := l.list(ctx, t, []string{"Id", "Vnf Product Name", "Onboarding State", "Usage State", "Operational State", "Links"}, "vnf", "package", "list")
	n := slices.IndexFunc(rows, func(r map[string]string) bool { return r["Id"] == id })
	if n < 0 {
		t.Fatalf("vnf package list does not have %s: %v", id, rows)
	}
	delete(rows[n], "Links")
	want := map[string]string{"Id": id, "Vnf Product Name": product, "Onboarding State": "ONBOARDED", "Usage State": usage, "Operational State": "ENABLED"}
	if diff := cmp.Diff(want, rows[n]); diff != "" {
		t.Errorf("the package in vnf package list (- want, + got):\n%s", diff)
	}
}

// download has the client download an artifact, the content and the VNFD, and compares them with what is in the zip.
func (l *lab) download(ctx context.Context, t *testing.T, id, artifact string, c candidate) {
	t.Helper()
	dir := t.TempDir()
	got := func(name string, args ...string) []byte {
		path := filepath.Join(dir, name)
		l.ok(ctx, t, append(args, "--file", path)...)
		raw, err := os.ReadFile(path)
		must(t, err)
		return raw
	}
	files := unzip(t, c.zip)
	if raw := got("artifact", "vnf", "package", "artifact", "download", id, artifact); string(raw) != files[artifact] {
		t.Errorf("artifact %s is downloaded as %q", artifact, raw)
	}
	if raw := got("content.zip", "vnf", "package", "download", id); string(raw) != string(c.zip) {
		t.Errorf("the content that is downloaded has %d bytes and is not what was uploaded, of %d", len(raw), len(c.zip))
	}
	vnfd := unzip(t, got("vnfd.zip", "vnf", "package", "download", id, "--vnfd"))
	definitions := 0
	for name, text := range vnfd {
		if files[name] != text {
			t.Errorf("the VNFD that is downloaded has another %s than the package", name)
		}
		if strings.HasPrefix(name, "Definitions/") {
			definitions++
		}
	}
	if definitions < 3 || vnfd["TOSCA-Metadata/TOSCA.meta"] == "" {
		t.Errorf("the VNFD that is downloaded has %d definitions, or no TOSCA.meta", definitions)
	}
}

func unzip(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(strings.NewReader(string(raw)), int64(len(raw)))
	must(t, err)
	out := map[string]string{}
	for _, f := range r.File {
		data, err := readEntry(f)
		must(t, err)
		out[f.Name] = data
	}
	return out
}

// removePackage has the client disable the package and delete it.
func (l *lab) removePackage(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	l.show(ctx, t, "vnf", "package", "update", id, "--operational-state", "DISABLED").
		want(t, "vnf package update", map[string]string{"Operational State": "DISABLED"})
	l.says(ctx, t, "All specified vnf-package(s) deleted successfully", "vnf", "package", "delete", id)
	if _, err := l.api.AwaitOnboarded(ctx, id); err == nil {
		t.Errorf("package %s is still there after its deletion", id)
	}
}

// state reads a package's states over REST.
func (l *lab) state(ctx context.Context, t *testing.T, id string) *sol003.VnfPkgInfo {
	t.Helper()
	p := new(sol003.VnfPkgInfo)
	_, err := l.api.Call(ctx, "GET", "/vnfpkgm/v1/vnf_packages/"+id, nil, p)
	must(t, err)
	return p
}
