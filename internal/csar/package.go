package csar

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const metaPath = "TOSCA-Metadata/TOSCA.meta"

// Package is an opened, structurally valid VNF package. It is immutable and
// safe for concurrent use as long as the underlying reader is.
type Package struct {
	tree      *tree
	meta      string
	entry     string
	manifest  string
	artifacts []Artifact
}

// Open reads the directory of the archive in r, which has size bytes, and
// refuses it with an *[Error] when an entry's name could lead outside the
// package, an entry is a link or another special file, a limit of l is
// exceeded, or the metadata break SOL004 v2.6.1 §4 or the artifact rules of
// [Package.Artifacts]. Entries' contents are not read except for the metadata;
// what they really inflate to is checked while they are read. r has to stay
// open as long as the package is in use.
func Open(r io.ReaderAt, size int64, l Limits) (*Package, error) {
	l = l.withDefaults()
	zr, err := readDirectory(r, size, l)
	if err != nil {
		return nil, err
	}
	t, err := index(zr, size, l)
	if err != nil {
		return nil, err
	}
	p := &Package{tree: t}
	if _, ok := t.files[metaPath]; ok {
		err = p.readMeta()
	} else {
		err = p.readRoot()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// FS returns the package's content. Names are cleaned, slash-separated and
// relative to the package's root. It also implements fs.ReadFileFS (entries up
// to 64 MiB), fs.ReadDirFS and fs.StatFS. Limits hold while reading.
func (p *Package) FS() fs.FS { return p.tree }

// Entry returns the path of the entry definitions: Entry-Definitions of
// TOSCA.meta, or the only YAML file in the root (SOL004 v2.6.1 §4.1).
func (p *Package) Entry() string { return p.entry }

// MetaPath returns the path of TOSCA.meta, or "" when the package has none.
func (p *Package) MetaPath() string { return p.meta }

// ManifestPath returns the path of the manifest, or "" when there is none.
func (p *Package) ManifestPath() string { return p.manifest }

// Files returns the paths of all files of the package, sorted.
func (p *Package) Files() []string { return slices.Clone(p.tree.names) }

// readMeta handles the layouts with a TOSCA-Metadata folder.
func (p *Package) readMeta() error {
	p.meta = metaPath
	blocks, err := p.readBlocks(metaPath)
	if err != nil {
		return err
	}
	entry := lookup(blocks, "Entry-Definitions")
	if entry == "" {
		return refuse(metaPath, RuleMeta, `The TOSCA.meta file has no "Entry-Definitions"`)
	}
	p.entry, err = p.member(entry, RuleEntry, `The "Entry-Definitions" file %q does not exist in the package`)
	if err != nil {
		return err
	}
	all := blocks
	if mf := lookup(blocks, "ETSI-Entry-Manifest"); mf != "" {
		p.manifest, err = p.member(mf, RuleManifest, `The "ETSI-Entry-Manifest" file %q does not exist in the package`)
		if err != nil {
			return err
		}
		more, err := p.readBlocks(p.manifest)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	p.artifacts, err = p.collect(all)
	return err
}

// readRoot handles the layout without a metadata folder.
func (p *Package) readRoot() error {
	var templates, manifests []string
	for _, name := range p.tree.names {
		if strings.Contains(name, "/") {
			continue
		}
		switch path.Ext(name) {
		case ".yaml", ".yml":
			templates = append(templates, name)
		case ".mf":
			manifests = append(manifests, name)
		}
	}
	if len(templates) != 1 {
		return refuse("", RuleEntry, "A package without TOSCA-Metadata/TOSCA.meta needs exactly one .yaml or .yml file in its root, but it has %d", len(templates))
	}
	p.entry = templates[0]
	if len(manifests) == 0 {
		return nil
	}
	want := strings.TrimSuffix(p.entry, path.Ext(p.entry)) + ".mf"
	for _, name := range manifests {
		if name != want {
			return refuse(name, RuleManifest, "The filename %q is an invalid name.The name must be the same as the main template file name.", name)
		}
	}
	p.manifest = want
	blocks, err := p.readBlocks(want)
	if err != nil {
		return err
	}
	p.artifacts, err = p.collect(blocks)
	return err
}

// member returns the clean path of a file that metadata refer to, or an error
// made of format with the reference in it.
func (p *Package) member(ref, rule, format string) (string, error) {
	name, dir, bad := cleanName(ref)
	if bad == nil && !dir {
		if _, ok := p.tree.files[name]; ok {
			return name, nil
		}
	}
	return "", refuse(printable(ref), rule, format, printable(ref))
}
