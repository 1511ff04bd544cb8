package pkgm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	user  = lcm.Scope{ProjectID: "p1"}
	other = lcm.Scope{ProjectID: "p2"}
	admin = lcm.Scope{ProjectID: "adm", Admin: true}
)

const (
	vnfd1  = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
	vnfd2  = "c1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
	nobody = "00000000-0000-4000-8000-000000000000"
)

// world is a service on a database, with this process as a node.
type world struct {
	*pkgm.Service
	st   *store.Store
	node *store.Node
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func newWorld(t testing.TB, cfg pkgm.Config) *world {
	t.Helper()
	st := storetest.Open(t)
	return join(t, st, cfg, "node-1")
}

// join makes a further service on the same database, as a node of its own.
func join(t testing.TB, st *store.Store, cfg pkgm.Config, id string) *world {
	t.Helper()
	node, err := st.Join(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Leave(context.Background()) })
	if cfg.Download.Allow == nil && cfg.Download.Deny == nil { // the repositories of tests are on loopback
		cfg.Download.Allow = loopback
	}
	cfg.Node = func() string { return id }
	if cfg.Download.Pause == 0 {
		cfg.Download.Pause = time.Millisecond
	}
	return &world{pkgm.New(cfg, st, storetest.Log()), st, node}
}

func files(vnfdID string) map[string][]byte {
	script := []byte(strings.Repeat("#!/bin/sh\necho installing\n", 400))
	return map[string][]byte{
		"TOSCA-Metadata/TOSCA.meta": []byte(fmt.Sprintf("TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: test\nEntry-Definitions: Definitions/top.yaml\n\nName: Scripts/install.sh\nContent-Type: text/x-sh\nAlgorithm: SHA-256\nHash: %x\n", sha256.Sum256(script))),
		"Scripts/install.sh":        script,
		"Scripts/unlisted.sh":       []byte("exit 1\n"),
		"Files/images/disk one.img": bytes.Repeat([]byte("image"), 1000),
		"Definitions/top.yaml": []byte(`tosca_definitions_version: tosca_simple_yaml_1_2
topology_template:
  node_templates:
    VNF:
      type: tosca.nodes.nfv.VNF
      properties:
        descriptor_id: ` + vnfdID + `
        descriptor_version: '1.0'
        provider: Company
        product_name: Sample
        software_version: '2.0'
        flavour_id: simple
        flavour_description: Simple
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: VDU1
        sw_image_data:
          name: an image
          version: '0.5'
          checksum: {algorithm: sha-256, hash: ` + strings.Repeat("ab", 32) + `}
          container_format: bare
          disk_format: qcow2
          min_disk: 1 GB
          size: 2 GiB
      artifacts:
        sw_image: {type: tosca.artifacts.nfv.SwImage, file: ../Files/images/disk one.img}
`),
	}
}

func csar(t testing.TB, vnfdID string) []byte { return csartest.Zip(t, files(vnfdID)) }

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused checks an error's kind and detail.
func refused(t testing.TB, err error, kind lcm.Kind, detail string) {
	t.Helper()
	if !lcm.Is(err, kind) {
		t.Fatalf("error %v is of the kind %q, want %q", err, lcm.KindOf(err), kind)
	}
	var e *lcm.Error
	if detail != "" && (!errors.As(err, &e) || e.Detail != detail) {
		t.Fatalf("error says\n%s\nwant\n%s", err, detail)
	}
}

func (w *world) create(t testing.TB) string {
	t.Helper()
	return must[*lcm.Package](t)(w.Create(context.Background(), user, nil)).ID
}

// triggers are the jobs that wait for the package.
func (w *world) triggers(t testing.TB, id string) (fences []int64) {
	t.Helper()
	rows, err := w.st.Pool.Query(context.Background(), `SELECT (args ->> 'fence')::bigint FROM river_job
		WHERE kind = 'onboard_package' AND args ->> 'package' = $1 ORDER BY id`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var f int64
		if err := rows.Scan(&f); err != nil {
			t.Fatal(err)
		}
		fences = append(fences, f)
	}
	return fences
}

