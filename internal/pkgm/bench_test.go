package pkgm_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
)

// noise is n bytes that do not compress, cheaply made.
func noise(n int64) io.Reader {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return io.LimitReader(cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, 16)), R: zeros{}}, n)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// resident is the process's resident memory in bytes.
func resident(tb testing.TB) int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib << 10
		}
	}
	tb.Fatal("no VmRSS")
	return 0
}

// watchRSS reports by how much resident memory grew at most while f ran.
func watchRSS(b *testing.B, f func()) {
	runtime.GC()
	before := resident(b)
	var peak int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				peak = max(peak, resident(b))
			}
		}
	})
	f()
	close(stop)
	wg.Wait()
	b.ReportMetric(float64(peak-before)/(1<<20), "MB-RSS-growth")
}

// BenchmarkUpload2GB stores a zip of 2 GB and reports by how much the process grew; run it with -benchtime 1x.
func BenchmarkUpload2GB(b *testing.B) {
	const size = 2 << 30
	w := newWorld(b, pkgm.Config{})
	b.SetBytes(size)
	for b.Loop() {
		id := w.create(b)
		watchRSS(b, func() {
			if err := w.Upload(context.Background(), user, id, noise(size)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkRead256MB reads a stored content from end to end.
func BenchmarkRead256MB(b *testing.B) {
	const size = 256 << 20
	w := newWorld(b, pkgm.Config{})
	id := w.create(b)
	if err := w.Upload(context.Background(), user, id, noise(size)); err != nil {
		b.Fatal(err)
	}
	if _, err := w.st.Pool.Exec(context.Background(), `UPDATE vnf_packages SET onboarding_state = 'ONBOARDED' WHERE id = $1`, id); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		watchRSS(b, func() {
			r, _, err := w.Content(context.Background(), user, id)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); err != nil || n != size {
				b.Fatal(n, err)
			}
		})
	}
}

// BenchmarkPackageByVnfd is what every creation of an instance costs here.
func BenchmarkPackageByVnfd(b *testing.B) {
	w := newWorld(b, pkgm.Config{})
	w.onboard(b, vnfd1)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.PackageByVnfd(context.Background(), user, vnfd1, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
