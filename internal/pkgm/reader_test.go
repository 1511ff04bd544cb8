package pkgm

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// memory is a Store of one content.
type memory struct {
	Store
	mu     sync.Mutex
	chunks [][]byte
	size   int64
	reads  int
	err    error
}

func (m *memory) AppendContent(_ context.Context, _ string, seq int, chunks [][]byte) error {
	if seq != len(m.chunks) {
		return errors.New("chunks out of order")
	}
	for _, c := range chunks {
		m.chunks = append(m.chunks, bytes.Clone(c))
		m.size += int64(len(c))
	}
	return nil
}

func (m *memory) Content(context.Context, string) (int64, []byte, error) { return m.size, nil, nil }

func (m *memory) ContentChunk(_ context.Context, _ string, seq int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.err != nil {
		return nil, m.err
	}
	return m.chunks[seq], nil
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i>>8)*7 ^ byte(i)
	}
	return b
}

// TestContentIsWhatWasPut: whatever its size and however it is read, a content is the bytes that were put.
func TestContentIsWhatWasPut(t *testing.T) {
	all := pattern(9*ChunkBytes + 17)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, batchChunks * ChunkBytes, batchChunks*ChunkBytes + 1, len(all)}).Draw(t, "size")
		data, m := all[:size], &memory{}
		s := New(Config{}, m, nil)
		d, err := s.put(context.Background(), "c", bytes.NewReader(data))
		if err != nil || d.size != int64(size) {
			t.Fatalf("put %d bytes: %d %v", size, d.size, err)
		}
		for i, c := range m.chunks {
			if i < len(m.chunks)-1 && len(c) != ChunkBytes || len(c) == 0 {
				t.Fatalf("chunk %d has %d bytes", i, len(c))
			}
		}
		r, err := s.reader(context.Background(), "c")
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.NewReader(data)
		for range 20 {
			off := rapid.Int64Range(0, int64(size)+10).Draw(t, "off")
			n := rapid.IntRange(0, 3*ChunkBytes).Draw(t, "n")
			a, b := make([]byte, n), make([]byte, n)
			na, ea := r.ReadAt(a, off)
			nb, eb := want.ReadAt(b, off)
			if n == 0 {
				continue // bytes.Reader says EOF at the end even then; both are allowed
			}
			if na != nb || !errors.Is(ea, eb) || !bytes.Equal(a[:na], b[:nb]) {
				t.Fatalf("ReadAt(%d bytes, %d) of %d: %d %v, want %d %v", n, off, size, na, ea, nb, eb)
			}
		}
	})
}

// TestSeeker: a seeker over a deflated entry reads like a bytes.Reader.
func TestSeeker(t *testing.T) {
	data := pattern(300_000)
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for name, content := range map[string][]byte{"top.yaml": []byte("a: b\n"), "dir/file.bin": data} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		z, err := csar.Open(bytes.NewReader(buf.Bytes()), int64(buf.Len()), csar.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		cancel := func(error) {}
		got, err := openSeeker(newPackageFS(z, cancel), "dir/file.bin")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = got.Close() }()
		want := bytes.NewReader(data)
		for range 10 {
			off := rapid.Int64Range(-int64(len(data))-5, int64(len(data))+5).Draw(t, "off")
			whence := rapid.IntRange(0, 3).Draw(t, "whence")
			a, ea := got.Seek(off, whence)
			b, eb := want.Seek(off, whence)
			if a != b || (ea == nil) != (eb == nil) {
				t.Fatalf("Seek(%d, %d): %d %v, want %d %v", off, whence, a, ea, b, eb)
			}
			n := rapid.IntRange(1, 5000).Draw(t, "n")
			x, y := make([]byte, n), make([]byte, n)
			na, ea := io.ReadFull(got, x)
			nb, eb := io.ReadFull(want, y)
			if na != nb || !errors.Is(ea, eb) || !bytes.Equal(x[:na], y[:nb]) {
				t.Fatalf("read %d: %d %v, want %d %v", n, na, ea, nb, eb)
			}
		}
	})
	z, err := csar.Open(bytes.NewReader(buf.Bytes()), int64(buf.Len()), csar.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	cancel := func(error) {}
	for _, name := range []string{"dir", "none", "../top.yaml"} {
		if _, err := openSeeker(newPackageFS(z, cancel), name); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

// TestOneArtifactCostsFewChunks: reading a file does not read the rest of the content.
func TestOneArtifactCostsFewChunks(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range []struct {
		name string
		data []byte
	}{{"top.yaml", []byte("a: b\n")}, {"image.qcow2", pattern(20 * ChunkBytes)}, {"last.sh", []byte("exit\n")}} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	s := New(Config{}, m, nil)
	if _, err := s.put(context.Background(), "c", &buf); err != nil {
		t.Fatal(err)
	}
	fsys, err := s.open(context.Background(), &lcm.Package{ContentID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"last.sh", "top.yaml", "last.sh"} {
		if _, err := fsys.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if m.reads > 3 {
		t.Errorf("%d of %d chunks were read", m.reads, len(m.chunks))
	}
	m.err = errors.New("the database is away")
	if _, err := s.open(context.Background(), &lcm.Package{ContentID: "c"}); !errors.Is(err, m.err) {
		t.Errorf("a failure of the store came back as %v", err)
	}
}

func TestLRU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "size")
		c := newLRU[int, int](size)
		var used []int // the key used last is last
		use := func(k int) {
			for i, u := range used {
				if u == k {
					used = append(used[:i], used[i+1:]...)
					break
				}
			}
			used = append(used, k)
			if len(used) > size {
				used = used[1:]
			}
		}
		for i := range 30 {
			k := rapid.IntRange(0, 5).Draw(t, "k")
			if rapid.Bool().Draw(t, "put") {
				c.put(k, i)
				use(k)
				continue
			}
			_, ok := c.get(k)
			want := false
			for _, u := range used {
				want = want || u == k
			}
			if ok != want {
				t.Fatalf("key %d there: %v, want %v", k, ok, want)
			}
			if ok {
				use(k)
			}
		}
	})
}
