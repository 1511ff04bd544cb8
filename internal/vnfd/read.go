package vnfd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

const (
	maxFileBytes   = 4 << 20  // one YAML file
	maxTotalBytes  = 16 << 20 // all YAML files of a descriptor
	maxFiles       = 200
	maxImportDepth = 20
	maxFlavours    = 100
	maxTemplates   = 2_000     // nodes of one topology
	maxWork        = 5_000_000 // see reader.spend
)

// Read reads the descriptor whose entry definitions are the file entry of
// fsys, following its imports inside fsys. All findings come back together as
// a [Diagnostics] error; the descriptor is nil then.
func Read(fsys fs.FS, entry string) (*Descriptor, error) {
	r := &reader{fsys: fsys, docs: map[string]*document{}, budget: maxNodes, bytes: maxTotalBytes, work: maxWork}
	top := r.load(entry, pos{file: entry}, 0)
	var d *Descriptor
	if top != nil && len(r.list) == 0 {
		// Templates are looked at only when every file could be read: what
		// a missing types file leaves undefined would bury the real finding.
		d = r.descriptor(top)
	}
	if len(r.list) > 0 {
		return nil, r.list
	}
	return d, nil
}

// document is a parsed file.
type document struct {
	path    string
	root    *node
	loading bool
}

func (d *document) topology() *node { return d.root.get("topology_template") }

// reader holds what is known while one descriptor is read.
type reader struct {
	report
	fsys   fs.FS
	docs   map[string]*document
	order  []*document
	budget int
	bytes  int64
	work   int
	// remote tells that a type may be defined in an import by URL, which is
	// not fetched.
	remote bool
	types  typeTable
}

// spend takes n from the allowance of checks that one descriptor gets. Small
// files can ask for large products, such as every node times every property of
// its type; an honest descriptor stays orders of magnitude below.
func (r *reader) spend(n int) bool {
	if r.work < 0 {
		return false
	}
	if r.work -= n; r.work < 0 {
		r.add(pos{file: r.order[0].path}, RuleLimit, "the descriptor is too complex to check")
		return false
	}
	return true
}

// load reads the file name and everything it imports. at is the import.
func (r *reader) load(name string, at pos, depth int) *document {
	if d, ok := r.docs[name]; ok {
		if d != nil && d.loading {
			r.add(at, RuleImport, "the import of %q is circular", name)
		}
		return d
	}
	if depth > maxImportDepth {
		r.add(at, RuleLimit, "imports are nested deeper than %d", maxImportDepth)
		return nil
	}
	if len(r.docs) >= maxFiles {
		r.add(at, RuleLimit, "the descriptor has more than %d files", maxFiles)
		return nil
	}
	r.docs[name] = nil
	data, err := r.readFile(name)
	if err != nil {
		r.add(at, RuleFile, "cannot read %q: %v", name, err)
		return nil
	}
	root := parseYAML(name, data, &r.report, &r.budget)
	if root == nil {
		return nil
	}
	d := &document{path: name, root: root, loading: true}
	r.docs[name] = d
	r.order = append(r.order, d)
	r.imports(d, depth)
	d.loading = false
	return d
}

func (r *reader) readFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, errors.New("the path is invalid")
	}
	f, err := r.fsys.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("the package has no such file")
		}
		return nil, err
	}
	defer f.Close()
	limit := min(int64(maxFileBytes), r.bytes)
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("YAML files larger than %d bytes each or %d bytes together are refused", maxFileBytes, maxTotalBytes)
	}
	r.bytes -= int64(len(data))
	return data, nil
}

// imports follows a file's imports section: file names, or mappings with the
// key file, as such or under a name of their own.
func (r *reader) imports(d *document, depth int) {
	section := d.root.get("imports")
	if section.isNull() {
		return
	}
	if !section.isList() {
		r.add(section.pos, RuleImport, "imports is not a list")
		return
	}
	for _, item := range section.items {
		ref, at := item.string(), item.pos
		if item.isMap() {
			target := item.get("file")
			if target == nil && len(item.keys) == 1 {
				target = item.keys[0].val
				if target.isMap() {
					target = target.get("file")
				}
			}
			ref = target.string()
		}
		if ref == "" {
			r.add(at, RuleImport, "the import names no file")
			continue
		}
		if isRemote(ref) {
			r.remote = true
			continue
		}
		name, ok := r.locate(d.path, ref)
		if !ok {
			r.add(at, RuleImport, "the imported file %q does not exist in the package", ref)
			continue
		}
		r.load(name, at, depth+1)
	}
}

// locate finds the file that ref, written in the file from, means. References
// are relative to the file or to the package's root; authors also use "../"
// for the root whatever folder they are in.
func (r *reader) locate(from, ref string) (string, bool) {
	candidates := []string{path.Join(path.Dir(from), ref), path.Clean(ref)}
	if i := strings.LastIndex(ref, "../"); i >= 0 {
		candidates = append(candidates, path.Clean(ref[i+len("../"):]))
	}
	if strings.HasPrefix(ref, "/") || strings.Contains(ref, `\`) {
		return "", false
	}
	for _, c := range candidates {
		if !fs.ValidPath(c) {
			continue
		}
		if info, err := fs.Stat(r.fsys, c); err == nil && info.Mode().IsRegular() {
			return c, true
		}
	}
	return "", false
}

// isRemote tells an absolute http or https URL.
func isRemote(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
