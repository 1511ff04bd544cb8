package csar

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
)

// FuzzOpen checks that no archive makes the reader panic, that every refusal
// is typed, and that what is accepted stays inside the package and its limits.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	l := Limits{MaxEntries: 50, MaxEntryBytes: 1 << 20, MaxTotalBytes: 2 << 20, MaxRatio: 100}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Open(bytes.NewReader(data), int64(len(data)), l)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("untyped error %v (%T)", err, err)
			}
			return
		}
		if len(p.Files()) > l.MaxEntries {
			t.Fatalf("%d files", len(p.Files()))
		}
		for _, name := range append(p.Files(), p.Entry()) {
			if !fs.ValidPath(name) {
				t.Fatalf("unsafe path %q", name)
			}
			file, err := p.FS().Open(name)
			if err != nil {
				continue
			}
			info, err := file.Stat()
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, file)
			if n > info.Size() || n > l.MaxEntryBytes {
				t.Fatalf("%q yields %d bytes, declares %d", name, n, info.Size())
			}
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("untyped error %v (%T)", err, err)
			}
			if err := file.Close(); err != nil && !errors.As(err, &e) {
				t.Fatalf("untyped error %v (%T)", err, err)
			}
		}
		for _, a := range p.Artifacts() {
			if !a.URL && !fs.ValidPath(a.Path) {
				t.Fatalf("unsafe artifact path %q", a.Path)
			}
		}
		if err := p.Verify(t.Context()); err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("untyped error %v (%T)", err, err)
			}
		}
	})
}
