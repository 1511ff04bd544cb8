package openstack

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// packageFS is a folder as an onboarded package.
type packageFS struct{ fs.FS }

func (p packageFS) ReadFile(name string) ([]byte, error)       { return fs.ReadFile(p.FS, name) }
func (p packageFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(p.FS, name) }
func (packageFS) Close() error                                 { return nil }

// opener opens a package as an Execution does.
func opener(fsys fs.FS) func(context.Context) (lcm.PackageFS, error) {
	return func(context.Context) (lcm.PackageFS, error) { return packageFS{fsys}, nil }
}

// testPackage returns a package of testdata and one of its flavours.
func testPackage(t testing.TB, name, flavour string) (fs.FS, *vnfd.Flavour) {
	t.Helper()
	fsys := os.DirFS("testdata/packages/" + name)
	d, err := vnfd.Read(fsys, "Definitions/top.yaml")
	if err != nil {
		t.Fatalf("package %s: %v", name, err)
	}
	f, ok := d.Flavour(flavour)
	if !ok {
		t.Fatalf("package %s has no flavour %s", name, flavour)
	}
	return fsys, f
}

func newInstance() *lcm.Instance {
	return &lcm.Instance{ID: uuid.NewString(), Name: "an instance, with a comma"}
}

// serve serves on loopback until the test ends, and returns the URL.
func serve(t *testing.T, s *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}
