package pkgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
)

// errClosed ends the reads of a packageFS that has been closed.
var errClosed = fmt.Errorf("the package content has been closed: %w", fs.ErrClosed)

// packageFS is an lcm.PackageFS over a stored zip.
type packageFS struct {
	fs.FS
	files  fs.ReadFileFS
	dirs   fs.ReadDirFS
	cancel context.CancelCauseFunc
}

func newPackageFS(zip *csar.Package, cancel context.CancelCauseFunc) *packageFS {
	fsys := zip.FS()
	return &packageFS{fsys, fsys.(fs.ReadFileFS), fsys.(fs.ReadDirFS), cancel}
}

// ReadFile implements fs.ReadFileFS.
func (f *packageFS) ReadFile(name string) ([]byte, error) { return f.files.ReadFile(name) }

// ReadDir implements fs.ReadDirFS.
func (f *packageFS) ReadDir(name string) ([]fs.DirEntry, error) { return f.dirs.ReadDir(name) }

// Close ends all reading.
func (f *packageFS) Close() error {
	f.cancel(errClosed)
	return nil
}

// seeker reads a file of a packageFS at any offset. Zip entries can only be read forwards, so going back begins again;
// nothing is held in memory.
type seeker struct {
	fsys *packageFS
	name string
	size int64
	at   int64   // where the next Read reads
	file fs.File // nil, or open at pos
	pos  int64
}

func openSeeker(fsys *packageFS, name string) (*seeker, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", name), file.Close())
	}
	return &seeker{fsys: fsys, name: name, size: info.Size(), file: file}, nil
}

// Seek implements io.Seeker; it costs nothing until the next Read.
func (s *seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	default:
		return 0, fmt.Errorf("seek in %s: whence %d", s.name, whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek in %s: offset %d", s.name, offset)
	}
	s.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *seeker) Read(p []byte) (int, error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	if s.file != nil && s.pos > s.at {
		_ = s.file.Close()
		s.file = nil
	}
	if s.file == nil {
		file, err := s.fsys.Open(s.name)
		if err != nil {
			return 0, err
		}
		s.file, s.pos = file, 0
	}
	if s.pos < s.at {
		n, err := io.CopyN(io.Discard, s.file, s.at-s.pos)
		s.pos += n
		if err != nil {
			return 0, fmt.Errorf("seek in %s: %w", s.name, err)
		}
	}
	n, err := s.file.Read(p)
	s.pos += int64(n)
	s.at = s.pos
	return n, err
}

// Close implements io.Closer.
func (s *seeker) Close() error {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	return s.fsys.Close()
}