// work runs the newest trigger of the package, as a worker does.
func (w *world) work(t testing.TB, id string) {
	t.Helper()
	fences := w.triggers(t, id)
	if len(fences) == 0 {
		t.Fatalf("nothing has triggered the onboarding of %s", id)
	}
	if err := w.Run(context.Background(), id, fences[len(fences)-1]); err != nil {
		t.Fatal(err)
	}
}

func (w *world) shown(t testing.TB, id string) *sol003.VnfPkgInfo {
	t.Helper()
	body := must[lcm.Body](t)(w.st.PackageBody(context.Background(), admin, id))
	info := new(sol003.VnfPkgInfo)
	if err := json.Unmarshal(body.JSON, info); err != nil {
		t.Fatal(err)
	}
	return info
}

func (w *world) contents(t testing.TB) (n int) {
	t.Helper()
	if err := w.st.Pool.QueryRow(context.Background(), `SELECT count(*) FROM contents`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) onboard(t testing.TB, vnfdID string) string {
	t.Helper()
	id := w.create(t)
	if err := w.Upload(context.Background(), user, id, bytes.NewReader(csar(t, vnfdID))); err != nil {
		t.Fatal(err)
	}
	w.work(t, id)
	if s := w.shown(t, id); s.OnboardingState != "ONBOARDED" {
		t.Fatalf("package is %s: %+v", s.OnboardingState, s.OnboardingFailureDetails)
	}
	return id
}

// use makes an instance of the package appear.
func (w *world) use(t testing.TB, id string) {
	t.Helper()
	if _, err := w.st.Pool.Exec(context.Background(), `INSERT INTO vnf_instances
		(id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, created_at)
		VALUES (gen_random_uuid(), 'p1', 'i', $1, $2, 'NOT_INSTANTIATED', '{}', now())`, vnfd1, id); err != nil {
		t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pkgm.Config{})
	p := must[*lcm.Package](t)(w.Create(ctx, user, map[string]any{"abc": "xyz"}))
	want := `{"id":"` + p.ID + `","onboardingState":"CREATED","operationalState":"DISABLED","usageState":"NOT_IN_USE","userDefinedData":{"abc":"xyz"}}`
	if body := must[lcm.Body](t)(w.st.PackageBody(ctx, user, p.ID)); string(body.JSON) != want {
		t.Errorf("created:\n%s\nwant\n%s", body.JSON, want)
	}
	for _, id := range []string{nobody, "nonsense", ""} {
		_, err := w.Package(ctx, user, id)
		refused(t, err, lcm.KindNotFound, "Can not find requested vnf package: "+id)
		refused(t, w.Upload(ctx, user, id, strings.NewReader("")), lcm.KindNotFound, "Can not find requested vnf package: "+id)
		refused(t, w.Delete(ctx, user, id), lcm.KindNotFound, "")
	}
	_, err := w.Package(ctx, other, p.ID)
	refused(t, err, lcm.KindNotFound, "")
	refused(t, w.Delete(ctx, other, p.ID), lcm.KindNotFound, "")
	_, _, err = w.Content(ctx, user, p.ID)
	refused(t, err, lcm.KindConflict, "VNF Package "+p.ID+" onboarding state is not ONBOARDED")
	_, _, err = w.Vnfd(ctx, user, p.ID)
	refused(t, err, lcm.KindConflict, "VNF Package "+p.ID+" state is not ONBOARDED")
	_, _, err = w.Artifact(ctx, user, p.ID, "x")
	refused(t, err, lcm.KindConflict, "")

	zipped := csar(t, vnfd1)
	if err := w.Upload(ctx, user, p.ID, bytes.NewReader(zipped)); err != nil {
		t.Fatal(err)
	}
	if s := w.shown(t, p.ID); s.OnboardingState != "PROCESSING" || s.VnfdId != "" {
		t.Errorf("accepted: %+v", s)
	}
	refused(t, w.Upload(ctx, user, p.ID, bytes.NewReader(zipped)), lcm.KindConflict, "VNF Package "+p.ID+" onboarding state is not CREATED")
	refused(t, w.Delete(ctx, user, p.ID), lcm.KindConflict, "")
	w.work(t, p.ID)
	w.work(t, p.ID) // again: nothing happens

	s := w.shown(t, p.ID)
	if len(s.SoftwareImages) == 1 {
		s.SoftwareImages[0].CreatedAt = time.Time{}
	}
	if diff := cmp.Diff(&sol003.VnfPkgInfo{
		Id: p.ID, OnboardingState: "ONBOARDED", OperationalState: "ENABLED", UsageState: "NOT_IN_USE",
		UserDefinedData: map[string]any{"abc": "xyz"}, VnfdId: vnfd1, VnfProvider: "Company", VnfProductName: "Sample",
		VnfSoftwareVersion: "2.0", VnfdVersion: "1.0", Checksum: s.Checksum,
		SoftwareImages: []sol003.VnfPackageSoftwareImageInfo{{
			Id: "VDU1", Name: "an image", Version: "0.5", ContainerFormat: "bare", DiskFormat: "qcow2",
			Checksum: sol003.Checksum{Algorithm: "sha-256", Hash: strings.Repeat("ab", 32)}, MinDisk: 1e9, Size: 2 << 30,
			ImagePath: "/vnfpkgm/v1/vnf_packages/" + p.ID + "/artifacts/Files/images/disk%20one.img", UserMetadata: map[string]any{},
		}},
		AdditionalArtifacts: []sol003.VnfPackageArtifactInfo{{ArtifactPath: "Scripts/install.sh", Metadata: map[string]any{},
			Checksum: sol003.Checksum{Algorithm: "SHA-256", Hash: fmt.Sprintf("%x", sha256.Sum256(files(vnfd1)["Scripts/install.sh"]))}}},
	}, s); diff != "" {
		t.Errorf("onboarded (-want +got):\n%s", diff)
	}
	if s.Checksum == nil || s.Checksum.Algorithm != "sha512" || len(s.Checksum.Hash) != 128 {
		t.Errorf("checksum %+v", s.Checksum)
	}

	got := must[*lcm.Package](t)(w.PackageByVnfd(ctx, user, vnfd1, false))
	if got.ID != p.ID || got.Descriptor == nil || got.Descriptor.ID != vnfd1 || got.Entry != "Definitions/top.yaml" {
		t.Errorf("by VNFD: %+v", got)
	}
	if again := must[*lcm.Package](t)(w.Package(ctx, user, p.ID)); again.Descriptor != got.Descriptor {
		t.Error("the descriptor was decoded twice")
	}
	_, err = w.PackageByVnfd(ctx, other, vnfd1, false)
	refused(t, err, lcm.KindNotFound, "")

	content, size, err := w.Content(ctx, user, p.ID)
	if err != nil || size != int64(len(zipped)) {
		t.Fatalf("content: %d bytes, %v", size, err)
	}
	if raw := must[[]byte](t)(io.ReadAll(content)); !bytes.Equal(raw, zipped) {
		t.Error("the content is not what was uploaded")
	}
	must[int64](t)(content.Seek(-5, io.SeekEnd))
	if raw := must[[]byte](t)(io.ReadAll(content)); !bytes.Equal(raw, zipped[len(zipped)-5:]) {
		t.Error("the content's end is not what was uploaded")
	}

	list, fsys, err := w.Vnfd(ctx, user, p.ID)
	if err != nil || cmp.Diff([]string{"TOSCA-Metadata/TOSCA.meta", "Definitions/top.yaml"}, list) != "" {
		t.Errorf("VNFD: %v %v", list, err)
	}
	if raw := must[[]byte](t)(fsys.ReadFile(list[1])); !bytes.Equal(raw, files(vnfd1)[list[1]]) {
		t.Error("the VNFD's file differs")
	}
	if err := fsys.Close(); err != nil {
		t.Error(err)
	}

	opened := must[lcm.PackageFS](t)(w.Open(ctx, p.ID))
	if entries, err := opened.ReadDir("Scripts"); err != nil || len(entries) != 2 {
		t.Errorf("Scripts: %v %v", entries, err)
	}
	_ = opened.Close()

	artifact, size, err := w.Artifact(ctx, user, p.ID, "Scripts/install.sh")
	if err != nil || size != int64(len(files(vnfd1)["Scripts/install.sh"])) {
		t.Fatalf("artifact: %d bytes, %v", size, err)
	}
	must[int64](t)(artifact.Seek(10, io.SeekStart))
	if raw := must[[]byte](t)(io.ReadAll(artifact)); !bytes.Equal(raw, files(vnfd1)["Scripts/install.sh"][10:]) {
		t.Error("the artifact differs")
	}
	_ = artifact.Close()
	for _, path := range []string{"Scripts/unlisted.sh", "Files/images/disk one.img", "Definitions/top.yaml", "Scripts", "", "../etc/passwd"} {
		_, _, err := w.Artifact(ctx, user, p.ID, path)
		refused(t, err, lcm.KindNotFound, "Not Found Artifact File.")
	}

	w.use(t, p.ID)
	if s := w.shown(t, p.ID); s.UsageState != "IN_USE" {
		t.Errorf("usageState %s", s.UsageState)
	}
	if got := must[*lcm.Package](t)(w.Package(ctx, user, p.ID)); got.UsageState != "IN_USE" {
		t.Errorf("usageState %s", got.UsageState)
	}
	refused(t, w.Delete(ctx, user, p.ID), lcm.KindConflict, "VNF Package "+p.ID+" cannot be deleted as it's operational state is ENABLED and usage state is IN_USE.")
	must[*sol003.VnfPkgInfoModifications](t)(w.Update(ctx, user, p.ID, sol003.VnfPkgInfoModifications{OperationalState: "DISABLED"}, false))
	refused(t, w.Delete(ctx, user, p.ID), lcm.KindConflict, "VNF Package "+p.ID+" cannot be deleted as it's operational state is DISABLED and usage state is IN_USE.")
	if _, err := w.st.Pool.Exec(ctx, `DELETE FROM vnf_instances`); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(ctx, user, p.ID); err != nil {
		t.Fatal(err)
	}
	if n := w.contents(t); n != 0 {
		t.Errorf("%d contents are left", n)
	}
	_, err = w.Package(ctx, user, p.ID)
	refused(t, err, lcm.KindNotFound, "")
	w.onboard(t, vnfd1) // the VNFD's id is free again
}

func TestUpdate(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pkgm.Config{})
	fresh, ready := w.create(t), w.onboard(t, vnfd1)
	type mods = sol003.VnfPkgInfoModifications
	for _, c := range []struct {
		name   string
		id     string
		mods   mods
		data   bool
		want   *mods
		kind   lcm.Kind
		detail string
	}{
		{name: "nothing", id: ready, kind: lcm.KindInvalid, detail: "{} is not valid under any of the given schemas"},
		{name: "bad state", id: ready, mods: mods{OperationalState: "ON"}, kind: lcm.KindInvalid},
		{name: "same state", id: ready, mods: mods{OperationalState: "ENABLED"}, kind: lcm.KindConflict, detail: "VNF Package " + ready + " is already in ENABLED operational state"},
		{name: "disable", id: ready, mods: mods{OperationalState: "DISABLED"}, want: &mods{OperationalState: "DISABLED"}},
		{name: "not onboarded", id: fresh, mods: mods{OperationalState: "ENABLED"}, kind: lcm.KindInvalid, detail: "Updating operational state is not allowed for VNF Package " + fresh + " when onboarding state is not ONBOARDED"},
		{name: "enable without content", id: fresh, mods: mods{OperationalState: "ENABLED", UserDefinedData: map[string]any{"a": "b"}}, data: true, kind: lcm.KindInvalid},
		{name: "data", id: fresh, mods: mods{UserDefinedData: map[string]any{"a": "b", "l": []any{1.0}}}, data: true, want: &mods{UserDefinedData: map[string]any{"a": "b", "l": []any{1.0}}}},
		{name: "merge", id: fresh, mods: mods{UserDefinedData: map[string]any{"a": "c"}}, data: true, want: &mods{UserDefinedData: map[string]any{"a": "c", "l": []any{json.Number("1")}}}},
		{name: "same data", id: fresh, mods: mods{UserDefinedData: map[string]any{"a": "c", "l": []any{1.0}}}, data: true, kind: lcm.KindConflict, detail: "The userDefinedData provided in update request is as the existing userDefinedData of vnf package " + fresh + ". Nothing to update."},
		{name: "empty data", id: fresh, mods: mods{UserDefinedData: map[string]any{}}, data: true, kind: lcm.KindConflict},
		{name: "both", id: ready, mods: mods{OperationalState: "ENABLED", UserDefinedData: map[string]any{"k": "v"}}, data: true, want: &mods{OperationalState: "ENABLED", UserDefinedData: map[string]any{"k": "v"}}},
		{name: "NUL", id: fresh, mods: mods{UserDefinedData: map[string]any{"a": "\x00"}}, data: true, kind: lcm.KindInvalid},
		{name: "looks like NUL", id: fresh, mods: mods{UserDefinedData: map[string]any{"z": `\u0000`}}, data: true, want: &mods{UserDefinedData: map[string]any{"a": "c", "l": []any{json.Number("1")}, "z": `\u0000`}}},
		{name: "unknown", id: nobody, mods: mods{OperationalState: "ENABLED"}, kind: lcm.KindNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := w.Update(ctx, user, c.id, c.mods, c.data)
			if c.kind != "" {
				refused(t, err, c.kind, c.detail)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if s := w.shown(t, ready); s.VnfdId != vnfd1 || s.OperationalState != "ENABLED" || len(s.AdditionalArtifacts) != 1 {
		t.Errorf("what was not changed is not the same: %+v", s)
	}
	_, err := w.Update(ctx, other, ready, mods{OperationalState: "DISABLED"}, false)
	refused(t, err, lcm.KindNotFound, "")
	_, err = w.Create(ctx, user, map[string]any{"k": []any{"a\x00b"}})
	refused(t, err, lcm.KindInvalid, "")
}

func TestBadPackages(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pkgm.Config{SizeCap: 8 << 20})
	w.onboard(t, vnfd1)
	change := func(name, old, to string) []byte {
		f := files(vnfd2)
		f[name] = bytes.ReplaceAll(f[name], []byte(old), []byte(to))
		return csartest.Zip(t, f)
	}
	for _, c := range []struct {
		name   string
		zip    []byte
		status int
		detail []string
	}{
		{"no zip", []byte("not a zip"), 400, []string{"Invalid zip file"}},
		{"empty", nil, 400, []string{"Invalid zip file"}},
		{"cut off", csar(t, vnfd2)[:500], 400, []string{"Invalid zip file"}},
		{"hash", change("Scripts/install.sh", "installing", "trojan"), 400, []string{"The hash", "Scripts/install.sh", "is an invalid value."}},
		{"no entry", change("TOSCA-Metadata/TOSCA.meta", "top.yaml", "top2.yaml"), 400, []string{"top2.yaml"}},
		{"no image file", change("Definitions/top.yaml", "disk one", "disk two"), 400, []string{"Definitions/top.yaml:", "rule artifact"}},
		{"mandatory", change("Definitions/top.yaml", "product_name: Sample", "x: y"), 400, []string{"VNF properties are mandatory", "Definitions/top.yaml", "rule vnf"}},
		{"yaml", change("Definitions/top.yaml", "VDU1:", "VDU1: ["), 400, []string{"Definitions/top.yaml:", "rule yaml"}},
		{"traversal", csartest.Zip(t, map[string][]byte{"../x": nil}), 400, []string{"rule path"}},
		{"duplicate", csar(t, vnfd1), 409, []string{"Vnf package with vnfd id " + vnfd1 + " already exists."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.create(t)
			if err := w.Upload(ctx, user, id, bytes.NewReader(c.zip)); err != nil {
				t.Fatal(err)
			}
			w.work(t, id)
			s := w.shown(t, id)
			if s.OnboardingState != "CREATED" || s.OperationalState != "DISABLED" || s.OnboardingFailureDetails == nil {
				t.Fatalf("%+v", s)
			}
			if s.OnboardingFailureDetails.Status != c.status {
				t.Errorf("status %d, want %d", s.OnboardingFailureDetails.Status, c.status)
			}
			for _, part := range c.detail {
				if !strings.Contains(s.OnboardingFailureDetails.Detail, part) {
					t.Errorf("%q does not say %q", s.OnboardingFailureDetails.Detail, part)
				}
			}
			if n := w.contents(t); n != 1 {
				t.Errorf("%d contents are stored, want 1", n)
			}
		})
	}
	t.Run("then a good one", func(t *testing.T) {
		id := w.create(t)
		if err := w.Upload(ctx, user, id, strings.NewReader("bad")); err != nil {
			t.Fatal(err)
		}
		w.work(t, id)
		if err := w.Upload(ctx, user, id, bytes.NewReader(csar(t, vnfd2))); err != nil {
			t.Fatal(err)
		}
		if s := w.shown(t, id); s.OnboardingFailureDetails != nil {
			t.Error("the old failure is still shown")
		}
		w.work(t, id)
		if s := w.shown(t, id); s.OnboardingState != "ONBOARDED" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("NUL in the VNFD", func(t *testing.T) {
		id := w.create(t)
		f := files("d1bb0ce7-ebca-4fa7-95ed-4840d70a1177")
		f["Definitions/top.yaml"] = bytes.ReplaceAll(f["Definitions/top.yaml"], []byte("provider: Company"), []byte(`provider: "Com\0pany"`))
		if err := w.Upload(ctx, user, id, bytes.NewReader(csartest.Zip(t, f))); err != nil {
			t.Fatal(err)
		}
		w.work(t, id)
		for _, err := range w.st.Packages(ctx, admin, lcm.Query{Filter: []lcm.Condition{{Op: "cont", Path: []string{"vnfProvider"}, Values: []string{"Com"}}}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// broken is a body that ends with an error after some bytes.
type broken struct {
	io.Reader
	err error
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestBrokenUploads(t *testing.T) {
	w := newWorld(t, pkgm.Config{SizeCap: 6 << 20})
	some := bytes.Repeat([]byte("0123456789"), 500<<10) // 5 MB: one batch is stored before it breaks
	canceled, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		body   io.Reader
		kind   lcm.Kind
		status int
		detail string
	}{
		{"too large", context.Background(), io.MultiReader(bytes.NewReader(some), bytes.NewReader(some)), lcm.KindTooLarge, 413, "larger than 6291456 bytes"},
		{"closed early", context.Background(), broken{bytes.NewReader(some), io.ErrUnexpectedEOF}, lcm.KindCanceled, 503, "broke off"},
		{"reset", context.Background(), broken{bytes.NewReader(some), errors.New("connection reset by peer")}, lcm.KindCanceled, 503, "connection reset"},
		{"canceled", canceled, broken{bytes.NewReader(some), errors.New("never reached")}, lcm.KindCanceled, 503, "broke off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.create(t)
			body := c.body
			if c.ctx == canceled {
				body = io.MultiReader(bytes.NewReader(some), readerFunc(func([]byte) (int, error) { cancel(); return 0, context.Canceled }))
			}
			refused(t, w.Upload(c.ctx, user, id, body), c.kind, "")
			s := w.shown(t, id)
			if s.OnboardingState != "CREATED" || s.OnboardingFailureDetails == nil || s.OnboardingFailureDetails.Status != c.status ||
				!strings.Contains(s.OnboardingFailureDetails.Detail, c.detail) {
				t.Errorf("%+v %+v", s, s.OnboardingFailureDetails)
			}
			if n := w.contents(t); n != 0 {
				t.Errorf("%d contents are left", n)
			}
			if n := len(w.triggers(t, id)); n != 0 {
				t.Errorf("%d triggers", n)
			}
		})
	}
	t.Run("no node yet", func(t *testing.T) {
		lone := pkgm.New(pkgm.Config{Node: func() string { return "" }}, w.st, storetest.Log())
		id := w.create(t)
		refused(t, lone.Upload(context.Background(), user, id, bytes.NewReader(some)), lcm.KindUnavailable, "")
		if s := w.shown(t, id); s.OnboardingState != "CREATED" {
			t.Errorf("%+v", s)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestOneUploadWins: of many uploads to one package exactly one is taken.
func TestOneUploadWins(t *testing.T) {
	w := newWorld(t, pkgm.Config{})
	id, zipped := w.create(t), csar(t, vnfd1)
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		wg.Go(func() { results <- w.Upload(context.Background(), user, id, bytes.NewReader(zipped)) })
	}
	wg.Wait()
	close(results)
	taken := 0
	for err := range results {
		if err == nil {
			taken++
			continue
		}
		refused(t, err, lcm.KindConflict, "VNF Package "+id+" onboarding state is not CREATED")
	}
	if taken != 1 || len(w.triggers(t, id)) != 1 {
		t.Errorf("%d uploads were taken, %d triggers", taken, len(w.triggers(t, id)))
	}
}

// TestSameContent: the same zip uploaded many times at once through two nodes is stored once, and stays as long as one
// package refers to it.
func TestSameContent(t *testing.T) {
	ctx := context.Background()
	a := newWorld(t, pkgm.Config{})
	b := join(t, a.st, pkgm.Config{}, "node-2")
	zipped := csar(t, vnfd1)
	var ids []string
	var wg sync.WaitGroup
	for i := range 8 {
		id := a.create(t)
		ids = append(ids, id)
		node := []*world{a, b}[i%2]
		wg.Go(func() {
			if err := node.Upload(ctx, user, id, bytes.NewReader(zipped)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := a.contents(t); n != 1 {
		t.Fatalf("%d contents", n)
	}
	done := 0
	for i, id := range ids { // the first becomes ONBOARDED, the others break its VNFD's uniqueness
		[]*world{a, b}[i%2].work(t, id)
		if a.shown(t, id).OnboardingState == "ONBOARDED" {
			done++
		}
	}
	if done != 1 || a.contents(t) != 1 {
		t.Errorf("%d onboarded, %d contents", done, a.contents(t))
	}
	r, _, err := b.Content(ctx, user, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if raw := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(raw, zipped) {
		t.Error("the content differs")
	}
}

// TestOurFailuresAreNotThePackages: a shutdown or a database that is away does not put a package back to CREATED.
func TestOurFailuresAreNotThePackages(t *testing.T) {
	w := newWorld(t, pkgm.Config{})
	id := w.create(t)
	if err := w.Upload(context.Background(), user, id, bytes.NewReader(csar(t, vnfd1))); err != nil {
		t.Fatal(err)
	}
	fence := w.triggers(t, id)[0]
	ctx, cancel := context.WithCancelCause(context.Background())
	w.Probe = func(point string) {
		if point == "onboard:verify:before" {
			cancel(lcm.ErrShutdown)
		}
	}
	if err := w.Run(ctx, id, fence); !errors.Is(err, lcm.ErrShutdown) && !errors.Is(err, context.Canceled) {
		t.Errorf("a job that was shut down returned %v", err)
	}
	w.Probe = nil
	if s := w.shown(t, id); s.OnboardingState != "PROCESSING" {
		t.Fatalf("%+v", s)
	}
	// The stored bytes cannot be read: not the package's fault either.
	if _, err := w.st.Pool.Exec(context.Background(), `ALTER TABLE content_chunks RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(context.Background(), id, fence); err == nil {
		t.Error("a job without its database returned nil")
	}
	if _, err := w.st.Pool.Exec(context.Background(), `ALTER TABLE away RENAME TO content_chunks`); err != nil {
		t.Fatal(err)
	}
	if s := w.shown(t, id); s.OnboardingState != "PROCESSING" {
		t.Fatalf("%+v", s)
	}
	w.work(t, id)
	if s := w.shown(t, id); s.OnboardingState != "ONBOARDED" {
		t.Errorf("%+v", s)
	}
}

func TestList(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pkgm.Config{})
	a, b := w.onboard(t, vnfd1), w.onboard(t, vnfd2)
	c := must[*lcm.Package](t)(w.Create(ctx, other, map[string]any{"k": "v"})).ID
	w.use(t, b)
	cond := func(op, path string, values ...string) []lcm.Condition {
		return []lcm.Condition{{Op: op, Path: strings.Split(path, "/"), Values: values}}
	}
	for _, k := range []struct {
		name  string
		scope lcm.Scope
		q     lcm.Query
		want  []string
	}{
		{"all", admin, lcm.Query{}, []string{a, b, c}},
		{"mine", user, lcm.Query{}, []string{a, b}},
		{"page", admin, lcm.Query{Limit: 1, After: a}, []string{b}},
		{"usage", admin, lcm.Query{Filter: cond("eq", "usageState", "IN_USE")}, []string{b}},
		{"unused", admin, lcm.Query{Filter: cond("neq", "usageState", "IN_USE")}, []string{a, c}},
		{"state", admin, lcm.Query{Filter: cond("in", "onboardingState", "ONBOARDED", "CREATED")}, []string{a, b, c}},
		{"vnfd", admin, lcm.Query{Filter: cond("eq", "vnfdId", vnfd1)}, []string{a}},
		{"nested", admin, lcm.Query{Filter: cond("eq", "additionalArtifacts/checksum/algorithm", "sha-256")}, []string{a, b}},
		{"data", admin, lcm.Query{Filter: cond("eq", "userDefinedData/k", "v")}, []string{c}},
		{"hostile", admin, lcm.Query{Filter: cond("eq", "vnfdId", "'; DROP TABLE vnf_packages; --")}, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			var got []string
			for body, err := range w.st.Packages(ctx, k.scope, k.q) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, body.ID)
			}
			if diff := cmp.Diff(k.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	before := must[lcm.Body](t)(w.st.PackageBody(ctx, user, a))
	w.use(t, a)
	if after := must[lcm.Body](t)(w.st.PackageBody(ctx, user, a)); after.Version == before.Version {
		t.Error("the ETag does not change with usageState")
	}
}

func TestCollect(t *testing.T) {
	w := newWorld(t, pkgm.Config{CollectInterval: time.Millisecond, CollectAge: time.Nanosecond})
	kept := w.onboard(t, vnfd1)
	if _, err := w.st.Pool.Exec(context.Background(), `INSERT INTO contents (id) VALUES (gen_random_uuid())`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	done := make(chan struct{})
	go func() { defer close(done); w.Collect(ctx) }()
	for w.contents(t) != 1 && ctx.Err() == nil {
		runtime.Gosched()
	}
	cancel()
	<-done
	if _, _, err := w.Content(context.Background(), user, kept); err != nil {
		t.Error(err)
	}
}

func TestOpenAfterClose(t *testing.T) {
	w := newWorld(t, pkgm.Config{})
	id := w.onboard(t, vnfd1)
	fsys := must[lcm.PackageFS](t)(w.Open(context.Background(), id))
	if _, err := fsys.ReadFile("Scripts/nothing.sh"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_ = fsys.Close()
	if _, err := w.Open(context.Background(), nobody); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("an unknown package: %v", err)
	}
}
