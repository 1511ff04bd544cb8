package csar

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// errDirectoryBudget tells that the central directory is larger than the
// limits allow; it is seen only inside this file.
var errDirectoryBudget = errors.New("central directory too large")

// meteredReaderAt lets zip.NewReader read a bounded number of bytes. The zip
// reader allocates in proportion to what it reads, and it goes on past the
// declared end of the directory, so this is what bounds its memory.
type meteredReaderAt struct {
	r    io.ReaderAt
	left int64
	open bool
}

func (m *meteredReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if !m.open {
		if m.left < int64(len(p)) {
			return 0, errDirectoryBudget
		}
		m.left -= int64(len(p))
	}
	return m.r.ReadAt(p, off)
}

// readDirectory returns the archive's entries after checking the claimed and
// the real extent of the central directory.
func readDirectory(r io.ReaderAt, size int64, l Limits) (*zip.Reader, error) {
	claimed, err := claimedEntries(r, size)
	if err != nil {
		return nil, err
	}
	if claimed > uint64(l.MaxEntries) {
		return nil, tooMany(l)
	}
	m := &meteredReaderAt{r: r, left: l.directoryBudget()}
	zr, err := zip.NewReader(m, size)
	if errors.Is(err, errDirectoryBudget) {
		return nil, refuse("", RuleLimit, "the package's directory is larger than %d bytes", l.directoryBudget())
	}
	if err != nil {
		return nil, invalidZip(err)
	}
	if len(zr.File) > l.MaxEntries {
		return nil, tooMany(l)
	}
	// Contents are metered entry by entry from here on.
	m.open = true
	return zr, nil
}

func tooMany(l Limits) *Error {
	return refuse("", RuleLimit, "the package has more than %d entries", l.MaxEntries)
}

func invalidZip(cause error) *Error {
	return wrap(cause, "", RuleZip, "Invalid zip file")
}

const (
	endLen      = 22
	end64LocLen = 20
	end64Len    = 56
)

// claimedEntries reads the number of entries that the end-of-central-directory
// record (or its zip64 form) declares. The zip reader allocates for that many
// before it has seen one.
func claimedEntries(r io.ReaderAt, size int64) (uint64, error) {
	if size < endLen {
		return 0, invalidZip(nil)
	}
	tail := min(size, endLen+1<<16)
	buf := make([]byte, tail)
	if _, err := r.ReadAt(buf, size-tail); err != nil && !errors.Is(err, io.EOF) {
		return 0, invalidZip(err)
	}
	at := -1
	for search := buf; ; {
		i := bytes.LastIndex(search, []byte("PK\x05\x06"))
		if i < 0 {
			return 0, invalidZip(nil)
		}
		if i+endLen <= len(buf) {
			at = i
			break
		}
		search = search[:i+3]
	}
	end := buf[at:]
	count := uint64(binary.LittleEndian.Uint16(end[10:]))
	zip64 := count == 0xffff || binary.LittleEndian.Uint32(end[12:]) == 0xffffffff ||
		binary.LittleEndian.Uint32(end[16:]) == 0xffffffff
	loc := size - tail + int64(at) - end64LocLen
	if !zip64 || loc < 0 {
		return count, nil
	}
	l64 := make([]byte, end64LocLen)
	if _, err := r.ReadAt(l64, loc); err != nil {
		return 0, invalidZip(err)
	}
	if !bytes.HasPrefix(l64, []byte("PK\x06\x07")) {
		return count, nil
	}
	off := binary.LittleEndian.Uint64(l64[8:])
	if off > uint64(size) || uint64(size)-off < end64Len {
		return 0, invalidZip(nil)
	}
	e64 := make([]byte, end64Len)
	if _, err := r.ReadAt(e64, int64(off)); err != nil {
		return 0, invalidZip(err)
	}
	if !bytes.HasPrefix(e64, []byte("PK\x06\x06")) {
		return 0, invalidZip(nil)
	}
	return binary.LittleEndian.Uint64(e64[32:]), nil
}

