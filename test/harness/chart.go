package harness

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Chart makes a Helm chart's archive (.tgz) of a folder's files, under the chart's name, with texts in them replaced.
func Chart(folder fs.FS, name string, texts *strings.Replacer) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err := fs.WalkDir(folder, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(folder, file)
		if err != nil {
			return err
		}
		raw = []byte(texts.Replace(string(raw)))
		if err := w.WriteHeader(&tar.Header{Name: path.Join(name, file), Mode: 0o644, Size: int64(len(raw)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = zipped.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("make the archive of chart %s: %w", name, err)
	}
	return out.Bytes(), nil
}
