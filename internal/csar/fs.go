package csar

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"time"
)

// tree is the read-only file system over an archive's cleaned names.
type tree struct {
	limits Limits
	files  map[string]*zip.File
	dirs   map[string][]fs.DirEntry
	names  []string
}

var (
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.ReadDirFS  = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
)

func newTree(l Limits) *tree {
	return &tree{limits: l, files: map[string]*zip.File{}, dirs: map[string][]fs.DirEntry{".": nil}}
}

func (t *tree) addDir(name string) {
	for name != "." {
		if _, ok := t.dirs[name]; ok {
			return
		}
		t.dirs[name] = nil
		name = path.Dir(name)
	}
}

func (t *tree) addFile(name string, f *zip.File) {
	t.files[name] = f
	t.addDir(path.Dir(name))
}

// seal checks that no name is both a file and a folder and fills the listings.
func (t *tree) seal() error {
	for name := range t.dirs {
		if _, ok := t.files[name]; ok {
			return refuse(name, RulePath, "the package entry %q is both a file and a folder", name)
		}
		if name != "." {
			parent := path.Dir(name)
			t.dirs[parent] = append(t.dirs[parent], fs.FileInfoToDirEntry(dirInfo(path.Base(name))))
		}
	}
	for name, f := range t.files {
		parent := path.Dir(name)
		t.dirs[parent] = append(t.dirs[parent], fs.FileInfoToDirEntry(fileInfo{path.Base(name), f}))
		t.names = append(t.names, name)
	}
	for _, list := range t.dirs {
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	sort.Strings(t.names)
	return nil
}

// Open implements fs.FS. The file's content is inflated while it is read.
func (t *tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if f, ok := t.files[name]; ok {
		rc, err := f.Open()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: corrupt(name, err)}
		}
		left := min(int64(f.UncompressedSize64), t.limits.MaxEntryBytes)
		return &file{name: name, info: fileInfo{path.Base(name), f}, rc: rc, left: left}, nil
	}
	if list, ok := t.dirs[name]; ok {
		return &folder{info: dirInfo(path.Base(name)), list: list}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Stat implements fs.StatFS without opening the entry.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	if f, ok := t.files[name]; ok {
		return fileInfo{path.Base(name), f}, nil
	}
	if _, ok := t.dirs[name]; ok {
		return dirInfo(path.Base(name)), nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS; the listing is sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	list, ok := t.dirs[name]
	if !ok {
		err := fs.ErrNotExist
		if _, isFile := t.files[name]; isFile {
			err = errors.New("not a directory")
		}
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return slices.Clone(list), nil
}

// ReadFile implements fs.ReadFileFS for entries of up to 64 MiB; larger ones
// have to be streamed with Open.
func (t *tree) ReadFile(name string) ([]byte, error) { return t.readFile(name, maxReadFile) }

func (t *tree) readFile(name string, limit int64) ([]byte, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The declared size is not believed: the buffer grows with what arrives.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name,
			Err: refuse(name, RuleLimit, "the package entry %q has more than %d bytes", name, limit)}
	}
	return data, nil
}

// file streams one entry and stops it from yielding more than it declared.
type file struct {
	name string
	info fileInfo
	rc   io.ReadCloser
	left int64
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close reports damage that the inflater found even if nobody read so far.
func (f *file) Close() error {
	if err := f.rc.Close(); err != nil {
		return &fs.PathError{Op: "close", Path: f.name, Err: corrupt(f.name, err)}
	}
	return nil
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.rc.Read(p)
	f.left -= int64(n)
	if f.left < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name,
			Err: refuse(f.name, RuleLimit, "the package entry %q is larger than it declares", f.name)}
	}
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: "read", Path: f.name, Err: corrupt(f.name, err)}
	}
	return n, err
}

// corrupt is why an entry cannot be read: the archive's fault, unless whoever reads it has no more time.
func corrupt(name string, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return cause
	}
	return wrap(cause, name, RuleZip, "Invalid zip file: the package entry %q cannot be read: %v", name, cause)
}

// folder is an opened directory.
type folder struct {
	info dirInfo
	list []fs.DirEntry
	pos  int
}

func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *folder) Close() error               { return nil }
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: string(d.info), Err: errors.New("is a directory")}
}

func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.list[d.pos:]
	if n <= 0 {
		d.pos = len(d.list)
		return slices.Clone(rest), nil
	}
	if len(rest) == 0 {
		return nil, io.EOF
	}
	rest = rest[:min(n, len(rest))]
	d.pos += len(rest)
	return slices.Clone(rest), nil
}

type fileInfo struct {
	base string
	f    *zip.File
}

func (i fileInfo) Name() string       { return i.base }
func (i fileInfo) Size() int64        { return int64(i.f.UncompressedSize64) }
func (i fileInfo) Mode() fs.FileMode  { return 0o444 | i.f.Mode()&0o111 }
func (i fileInfo) ModTime() time.Time { return i.f.Modified }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }

type dirInfo string

func (i dirInfo) Name() string       { return string(i) }
func (i dirInfo) Size() int64        { return 0 }
func (i dirInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (i dirInfo) ModTime() time.Time { return time.Time{} }
func (i dirInfo) IsDir() bool        { return true }
func (i dirInfo) Sys() any           { return nil }
