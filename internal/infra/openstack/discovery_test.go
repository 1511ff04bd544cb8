package openstack

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// discoveries answers Glance's list of versions after a while, and counts.
func discoveries(w *wires, took time.Duration, n *int) {
	w.set(of("glance", func(req *http.Request) (*http.Response, error) {
		w.mu.Lock()
		*n++
		w.mu.Unlock()
		select {
		case <-time.After(took):
			return answered(req, http.StatusOK, `{"versions": [{"id": "v2.16", "status": "CURRENT", "links": []}]}`), nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}))
}

// look finds the image service.
func look(ctx context.Context, d *Driver) error {
	c, err := d.connect(ctx, wired())
	if err != nil {
		return err
	}
	_, err = c.glance(ctx)
	return err
}

// TestOneDiscovery has many look for a service at the same time, and again after the token has been renewed: its versions are
// asked for once.
func TestOneDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWires(), 0
		d := w.driver(Config{})
		defer d.Close()
		discoveries(w, time.Second, &n)
		for range 3 {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if err := look(t.Context(), d); err != nil {
						t.Errorf("%v", err)
					}
				})
			}
			wg.Wait()
			if n != 1 {
				t.Fatalf("asked %d times", n)
			}
			w.revoke()
			allGood(t, all(t.Context(), 1, d, wired())) // which renews the token
		}
		logins(t, w, 4)
	})
}

// TestDiscoveryIsLeft has the one who looks for a service go away: another one does so instead.
func TestDiscoveryIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWires(), 0
		d := w.driver(Config{})
		defer d.Close()
		if _, err := d.connect(t.Context(), wired()); err != nil {
			t.Fatal(err)
		}
		discoveries(w, 20*time.Second, &n)
		gone, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		begun := time.Now()
		go func() { first <- look(gone, d) }()
		synctest.Wait()
		go func() { second <- look(t.Context(), d) }()
		impatient, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		if err := look(impatient, d); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 2*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || time.Since(begun) != 2*time.Second {
			t.Errorf("who went away: after %s: %v", time.Since(begun), err)
		}
		if err := <-second; err != nil || n != 2 {
			t.Errorf("%v; asked %d times", err, n)
		}
	})
}