// cleanName returns the canonical slash path of an entry's name and whether
// the name denotes a folder, or an error if following it could lead outside
// the package on any system.
func cleanName(name string) (clean string, dir bool, err *Error) {
	bad := func(why string) (string, bool, *Error) {
		return "", false, refuse(printable(name), RulePath, "the package entry %q %s", printable(name), why)
	}
	switch {
	case name == "":
		return bad("has no name")
	case len(name) > 4096:
		return bad("has an overlong name")
	case !utf8.ValidString(name):
		return bad("has a name that is not UTF-8")
	case strings.ContainsRune(name, 0):
		return bad("has a NUL in its name")
	case strings.Contains(name, `\`):
		return bad("has a backslash in its name")
	case strings.HasPrefix(name, "/"):
		return bad("has an absolute name")
	case len(name) >= 2 && name[1] == ':' && isLetter(name[0]):
		return bad("has a drive letter in its name")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return bad(`has ".." in its name`)
		}
	}
	dir = strings.HasSuffix(name, "/")
	clean = path.Clean(name)
	if clean == "." && !dir {
		return bad("has no name")
	}
	return clean, dir, nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// printable makes a hostile name fit for a message.
func printable(name string) string {
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// index turns the directory's entries into a tree, applying the path, mode,
// size and ratio rules. Of entries with one name the last counts, as it does
// when an archive is unpacked from front to back.
func index(zr *zip.Reader, size int64, l Limits) (*tree, error) {
	t := newTree(l)
	var total, packed uint64
	for _, f := range zr.File {
		name, dir, bad := cleanName(f.Name)
		if bad != nil {
			return nil, bad
		}
		switch mode := f.Mode(); {
		case mode.IsDir():
			dir = true
		case mode&fs.ModeSymlink != 0:
			return nil, refuse(name, RuleMode, "the package entry %q is a symbolic link", name)
		case !mode.IsRegular():
			return nil, refuse(name, RuleMode, "the package entry %q is not a regular file", name)
		}
		if f.Flags&1 != 0 {
			return nil, refuse(name, RuleMethod, "the package entry %q is encrypted", name)
		}
		if !dir && f.Method != zip.Store && f.Method != zip.Deflate {
			return nil, refuse(name, RuleMethod, "the package entry %q uses the unknown compression method %d", name, f.Method)
		}
		if f.UncompressedSize64 > uint64(l.MaxEntryBytes) {
			return nil, refuse(name, RuleLimit, "the package entry %q has more than %d bytes", name, l.MaxEntryBytes)
		}
		if f.CompressedSize64 > uint64(size) {
			return nil, invalidZip(nil)
		}
		total += f.UncompressedSize64
		packed += f.CompressedSize64
		if total > uint64(l.MaxTotalBytes) {
			return nil, refuse("", RuleLimit, "the package has more than %d bytes uncompressed", l.MaxTotalBytes)
		}
		if packed > uint64(size) {
			// Entries that share their data are how small archives become huge.
			return nil, refuse("", RuleZip, "Invalid zip file: entries overlap")
		}
		if f.UncompressedSize64 > ratioFloor && f.UncompressedSize64/uint64(l.MaxRatio) > f.CompressedSize64 {
			return nil, refuse(name, RuleLimit, "the package entry %q is compressed by more than %d to 1", name, l.MaxRatio)
		}
		if dir {
			if f.UncompressedSize64 != 0 {
				return nil, refuse(name, RuleMode, "the folder %q of the package has content", name)
			}
			t.addDir(name)
		} else {
			t.addFile(name, f)
		}
		if len(t.dirs) > l.MaxEntries {
			// Deep names imply folders that the directory does not list.
			return nil, refuse("", RuleLimit, "the package has more than %d folders", l.MaxEntries)
		}
	}
	return t, t.seal()
}
