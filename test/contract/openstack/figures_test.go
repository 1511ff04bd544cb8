package openstack_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
)

// instancesEnv overrides how many instances live at once.
const instancesEnv = "VNFM_CONTRACT_INSTANCES"

// heatEnv are the process ids of Heat, its engine first, to count what it costs; engineEnv is the engine's alone.
const heatEnv, engineEnv = "VNFM_OPENSTACK_HEAT_PIDS", "VNFM_OPENSTACK_HEAT_ENGINE_PID"

// node is a small package of the project's own, without a template: one server on a network from outside.
func node(t *testing.T, c *target) vnf {
	t.Helper()
	files := csartest.Files(t, "testdata/packages/node")
	const vnfd, old = "Definitions/node.yaml", "1f2b7c84-9d0e-4a35-bb61-7c0f5e2d9a21"
	id, network := uuid.NewString(), c.networkID(t, net0)
	files[vnfd] = bytes.ReplaceAll(files[vnfd], []byte(old), []byte(id))
	csartest.FixHashes(files)
	return vnf{csartest.Zip(t, files), id, shape{
		flavour: "default", request: doc{"flavourId": "default", "extVirtualLinks": []any{extLink("outside", network, "node_CP")}},
		vnfcs: map[string]int{"node": 1}, cps: map[string][]string{"node": {"node_CP"}},
		external: map[string]string{"outside": network}, externalCPs: map[string][]string{"outside": {"node_CP"}},
		levels: map[string]int{"nodes": 0}, images: map[string]string{"node": cirros},
	}}
}

// TestManyAtOnce instantiates, scales and terminates many instances at once, and prints what that costs and whom.
func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		n := 50
		if c.real() {
			n = 20
		}
		if s := os.Getenv(instancesEnv); s != "" {
			var err error
			n, err = strconv.Atoi(s)
			must(t, err)
		}
		m := newManager(t)
		p := node(t, c)
		m.onboard(t, p.zip)
		vim := m.register(t, c)
		lives := make([]*life, n)
		for k := range lives {
			i, err := m.api.CreateInstance(m.ctx, p.vnfdID)
			must(t, err)
			lives[k] = &life{manager: m, target: c, id: i.Id, vim: vim, shape: p.shape.clone()}
		}
		t.Cleanup(func() {
			if t.Failed() {
				for _, v := range lives {
					v.abandon(t)
				}
			}
		})
		heat := strings.Fields(cmp.Or(os.Getenv(heatEnv), os.Getenv(engineEnv)))
		before, heatBefore, begun := usageOf(t, strconv.Itoa(m.Nodes[0].PID())), usageOf(t, heat...), time.Now()
		for _, phase := range []struct {
			name string
			body doc
		}{
			{"instantiate", nil}, {"scale", doc{"type": "SCALE_OUT", "aspectId": "nodes"}}, {"terminate", doc{"terminationType": "FORCEFUL"}},
		} {
			at := time.Now()
			all(t, lives, func(v *life) error {
				var op string
				var err error
				if phase.body == nil {
					op, err = v.api.Instantiate(v.ctx, v.id, v.vim, v.shape.request)
				} else {
					op, err = v.api.Task(v.ctx, v.id, phase.name, phase.body)
				}
				if err != nil {
					return err
				}
				return v.awaited(op)
			})
			took := time.Since(at)
			t.Logf("%-11s %4d at once: %7.1f s, %6.1f operations a minute", phase.name, n, took.Seconds(), float64(n)/took.Minutes())
			if phase.name == "scale" {
				same(t, "servers", len(c.seen(t).servers), 2*n)
			}
		}
		whole := time.Since(begun)
		after, heatAfter := usageOf(t, strconv.Itoa(m.Nodes[0].PID())), usageOf(t, heat...)
		inHeat, inSteps := m.shares(t)
		t.Logf("all %d operations: %.1f s, %.1f a minute, all COMPLETED", 3*n, whole.Seconds(), float64(3*n)/whole.Minutes())
		t.Logf("our process: %.1f CPU seconds (%.0f ms an operation), %.0f MiB resident, %.0f MiB at most",
			after.cpu-before.cpu, 1000*(after.cpu-before.cpu)/float64(3*n), after.rss, after.most)
		t.Logf("of the operations' time %.1f %% was waiting for stacks", 100*inHeat/inSteps)
		if len(heat) > 0 {
			theirs := heatAfter.cpu - heatBefore.cpu
			t.Logf("Heat's %d processes: %.1f CPU seconds, %.1f times ours", len(heat), theirs, theirs/(after.cpu-before.cpu))
		}
		all(t, lives, func(v *life) error { return v.api.DeleteInstance(v.ctx, v.id) })
		var left []string
		c.eventually(t, "nothing is left", func() bool { left = c.left(t); return len(left) == 0 }, func() any { return left })
	})
}

// all does something with all instances at once.
func all(t *testing.T, lives []*life, f func(v *life) error) {
	t.Helper()
	var wg sync.WaitGroup
	failed := make([]error, len(lives))
	for k, v := range lives {
		wg.Go(func() { failed[k] = f(v) })
	}
	wg.Wait()
	bad := 0
	for k, err := range failed {
		if err != nil {
			if bad++; bad <= 5 {
				t.Errorf("instance %s: %v", lives[k].id, err)
			}
		}
	}
	if bad > 0 {
		t.Fatalf("%d of %d have failed", bad, len(lives))
	}
}

// awaited waits, without asking often, until an operation has completed.
func (v *life) awaited(op string) error {
	pause := 250 * time.Millisecond
	if v.real() {
		pause = 2 * time.Second
	}
	for {
		select {
		case <-v.ctx.Done():
			return context.Cause(v.ctx)
		case <-time.After(pause):
		}
		o, err := v.api.OpOcc(v.ctx, op)
		if err != nil {
			return err
		}
		switch o.OperationState {
		case sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing:
			continue
		case sol003.LcmOperationStateCompleted:
			return nil
		}
		return fmt.Errorf("%s is %s: %+v", o.Operation, o.OperationState, o.Error)
	}
}

// usage is what processes have used together.
type usage struct {
	cpu       float64 // seconds, of their children that have ended too
	rss, most float64 // MiB resident, now and at most
}

// usageOf reads what processes have used.
func usageOf(t *testing.T, pids ...string) usage {
	t.Helper()
	var u usage
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		must(t, err)
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, ticks := range fields[11:15] { // utime, stime and those of children
			n, err := strconv.ParseFloat(ticks, 64)
			must(t, err)
			u.cpu += n / 100
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		must(t, err)
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			sum := map[string]*float64{"VmRSS": &u.rss, "VmHWM": &u.most}[name]
			if sum == nil {
				continue
			}
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			must(t, err)
			*sum += kib / 1024
		}
	}
	return u
}

// shares reads from the journal how many seconds the steps have taken that wait for stacks, and how many all have.
func (m *manager) shares(t *testing.T) (inHeat, inSteps float64) {
	t.Helper()
	conn, err := pgx.Connect(m.ctx, m.DatabaseURL)
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(m.ctx)) }()
	must(t, conn.QueryRow(m.ctx, `
		SELECT coalesce(sum(took) FILTER (WHERE name ~ 'stack-|:scale-'), 0), coalesce(sum(took), 1)
		FROM (SELECT name, extract(epoch FROM done_at - begun_at)::float8 AS took FROM lcm_op_steps WHERE done_at IS NOT NULL) s`,
	).Scan(&inHeat, &inSteps))
	return inHeat, inSteps
}
