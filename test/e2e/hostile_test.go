package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

const modeLink = fs.ModeSymlink | 0o777

// hostile is our cluster package with one more entry.
func hostile(t *testing.T, name string, mode fs.FileMode) []byte {
	t.Helper()
	files, err := deploy.Files("kubernetes-cluster")
	must(t, err)
	files[name] = []byte("/etc/passwd")
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, n := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: n, Method: zip.Deflate}
		if n == name && mode != 0 {
			h.SetMode(mode)
		}
		f, err := w.CreateHeader(h)
		must(t, err)
		_, err = f.Write(files[n])
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// changed is our cluster package with a file that has changed since it was hashed.
func changed(t *testing.T, name string) []byte {
	t.Helper()
	files, err := deploy.Files("kubernetes-cluster")
	must(t, err)
	files[name] = append(slices.Clone(files[name]), "# one more line\n"...)
	return csartest.Zip(t, files)
}

// without is our cluster package with another text in its definitions.
func without(t *testing.T, old, text string) []byte {
	t.Helper()
	files, err := deploy.Files("kubernetes-cluster")
	must(t, err)
	for name, data := range files {
		if strings.HasPrefix(name, "Definitions/") {
			files[name] = bytes.ReplaceAll(data, []byte(old), []byte(text))
		}
	}
	return csartest.Zip(t, files)
}

// checkNoContent waits until the database holds no content of packages.
func (l *lab) checkNoContent(ctx context.Context, t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(ctx, l.DatabaseURL)
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var contents, chunks int
	err = harness.Await(ctx, "the contents of deleted packages are gone", func(ctx context.Context) (bool, error) {
		err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM contents), (SELECT count(*) FROM content_chunks)").Scan(&contents, &chunks)
		return contents+chunks == 0, err
	})
	if err != nil {
		t.Errorf("%v; there are %d contents and %d chunks", err, contents, chunks)
	}
}
