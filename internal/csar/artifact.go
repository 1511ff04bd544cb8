package csar

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Artifact is a file of the package, or beside it, whose digest TOSCA.meta or
// the manifest declares (SOL004 v2.6.1 §4.3.2).
type Artifact struct {
	// Path is the file's path in the package, or its URL.
	Path string
	// Algorithm is the digest's name as it is written, e.g. "SHA-256".
	Algorithm string
	// Hash is the declared digest in hexadecimal, as it is written.
	Hash string
	// URL tells that Path is an absolute http or https URL.
	URL bool
}

// Artifacts returns the declared artifacts in the order of TOSCA.meta and then
// of the manifest, each once. Blocks about virtual machine images are left
// out: images are described and checked by the VNFD.
func (p *Package) Artifacts() []Artifact { return slices.Clone(p.artifacts) }

// Verify reads every artifact that lies in the package and compares its digest
// with the declared one, ignoring the case of hexadecimal digits. It returns
// an *[Error] with the rule [RuleHash] for the first that differs, an error of
// reading, or the cause of ctx's end. URLs are not fetched.
func (p *Package) Verify(ctx context.Context) error {
	buf := make([]byte, 128<<10)
	for _, a := range p.artifacts {
		if a.URL {
			continue
		}
		if err := p.verify(ctx, a, buf); err != nil {
			return err
		}
	}
	return nil
}

func (p *Package) verify(ctx context.Context, a Artifact, buf []byte) error {
	f, err := p.tree.Open(a.Path)
	if err != nil {
		return fmt.Errorf("open artifact: %w", err)
	}
	defer f.Close()
	h := newHash(a.Algorithm)
	for {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("verify artifact %q: %w", a.Path, err)
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read artifact: %w", err)
		}
	}
	if !strings.EqualFold(hex.EncodeToString(h.Sum(nil)), a.Hash) {
		return refuse(a.Path, RuleHash, "The hash %q of artifact file %q is an invalid value.", printable(a.Hash), a.Path)
	}
	return nil
}

// newHash returns the digest of that name, or nil.
func newHash(algorithm string) hash.Hash {
	switch strings.ToLower(algorithm) {
	case "sha-224":
		return sha256.New224()
	case "sha-256":
		return sha256.New()
	case "sha-384":
		return sha512.New384()
	case "sha-512":
		return sha512.New()
	}
	return nil
}

// field is one "Key: value" line.
type field struct{ key, value string }

// block is a group of lines between blank ones.
type block []field

func (b block) get(key string) (string, bool) {
	for _, f := range b {
		if f.key == key {
			return f.value, true
		}
	}
	return "", false
}

// lookup returns the value of the first field of that name in any block.
func lookup(blocks []block, key string) string {
	for _, b := range blocks {
		if v, ok := b.get(key); ok {
			return unquote(v)
		}
	}
	return ""
}

// unquote strips the quotes that some authors put around values because they
// take TOSCA.meta for YAML.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func (p *Package) readBlocks(name string) ([]block, error) {
	data, err := p.tree.readFile(name, maxMetaFile)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return parseBlocks(data), nil
}

// parseBlocks splits the text of TOSCA.meta or of a manifest. Lines without a
// colon, such as those of a CMS signature, carry no field. A second Name or
// Source begins a new block even without a blank line between.
func parseBlocks(data []byte) []block {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var out []block
	var cur block
	flush := func() {
		if len(cur) > 0 {
			out = append(out, cur)
		}
		cur = nil
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" {
			flush()
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		f := field{strings.TrimSpace(key), strings.TrimSpace(value)}
		if f.key == "Name" || f.key == "Source" {
			if _, has := cur.get(f.key); has {
				flush()
			}
		}
		cur = append(cur, f)
	}
	flush()
	return out
}

// collect turns the blocks that describe artifacts into artifacts. A block
// counts when it has Algorithm or Hash; it must then have, besides an optional
// Content-Type, exactly Name or Source, Algorithm and Hash, none empty.
func (p *Package) collect(blocks []block) ([]Artifact, error) {
	var out []Artifact
	seen := map[Artifact]bool{}
	for _, b := range blocks {
		_, hasAlgorithm := b.get("Algorithm")
		_, hasHash := b.get("Hash")
		if !hasAlgorithm && !hasHash {
			continue
		}
		source, sourceKey := "", "Name"
		for _, k := range []string{"Name", "Source"} {
			if v, ok := b.get(k); ok {
				source, sourceKey = v, k
			}
		}
		if isImage(source) {
			continue
		}
		a, err := p.artifact(b, source, sourceKey)
		if err != nil {
			return nil, err
		}
		same := Artifact{Path: a.Path, Algorithm: strings.ToLower(a.Algorithm), Hash: strings.ToLower(a.Hash), URL: a.URL}
		if !seen[same] {
			seen[same] = true
			out = append(out, a)
		}
	}
	return out, nil
}

func (p *Package) artifact(b block, source, sourceKey string) (Artifact, error) {
	var none Artifact
	want := []string{sourceKey, "Algorithm", "Hash"}
	var missing []string
	for _, k := range want {
		if _, ok := b.get(k); !ok {
			missing = append(missing, "'"+k+"'")
		}
	}
	if len(missing) > 0 {
		return none, refuse(printable(source), RuleArtifact, `One of the artifact information may not have the key("[%s]")`, strings.Join(missing, ", "))
	}
	seen := map[string]bool{}
	for _, f := range b {
		if strings.EqualFold(f.key, "Content-Type") {
			continue
		}
		if !slices.Contains(want, f.key) || seen[f.key] {
			return none, refuse(printable(source), RuleArtifact, "One of the artifact information has the unexpected key(%q)", printable(f.key))
		}
		seen[f.key] = true
		if f.value == "" {
			return none, refuse(printable(source), RuleArtifact, "One of the artifact information may not have the key value(%q)", f.key)
		}
	}
	algorithm, _ := b.get("Algorithm")
	sum, _ := b.get("Hash")
	if newHash(algorithm) == nil {
		return none, refuse(printable(source), RuleArtifact, "The algorithm(%q) of artifact(%q) is an invalid value.", printable(algorithm), printable(source))
	}
	a := Artifact{Path: source, Algorithm: algorithm, Hash: sum}
	if u, err := url.Parse(source); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		a.URL = true
		return a, nil
	}
	name, err := p.member(source, RuleArtifact, "The path(%q) of artifact Source is an invalid value.")
	if err != nil {
		return none, err
	}
	a.Path = name
	return a, nil
}

// isImage tells by its extension whether a file is a virtual machine image in
// one of the disk or container formats of SOL001 v2.6.1 §6.2.
func isImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".raw", ".vhd", ".vhdx", ".vmdk", ".vdi", ".iso", ".ploop", ".qcow2", ".aki", ".ari", ".ami", ".img":
		return true
	}
	return false
}
