// Package deploy carries what is shipped beside the binary: the sample VNF packages, written to be read and changed,
// and the requests that instantiate them on the simulated OpenStack, and on a Kubernetes cluster.
package deploy

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed all:packages definitions
var content embed.FS

const meta = "TOSCA-Metadata/TOSCA.meta"

// Names lists the sample packages, sorted: what [Package] and [InstantiateRequest] know.
func Names() []string {
	entries, err := fs.ReadDir(content, "packages")
	if err != nil {
		return nil // the folder is embedded
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Package builds a sample package as a CSAR (ETSI GS NFV-SOL 004 v2.6.1 §4.1.2, the layout with TOSCA.meta): the
// package's folder, the type definitions that all of them import, and the digests of the artifacts that TOSCA.meta
// names. Equal content gives equal bytes. The error is fs.ErrNotExist when there is no package of that name.
func Package(name string) ([]byte, error) {
	files, err := Files(name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if path.Ext(p) == ".sh" {
			mode = 0o755
		}
		h := &zip.FileHeader{Name: p, Method: zip.Deflate, Modified: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write(files[p])
		}
		if err != nil {
			return nil, fmt.Errorf("zip %s of sample package %s: %w", p, name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("zip sample package %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Files returns the content of a sample package by its path in the CSAR, as [Package] zips it.
func Files(name string) (map[string][]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("sample package %q (there are: %s): %w", name, strings.Join(Names(), ", "), fs.ErrNotExist)
	}
	files := map[string][]byte{}
	for from, to := range map[string]string{path.Join("packages", name): "", "definitions": "Definitions"} {
		err := fs.WalkDir(content, from, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := content.ReadFile(p)
			files[path.Join(to, strings.TrimPrefix(p, from+"/"))] = data
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read sample package %s: %w", name, err)
		}
	}
	withHashes, err := hashed(files)
	if err != nil {
		return nil, fmt.Errorf("sample package %s: %w", name, err)
	}
	files[meta] = withHashes
	return files, nil
}

// hashed is TOSCA.meta with a Hash after each Algorithm, which is SHA-256.
func hashed(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	var artifact string
	for line := range strings.Lines(string(files[meta])) {
		out.WriteString(line)
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Name":
			artifact = value
		case "Algorithm":
			data, ok := files[artifact]
			if !ok || value != "SHA-256" {
				return nil, fmt.Errorf("%s: no digest %s can be made of %q", meta, value, artifact)
			}
			sum := sha256.Sum256(data)
			out.WriteString("Hash: " + hex.EncodeToString(sum[:]) + "\n")
		}
	}
	return out.Bytes(), nil
}
