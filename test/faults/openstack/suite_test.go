package openstack

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// lanes is how many lives go on at a time: most of them wait for what is not going to come.
const lanes = "120"

// The waits of the server for faults that last. What is in good order waits as long there: turns see to it that only a few lives
// at a time are, however slow the machine.
const (
	hastyStack   = 30 * time.Second
	hastyRequest = 5 * time.Second
)

// turns are those of lives in which something is done.
var turns = make(chan struct{}, 10)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", lanes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	harness.Main(m)
}

// house is a server with what all lives in it share.
type house struct {
	*harness.Cluster
	told *subscriber
	vnfd packages
}

// open starts a server that waits for a stack, and for an answer, for so long.
func open(t *testing.T, stackTimeout, requestTimeout time.Duration) *house {
	t.Helper()
	h := &house{told: newSubscriber(t)}
	h.Cluster = harness.New(t, harness.Options{Env: []string{
		"VNFM_OPENSTACK_STACK_TIMEOUT=" + stackTimeout.String(), "VNFM_OPENSTACK_REQUEST_TIMEOUT=" + requestTimeout.String(),
		"VNFM_OPENSTACK_POLL_MIN=50ms", "VNFM_OPENSTACK_POLL_MAX=500ms", "VNFM_OPENSTACK_BREAKER_OPEN_FOR=500ms",
		"VNFM_ENGINE_MAX_WORKERS=200", "VNFM_VIM_PROBE_INTERVAL=1h", "VNFM_NOTIFY_ALLOW=127.0.0.0/8",
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := h.API(0).Subscribe(ctx, h.told.URL); err != nil {
		t.Fatal(err)
	}
	h.vnfd = onboarded(ctx, t, h.API(0))
	return h
}

// TestFaults runs every pair of a fault and an operation.
func TestFaults(t *testing.T) {
	begun := time.Now()
	all := pairs(t)
	patient := open(t, 10*time.Minute, 2*time.Minute)
	hasty := open(t, hastyStack, hastyRequest)
	var run atomic.Int64
	t.Run("pairs", func(t *testing.T) {
		for _, p := range all {
			h := patient
			if p.fault.lasts {
				h = hasty
			}
			t.Run(p.fault.name+"/"+p.op.name, func(t *testing.T) {
				t.Parallel()
				run.Add(1)
				for _, w := range p.ways() {
					p.live(t, h, w)
				}
			})
		}
	})
	for _, h := range []*house{patient, hasty} {
		if strings.Contains(h.Logs(), harness.Password) {
			t.Error("the log has the VIM's password")
		}
		left, err := os.ReadDir(h.Temp())
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %v %v", left, err)
		}
	}
	fmt.Printf("fault suite on the simulator: %d faults × %d operations, %d of %d pairs run (%d lives) in %s\n",
		len(faults), len(operations), run.Load(), len(all), lives.Load(), time.Since(begun).Round(time.Second))
}
