// Package csartest builds VNF packages for tests.
package csartest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Zip returns an archive of files (path to content), sorted by path and with
// constant times, so that equal input gives equal bytes. A path that ends in
// "/" makes a folder.
func Zip(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
		if strings.HasSuffix(name, "/") {
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatalf("csartest: add %q: %v", name, err)
		}
		if _, err := f.Write(files[name]); err != nil {
			t.Fatalf("csartest: write %q: %v", name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("csartest: close archive: %v", err)
	}
	return buf.Bytes()
}

// FromDir zips the folder dir with overlay's files added or put in place of
// its own; a nil content removes a file. With fixHashes the Hash lines of
// TOSCA-Metadata/TOSCA.meta and of every .mf file are recomputed for the files
// that are there.
func FromDir(t testing.TB, dir string, overlay map[string][]byte, fixHashes bool) []byte {
	t.Helper()
	files := Files(t, dir)
	for name, data := range overlay {
		if data == nil {
			delete(files, name)
			continue
		}
		files[name] = data
	}
	if fixHashes {
		FixHashes(files)
	}
	return Zip(t, files)
}

// Files reads all regular files below dir, keyed by their slash paths.
func Files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatalf("csartest: read %q: %v", dir, err)
	}
	return files
}

// FixHashes rewrites, in place, the Hash lines of the metadata among files to
// the digests of the files they speak of. Blocks about absent files stay.
func FixHashes(files map[string][]byte) {
	for name, data := range files {
		if name == "TOSCA-Metadata/TOSCA.meta" || strings.HasSuffix(name, ".mf") {
			files[name] = fixBlocks(data, files)
		}
	}
}

func fixBlocks(data []byte, files map[string][]byte) []byte {
	lines := strings.Split(string(data), "\n")
	var source, algorithm string
	hashLine := -1
	flush := func() {
		if content, ok := files[source]; ok && hashLine >= 0 {
			if sum := digest(algorithm, content); sum != "" {
				lines[hashLine] = "Hash: " + sum
			}
		}
		source, algorithm, hashLine = "", "", -1
	}
	for i, line := range lines {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "":
			flush()
		case "Name", "Source":
			source = value
		case "Algorithm":
			algorithm = value
		case "Hash":
			hashLine = i
		}
	}
	flush()
	return []byte(strings.Join(lines, "\n"))
}

func digest(algorithm string, data []byte) string {
	switch strings.ToLower(algorithm) {
	case "sha-224":
		s := sha256.Sum224(data)
		return hex.EncodeToString(s[:])
	case "sha-256":
		s := sha256.Sum256(data)
		return hex.EncodeToString(s[:])
	case "sha-384":
		s := sha512.Sum384(data)
		return hex.EncodeToString(s[:])
	case "sha-512":
		s := sha512.Sum512(data)
		return hex.EncodeToString(s[:])
	}
	return ""
}
