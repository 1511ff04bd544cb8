package csar

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
)

func open(data []byte) (*Package, error) {
	return Open(bytes.NewReader(data), int64(len(data)), Limits{})
}

func mustOpen(t testing.TB, data []byte) *Package {
	t.Helper()
	p, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantRule checks that err is a refusal by that rule whose text contains text.
func wantRule(t testing.TB, err error, rule, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want an *Error", err, err)
	}
	if e.Rule != rule || !strings.Contains(e.Error(), text) {
		t.Fatalf("error %q of rule %q, want %q of rule %q", e.Error(), e.Rule, text, rule)
	}
}

func sum(data string) string {
	s := sha256.Sum256([]byte(data))
	return hex.EncodeToString(s[:])
}

// noise returns n bytes of text that does not compress well.
func noise(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(sum(fmt.Sprint(i)))
	}
	return b.String()[:n]
}

const metaHead = "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-by: Example\nEntry-Definitions: Definitions/top.yaml\n"

// files is a small package in the layout with TOSCA.meta.
func files(meta string) map[string][]byte {
	return map[string][]byte{
		"TOSCA-Metadata/TOSCA.meta": []byte(metaHead + meta),
		"Definitions/top.yaml":      []byte("a: b\n"),
		"Scripts/install.sh":        []byte("true\n"),
		"Files/images/disk.img":     []byte("image"),
	}
}

func TestLayouts(t *testing.T) {
	block := "\nName: Scripts/install.sh\nContent-Type: text/x-sh\nAlgorithm: SHA-256\nHash: " + sum("true\n") + "\n"
	inManifest := strings.Replace(block, "Name:", "Source:", 1)
	art := []Artifact{{Path: "Scripts/install.sh", Algorithm: "SHA-256", Hash: sum("true\n")}}
	for _, c := range []struct {
		name                  string
		files                 map[string][]byte
		entry, meta, manifest string
		artifacts             []Artifact
	}{
		{"meta", files(block + block), "Definitions/top.yaml", metaPath, "", art},
		{"meta, CRLF and BOM", map[string][]byte{
			metaPath:               []byte("\xef\xbb\xbf" + strings.ReplaceAll(metaHead+block, "\n", "\r\n")),
			"Definitions/top.yaml": nil, "Scripts/install.sh": []byte("true\n"),
		}, "Definitions/top.yaml", metaPath, "", art},
		{"meta and manifest", func() map[string][]byte {
			m := files("ETSI-Entry-Manifest: vnf.mf\n" + block)
			m["vnf.mf"] = []byte("metadata:\n  vnf_product_name: X\n" + inManifest + "\n-----BEGIN CMS-----\nMIIx\n-----END CMS-----\n")
			return m
		}(), "Definitions/top.yaml", metaPath, "vnf.mf", art},
		{"root with manifest", map[string][]byte{
			"vnf.yml": nil, "vnf.mf": []byte(inManifest), "Scripts/install.sh": []byte("true\n"), "sub/other.yaml": nil,
		}, "vnf.yml", "", "vnf.mf", art},
		{"root alone", map[string][]byte{"vnf.yaml": nil}, "vnf.yaml", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustOpen(t, csartest.Zip(t, c.files))
			if p.Entry() != c.entry || p.MetaPath() != c.meta || p.ManifestPath() != c.manifest {
				t.Errorf("entry %q, meta %q, manifest %q; want %q, %q, %q", p.Entry(), p.MetaPath(), p.ManifestPath(), c.entry, c.meta, c.manifest)
			}
			if diff := cmp.Diff(c.artifacts, p.Artifacts()); diff != "" {
				t.Errorf("artifacts (-want +got):\n%s", diff)
			}
			if err := p.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if len(p.Files()) != len(c.files) || !slices.IsSorted(p.Files()) {
				t.Errorf("files %v", p.Files())
			}
		})
	}
}

