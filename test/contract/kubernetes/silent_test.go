package kubernetes_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// relay stands before an API server, and can fall silent: it takes connections, and nothing comes back.
type relay struct {
	url    string
	mu     sync.Mutex
	silent chan struct{} // closed when it is not
	held   int           // how often something has been kept back
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	target, err := url.Parse(to)
	must(t, err)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	open := make(chan struct{})
	close(open)
	r := &relay{url: "https://" + ln.Addr().String(), silent: open}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(ctx, "tcp", target.Host)
			if err != nil {
				_ = in.Close()
				continue
			}
			end := context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
			wg.Go(func() { r.pass(ctx, out, in); _ = out.Close() })
			wg.Go(func() { r.pass(ctx, in, out); _ = in.Close(); end() })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		wg.Wait()
	})
	return r
}

// pass hands on what comes, when it may.
func (r *relay) pass(ctx context.Context, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		gate := r.silent
		r.mu.Unlock()
		select {
		case <-gate:
		default:
			r.mu.Lock()
			r.held++
			r.mu.Unlock()
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// fallSilent has nothing come through until the function that it returns is called.
func (r *relay) fallSilent() (speak func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (r *relay) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// narrow configures a manager that has few workers, which wait long for an answer, and that may fetch manifests from the loopback.
var narrow = []string{
	"VNFM_ENGINE_MAX_WORKERS=4", "VNFM_KUBERNETES_REQUEST_TIMEOUT=10m",
	"VNFM_KUBERNETES_URI_HOSTS=127.0.0.1", "VNFM_KUBERNETES_URI_ALLOW=127.0.0.0/8",
}

// TestSilentAPIServer: an API server that takes connections and says nothing does not hold all workers. CNFs on another one are made
// and removed; when it speaks again, its own are.
func TestSilentAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait, narrow...)
	r := newRelay(t, w.URL)
	ns := w.Namespace(t, "silent")
	account, err := w.Tenant(t.Context(), ns, "user")
	must(t, err)
	token, err := w.Token(t.Context(), account)
	must(t, err)
	vim := w.registerAs(t, r.url, ns, doc{"bearer_token": token, "ssl_ca_cert": string(w.CA)})
	living, elsewhere := w.tenant(t)
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment")})

	speak := r.fallSilent()
	defer speak()
	// One more than there are workers, but of one name: when they may go on, one gets what it wants.
	var mute []*vnf
	var ops []string
	for range 6 {
		v := w.create(t, id, vim, ns)
		mute = append(mute, v)
		ops = append(ops, v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	}
	must(t, eventually(t, func(context.Context) (bool, error) { return r.holds() > 0, nil }))
	for range 2 {
		v := w.create(t, id, living, elsewhere)
		v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": elsewhere}))
		v.scales("SCALE_OUT", 1, 2, 1)
		v.terminates("FORCEFUL")
	}
	for n, v := range mute {
		o, err := v.api.OpOcc(t.Context(), ops[n])
		must(t, err)
		if s := o.OperationState; s != sol003.LcmOperationStateStarting && s != sol003.LcmOperationStateProcessing {
			t.Errorf("with a VIM that says nothing, the operation is %s: %+v", s, o.Error)
		}
	}
	speak()
	made := 0
	for n, v := range mute {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		o, err := v.api.AwaitOpOcc(ctx, ops[n])
		cancel()
		must(t, err)
		if o.OperationState == sol003.LcmOperationStateCompleted {
			made++
			v.terminates("FORCEFUL")
			continue
		}
		v.fails(ops[n], "is not of this VNF instance")
		v.rollsBack(ops[n])
	}
	if made == 0 {
		t.Error("none has been made")
	}
	if pods := w.podsIn(t, ns); len(pods) > 0 {
		t.Errorf("there are still %v", pods)
	}
}