func TestMetadataRefusals(t *testing.T) {
	without := func(m map[string][]byte, name string) map[string][]byte { delete(m, name); return m }
	for _, c := range []struct {
		name  string
		files map[string][]byte
		rule  string
		text  string
	}{
		{"entry missing", without(files(""), "Definitions/top.yaml"), RuleEntry, "Entry-Definitions"},
		{"entry not named", map[string][]byte{metaPath: []byte("CSAR-Version: 1.1\n")}, RuleMeta, "Entry-Definitions"},
		{"entry outside", map[string][]byte{metaPath: []byte("Entry-Definitions: ../x.yaml\n")}, RuleEntry, "../x.yaml"},
		{"entry is a folder", map[string][]byte{metaPath: []byte("Entry-Definitions: d\n"), "d/x": nil}, RuleEntry, `"d"`},
		{"manifest missing", files("ETSI-Entry-Manifest: x.mf\n"), RuleManifest, "x.mf"},
		{"nothing in the root", map[string][]byte{"a/x.yaml": nil}, RuleEntry, "it has 0"},
		{"two templates", map[string][]byte{"x.yaml": nil, "y.yml": nil}, RuleEntry, "it has 2"},
		{"manifest misnamed", map[string][]byte{"x.yaml": nil, "y.mf": nil}, RuleManifest,
			`The filename "y.mf" is an invalid name.The name must be the same as the main template file name.`},
		{"no hash", files("\nName: Scripts/install.sh\nAlgorithm: SHA-256\n"), RuleArtifact,
			`One of the artifact information may not have the key("['Hash']")`},
		{"no algorithm, no name", files("\nHash: 00\n"), RuleArtifact, `may not have the key("['Name', 'Algorithm']")`},
		{"empty hash", files("\nName: Scripts/install.sh\nAlgorithm: SHA-256\nHash:\n"), RuleArtifact,
			`One of the artifact information may not have the key value("Hash")`},
		{"stray key", files("\nName: Scripts/install.sh\nAlgorithm: SHA-256\nHash: 00\nColour: red\n"), RuleArtifact, `"Colour"`},
		{"algorithm", files("\nName: Scripts/install.sh\nAlgorithm: MD5\nHash: 00\n"), RuleArtifact,
			`The algorithm("MD5") of artifact("Scripts/install.sh") is an invalid value.`},
		{"absent path", files("\nName: Scripts/x.sh\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact,
			`The path("Scripts/x.sh") of artifact Source is an invalid value.`},
		{"file URL", files("\nSource: file:///etc/passwd\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact, `The path("file:///etc/passwd")`},
		{"file URL with host", files("\nSource: file://h/etc/passwd\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact, "file://h/"},
		{"other scheme", files("\nSource: ftp://h/x\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact, "ftp://h/x"},
		{"traversal", files("\nSource: ../../etc/passwd\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact, "../../etc/passwd"},
		{"folder", files("\nSource: Scripts\nAlgorithm: SHA-256\nHash: 00\n"), RuleArtifact, `"Scripts"`},
		{"huge meta", files(noise(maxMetaFile + 1)), RuleLimit, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(csartest.Zip(t, c.files))
			wantRule(t, err, c.rule, c.text)
		})
	}
}

func TestArtifactKinds(t *testing.T) {
	// The URL is listed, not fetched; the image needs no valid digest; equal
	// blocks merge however their hash is written; blocks may touch.
	p := mustOpen(t, csartest.Zip(t, files("\nSource: https://example.com/a.sh\nAlgorithm: sha-384\nHash: 00\n"+
		"\nName: Files/images/absent.qcow2\nAlgorithm: X\n"+
		"\nName: Files/images/disk.img\nContent-type: application/x-iso9066-image\n"+
		"\nName: Files/images/disk.img\nName: Scripts/install.sh\nAlgorithm: sha-256\nHash: "+sum("true\n")+
		"\nName: Scripts/install.sh\nAlgorithm: SHA-256\nHash: "+strings.ToUpper(sum("true\n"))+"\n")))
	want := []Artifact{
		{Path: "https://example.com/a.sh", Algorithm: "sha-384", Hash: "00", URL: true},
		{Path: "Scripts/install.sh", Algorithm: "sha-256", Hash: sum("true\n")},
	}
	if diff := cmp.Diff(want, p.Artifacts()); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	if err := p.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestVerify(t *testing.T) {
	p := mustOpen(t, csartest.Zip(t, files("\nName: Scripts/install.sh\nAlgorithm: SHA-512\nHash: abc\n")))
	wantRule(t, p.Verify(t.Context()), RuleHash, `The hash "abc" of artifact file "Scripts/install.sh" is an invalid value.`)

	cause := errors.New("operator said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.Verify(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause of the cancellation", err)
	}
}

func TestFileSystem(t *testing.T) {
	m := files("")
	m["empty/"] = nil
	p := mustOpen(t, csartest.Zip(t, m))
	if err := fstest.TestFS(p.FS(), "TOSCA-Metadata/TOSCA.meta", "Definitions/top.yaml", "Scripts/install.sh", "empty"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(p.FS(), "nope"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of an absent file: %v", err)
	}
	if _, err := fs.ReadDir(p.FS(), "Scripts/install.sh"); err == nil {
		t.Error("a file was listed as a folder")
	}
}

// raw writes entries one after the other as they are given.
func raw(t testing.TB, add func(w *zip.Writer)) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	add(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func put(t testing.TB, w *zip.Writer, h *zip.FileHeader, data string) {
	t.Helper()
	f, err := w.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, data); err != nil {
		t.Fatal(err)
	}
}

func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"../evil", "a/../../evil", "a/..", "/etc/passwd", `..\evil`, `a\b`, "C:/evil", "c:evil", "a\x00b", "a\xff", ".", strings.Repeat("x", 5000),
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			_, err := open(raw(t, func(w *zip.Writer) {
				put(t, w, &zip.FileHeader{Name: "vnf.yaml"}, "")
				put(t, w, &zip.FileHeader{Name: name, NonUTF8: true}, "x")
			}))
			wantRule(t, err, RulePath, "")
		})
	}
	// An empty name and a file that is also a folder.
	for _, names := range [][]string{{""}, {"a", "a/b"}, {"a/b", "a"}} {
		_, err := open(raw(t, func(w *zip.Writer) {
			for _, n := range names {
				put(t, w, &zip.FileHeader{Name: n}, "")
			}
		}))
		wantRule(t, err, RulePath, "")
	}
}

func TestHarmlessNames(t *testing.T) {
	p := mustOpen(t, raw(t, func(w *zip.Writer) {
		put(t, w, &zip.FileHeader{Name: "./vnf.yaml"}, "")
		put(t, w, &zip.FileHeader{Name: "a//b..c"}, "")
		put(t, w, &zip.FileHeader{Name: "d/é"}, "")
	}))
	if diff := cmp.Diff([]string{"a/b..c", "d/é", "vnf.yaml"}, p.Files()); diff != "" {
		t.Error(diff)
	}
}

func TestSpecialFiles(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeSymlink, fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice | fs.ModeCharDevice} {
		_, err := open(raw(t, func(w *zip.Writer) {
			h := &zip.FileHeader{Name: "link"}
			h.SetMode(mode | 0o777)
			put(t, w, h, "/etc/passwd")
		}))
		wantRule(t, err, RuleMode, `"link"`)
	}
}

func TestDuplicateNames(t *testing.T) {
	p := mustOpen(t, raw(t, func(w *zip.Writer) {
		put(t, w, &zip.FileHeader{Name: "vnf.yaml"}, "first")
		put(t, w, &zip.FileHeader{Name: "d/"}, "")
		put(t, w, &zip.FileHeader{Name: "./vnf.yaml"}, "second")
		put(t, w, &zip.FileHeader{Name: "d/"}, "")
		put(t, w, &zip.FileHeader{Name: "vnf.yaml"}, "last")
	}))
	got, err := fs.ReadFile(p.FS(), "vnf.yaml")
	if err != nil || string(got) != "last" || len(p.Files()) != 1 {
		t.Errorf("%q, %v, %v; want the last of the entries", got, err, p.Files())
	}
}

func TestLimits(t *testing.T) {
	many := func(n int, format string) []byte {
		return raw(t, func(w *zip.Writer) {
			for i := range n {
				put(t, w, &zip.FileHeader{Name: fmt.Sprintf(format, i), Method: zip.Store}, "")
			}
		})
	}
	zeros := csartest.Zip(t, map[string][]byte{"vnf.yaml": make([]byte, 2<<20)})
	big := csartest.Zip(t, map[string][]byte{"vnf.yaml": []byte("0123456789"), "b": []byte("0123456789")})
	for _, c := range []struct {
		name string
		data []byte
		l    Limits
		text string
	}{
		{"100 000 entries", many(100_000, "f%d"), Limits{}, "more than 20000 entries"},
		{"entries", many(11, "f%d"), Limits{MaxEntries: 10}, "more than 10 entries"},
		{"folders", many(9, "d%d"+strings.Repeat("/x", 20)), Limits{MaxEntries: 10}, "more than 10 folders"},
		{"long names", many(1000, "%02000d"), Limits{MaxEntries: 1000}, "directory is larger"},
		{"ratio", zeros, Limits{}, "more than 200 to 1"},
		{"entry", big, Limits{MaxEntryBytes: 9}, "more than 9 bytes"},
		{"total", big, Limits{MaxTotalBytes: 19}, "more than 19 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(bytes.NewReader(c.data), int64(len(c.data)), c.l)
			wantRule(t, err, RuleLimit, c.text)
		})
	}
	if _, err := Open(bytes.NewReader(zeros), int64(len(zeros)), Limits{MaxRatio: 2000}); err != nil {
		t.Errorf("a higher ratio is allowed, yet: %v", err)
	}
}

// patchDirectory overwrites four bytes at off in the central header of the
// first entry of a package.
func patchDirectory(data []byte, off int, v uint32) []byte {
	data = slices.Clone(data)
	at := bytes.Index(data, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(data[at+off:], v)
	return data
}

func TestLyingSizes(t *testing.T) {
	honest := csartest.Zip(t, map[string][]byte{"vnf.yaml": make([]byte, 4<<20)})
	const compressedAt, uncompressedAt = 20, 24
	t.Run("more than declared", func(t *testing.T) {
		p := mustOpen(t, patchDirectory(honest, uncompressedAt, 100))
		data, err := fs.ReadFile(p.FS(), "vnf.yaml")
		wantRule(t, err, RuleZip, "vnf.yaml")
		if len(data) > 100 {
			t.Errorf("%d bytes were delivered", len(data))
		}
	})
	t.Run("less than declared", func(t *testing.T) {
		small := csartest.Zip(t, map[string][]byte{"vnf.yaml": []byte("abc")})
		p := mustOpen(t, patchDirectory(small, uncompressedAt, 500_000))
		_, err := fs.ReadFile(p.FS(), "vnf.yaml")
		wantRule(t, err, RuleZip, "vnf.yaml")
	})
	t.Run("compressed beyond the archive", func(t *testing.T) {
		_, err := open(patchDirectory(honest, compressedAt, 1<<30))
		wantRule(t, err, RuleZip, "Invalid zip file")
	})
	t.Run("checksum", func(t *testing.T) {
		small := csartest.Zip(t, map[string][]byte{"vnf.yaml": []byte("abc")})
		p := mustOpen(t, patchDirectory(small, 16, 12345))
		_, err := fs.ReadFile(p.FS(), "vnf.yaml")
		wantRule(t, err, RuleZip, "checksum")
	})
	t.Run("overlap", func(t *testing.T) {
		// Two directory entries that claim the same data.
		data := csartest.Zip(t, map[string][]byte{"a.yaml": []byte(strings.Repeat("x", 300)), "b": nil})
		data = bytes.Clone(data)
		second := bytes.LastIndex(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[second+20:], uint32(len(data)))
		_, err := open(data)
		wantRule(t, err, RuleZip, "Invalid zip file")
	})
}

func TestBigReadFileIsRefused(t *testing.T) {
	data := raw(t, func(w *zip.Writer) {
		put(t, w, &zip.FileHeader{Name: "vnf.yaml", Method: zip.Store}, strings.Repeat("x", maxReadFile+1))
	})
	p := mustOpen(t, data)
	_, err := fs.ReadFile(p.FS(), "vnf.yaml")
	wantRule(t, err, RuleLimit, "vnf.yaml")
	f, err := p.FS().Open("vnf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := io.Copy(io.Discard, f); err != nil || n != maxReadFile+1 {
		t.Errorf("streamed %d bytes, %v", n, err)
	}
}

func TestBrokenArchives(t *testing.T) {
	good := csartest.Zip(t, files(""))
	end := bytes.LastIndex(good, []byte("PK\x05\x06"))
	patch := func(off int, b ...byte) []byte {
		d := slices.Clone(good)
		copy(d[end+off:], b)
		return d
	}
	encrypted := slices.Clone(good)
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	method := slices.Clone(good)
	method[bytes.Index(method, []byte("PK\x01\x02"))+10] = 12
	zip64 := func(count uint64) []byte {
		d := slices.Clone(good[:end])
		rec := make([]byte, 56)
		copy(rec, "PK\x06\x06")
		binary.LittleEndian.PutUint64(rec[4:], 44)
		binary.LittleEndian.PutUint64(rec[24:], count)
		binary.LittleEndian.PutUint64(rec[32:], count)
		copy(rec[40:], []byte{good[end+12], good[end+13], good[end+14], good[end+15], 0, 0, 0, 0})
		copy(rec[48:], []byte{good[end+16], good[end+17], good[end+18], good[end+19], 0, 0, 0, 0})
		loc := make([]byte, 20)
		copy(loc, "PK\x06\x07")
		binary.LittleEndian.PutUint64(loc[8:], uint64(end))
		binary.LittleEndian.PutUint32(loc[16:], 1)
		tail := slices.Clone(good[end:])
		copy(tail[8:], bytes.Repeat([]byte{0xff}, 12))
		return slices.Concat(d, rec, loc, tail)
	}
	badLocator := zip64(4)
	binary.LittleEndian.PutUint64(badLocator[len(badLocator)-22-12:], 1<<60)
	for _, c := range []struct {
		name string
		data []byte
		rule string
	}{
		{"empty", nil, RuleZip},
		{"text", []byte(strings.Repeat("no zip ", 100)), RuleZip},
		{"truncated", good[:len(good)-10], RuleZip},
		{"half", good[:len(good)/2], RuleZip},
		{"comment longer than the file", patch(20, 0xff, 0x7f), RuleZip},
		{"count too high", patch(8, 9, 0, 9, 0), RuleZip},
		{"count absurd", patch(8, 0xfe, 0xff, 0xfe, 0xff), RuleLimit},
		{"directory outside", patch(16, 0xf0, 0xff, 0xff, 0x7f), RuleZip},
		{"zip64 with 2^62 entries", zip64(1 << 62), RuleLimit},
		{"zip64 record outside", badLocator, RuleZip},
		{"encrypted", encrypted, RuleMethod},
		{"unknown compression", method, RuleMethod},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(c.data)
			wantRule(t, err, c.rule, "")
		})
	}
	if _, err := open(zip64(4)); err != nil {
		t.Errorf("a correct zip64 archive: %v", err)
	}
}

func TestSamplePackages(t *testing.T) {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
		return
	}
	overlay := map[string][]byte{}
	for name, data := range csartest.Files(t, filepath.Join(dir, "common")) {
		overlay[name] = data
	}
	for _, n := range []string{"install.sh", "install_k8s_cluster.sh", "install_helm.sh", "kubernetes_mgmt.py"} {
		overlay["Scripts/"+n] = []byte("dummy " + n)
	}
	overlay["Files/images/cirros-0.5.2-x86_64-disk.img"] = []byte("dummy")
	for _, c := range []struct {
		name, entry string
		artifacts   int
	}{
		{"kubernetes_vnf_package", "Definitions/sample_kubernetes_top.vnfd.yaml", 3},
		{"functional", "Definitions/helloworld3_top.vnfd.yaml", 0},
		{"vnflcm3", "Definitions/helloworld3.vnfd.tosca.yaml", 0},
		{"cnf_scale", "Definitions/helloworld3_top.vnfd.yaml", 3},
		{"cnf_resources", "Definitions/helloworld3_top.vnfd.yaml", 28},
		{"csar/vnfpkgm1", "Definitions/helloworld3_top.vnfd.yaml", 2},
		{"csar/vnfpkgm2", "Definitions/helloworld3_top.vnfd.yaml", 2},
		{"csar/vnfpkgm3", "vnfd_helloworld_single.yaml", 2},
		{"csar/sample_vnf_package_csar_manifest", "VNF.yaml", 2},
		{"csar/sample_vnf_package_csar_meta", "Definitions/helloworld3_top.vnfd.yaml", 1},
		{"csar/sample_vnf_package_csar_in_meta_and_manifest", "Definitions/helloworld3_top.vnfd.yaml", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			over := map[string][]byte{c.entry: []byte("dummy: true\n")}
			for n, d := range overlay {
				over[n] = d
			}
			p := mustOpen(t, csartest.FromDir(t, filepath.Join(dir, c.name), over, true))
			if p.Entry() != c.entry || len(p.Artifacts()) != c.artifacts {
				t.Errorf("entry %q, %d artifacts; want %q, %d", p.Entry(), len(p.Artifacts()), c.entry, c.artifacts)
			}
			if err := p.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// hurried is an archive that is read until there is no more time.
type hurried struct {
	*bytes.Reader
	over bool
}

// ReadAt implements io.ReaderAt.
func (h *hurried) ReadAt(p []byte, at int64) (int, error) {
	if h.over {
		return 0, fmt.Errorf("read: %w", context.DeadlineExceeded)
	}
	return h.Reader.ReadAt(p, at)
}

// TestNoMoreTime: an archive is not at fault when its reader has no more time.
func TestNoMoreTime(t *testing.T) {
	data := csartest.Zip(t, map[string][]byte{"vnfd.yaml": []byte("tosca_definitions_version: tosca_simple_yaml_1_2\n")})
	h := &hurried{Reader: bytes.NewReader(data)}
	p, err := Open(h, int64(len(data)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	h.over = true
	_, err = fs.ReadFile(p.FS(), "vnfd.yaml")
	var own *Error
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &own) {
		t.Errorf("%v", err)
	}
}
