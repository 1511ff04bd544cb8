package lcm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// looked is a world of instances: what is recorded of them, their VIMs, and who verifies them.
type looked struct {
	InfraDriver
	Packages
	mu       sync.Mutex
	at       map[string]string // the instances' VIMs
	tried    map[string]time.Time
	problems map[string]string
	looks    []string // at instances, in their order
	turns    int      // that are taken
	longest  time.Duration
	asked    []Due
	verify   func(ctx context.Context, in *Inspection) error
}

func (l *looked) inspector() *Inspector {
	l.tried, l.problems = map[string]time.Time{}, map[string]string{}
	return &Inspector{Instances: l, Packages: l, VIMs: l, Infra: l, Records: l, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

func (l *looked) Instance(_ context.Context, s Scope, id string) (*Instance, error) {
	if _, ok := l.at[id]; !ok || !s.Admin && s.ProjectID != "mine" {
		return nil, Errorf(KindNotFound, "no instance %s", id)
	}
	return &Instance{ID: id, ProjectID: "mine", VimID: l.at[id], State: sol003.InstantiationStateInstantiated, Info: &sol003.InstantiatedVnfInfo{FlavourId: "f"}}, nil
}

func (l *looked) Onboarded(context.Context, string) (*Package, error) {
	return &Package{Descriptor: &vnfd.Descriptor{Flavours: []vnfd.Flavour{{ID: "f"}}}}, nil
}

func (l *looked) Resolve(_ context.Context, _ Scope, c []sol003.VimConnectionInfo) (*VimTarget, error) {
	return &VimTarget{VIM: VIM{ID: c[0].VimId}}, nil
}

func (l *looked) Driver(string) (InfraDriver, error) { return l, nil }

func (l *looked) Verify(ctx context.Context, in *Inspection) ([]Difference, error) {
	l.mu.Lock()
	l.looks = append(l.looks, in.Instance.ID)
	l.mu.Unlock()
	if l.verify == nil {
		return nil, nil
	}
	return nil, l.verify(ctx, in)
}

func (l *looked) Settled(context.Context, string) error { return nil }

func (l *looked) RecordVerification(_ context.Context, v *Verification) ([]Difference, error) {
	return nil, l.RecordUnverified(context.Background(), v.InstanceID, v.At, "")
}

func (l *looked) RecordUnverified(_ context.Context, id string, at time.Time, reason string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[id], l.problems[id] = at, reason
	return nil
}

func (l *looked) Differing(context.Context) (map[string]int, error) { return nil, nil }

// lookedTurn is a turn that was taken at some time.
type lookedTurn struct {
	*looked
	taken time.Time
}

func (l *looked) VerifyTurn(context.Context) (VerifyTurn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns++
	return lookedTurn{l, time.Now()}, nil
}

func (t lookedTurn) End() {
	t.longest = max(t.longest, time.Since(t.taken))
	t.looked.longest = max(t.looked.longest, t.longest)
}

// due are the instances of a VIM that are due, or of all VIMs, sorted.
func (l *looked) due(d Due, vim string) (out []string) {
	for id, at := range l.at {
		tried, ok := l.tried[id]
		if (vim == "" || at == vim) && (ok && !tried.After(d.Before) || !ok && d.Changed) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (t lookedTurn) VIMs(_ context.Context, d Due) (out []string, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = append(t.asked, d)
	for _, id := range t.due(d, "") {
		if vim := t.at[id]; !slices.Contains(out, vim) {
			out = append(out, vim)
		}
	}
	return out, nil
}

func (t lookedTurn) Due(_ context.Context, d Due, vim, after string, limit int) (out []string, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.due(d, vim) {
		if id > after && len(out) < limit {
			out = append(out, id)
		}
	}
	return out, nil
}

// TestSweepSlowVIM has one VIM not answer: the others' instances are verified as if it were not there, and it is asked about no
// more than those instances that were begun before it failed; the next sweep goes on with the next ones.
func TestSweepSlowVIM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{at: map[string]string{
			"a1": "slow", "a2": "slow", "a3": "slow", "a4": "slow", "a5": "slow", "b1": "good", "b2": "good", "b3": "good", "b4": "good",
		}}
		n := l.inspector()
		n.Timeout = 2 * time.Minute
		goods := map[string]time.Duration{}
		begun := time.Now()
		l.verify = func(ctx context.Context, in *Inspection) error {
			if in.Target.ID == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			l.mu.Lock()
			goods[in.Instance.ID] = time.Since(begun)
			l.mu.Unlock()
			return nil
		}
		p := &patrols{Inspector: n, watch: Watch{Interval: time.Hour, Parallel: 2, PerSecond: 10}, from: map[string]string{}}
		if err := p.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, after := range goods {
			if after > 2*time.Second {
				t.Errorf("%s has waited for %s", id, after)
			}
		}
		if len(goods) != 4 {
			t.Errorf("looks at the VIM that answers: %v", goods)
		}
		if len(l.looks) != 6 || l.problems["a1"] == "" || l.problems["a2"] == "" {
			t.Errorf("looks at %v; problems %v", l.looks, l.problems)
		}
		p.changed = time.Time{}
		if err := p.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := l.looks[6:]; len(again) != 2 || !slices.Contains(again, "a3") || !slices.Contains(again, "a4") {
			t.Errorf("the next sweep looks at %v", again)
		}
	})
}

// TestSweepTurn has a sweep give its turn, and with it a connection, back after a while, and the next one go on where it was.
func TestSweepTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{at: map[string]string{}}
		var all []string
		for k := range 10 {
			id := string(rune('a' + k))
			all, l.at[id] = append(all, id), "v"
		}
		n := l.inspector()
		l.verify = func(context.Context, *Inspection) error {
			time.Sleep(time.Minute)
			return nil
		}
		p := &patrols{Inspector: n, watch: Watch{Interval: time.Second, Parallel: 1, PerSecond: 1000}, from: map[string]string{}}
		for range 2 {
			if err := p.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(l.looks, all) || l.turns != 2 || l.longest > watchTurn+time.Minute {
			t.Errorf("looks at %v in %d turns, the longest of %s", l.looks, l.turns, l.longest)
		}
	})
}

// TestWatchTick asks for what is due no oftener than every 10 seconds, and for what has changed every 5 minutes.
func TestWatchTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for interval, want := range map[time.Duration][2]int{ // turns, and those that look for what has changed
			time.Second: {61, 61}, 15 * time.Minute: {21, 3},
		} {
			l := &looked{}
			n := l.inspector()
			ctx, end := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
			n.Watch(ctx, Watch{Interval: interval, Parallel: 1, PerSecond: 1})
			end()
			changed := 0
			for _, d := range l.asked {
				if d.Changed {
					changed++
				}
			}
			if l.turns != want[0] || changed != want[1] {
				t.Errorf("interval %s: %d turns in 10 minutes, %d for what has changed", interval, l.turns, changed)
			}
		}
	})
}

// TestVerifyShared has many ask for one instance at the same time: there is one look, which outlives the one who has begun it.
func TestVerifyShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{at: map[string]string{"a": "v"}}
		n := l.inspector()
		l.verify = func(ctx context.Context, _ *Inspection) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}
		var got atomic.Int64
		ask := func(ctx context.Context) error {
			v, err := n.Verify(ctx, Scope{ProjectID: "mine"}, "a")
			if err == nil && v.InstanceID == "a" {
				got.Add(1)
			}
			return err
		}
		first, leave := context.WithCancel(t.Context())
		go func() { _ = ask(first) }()
		synctest.Wait()
		for range 9 {
			go func() { _ = ask(t.Context()) }()
		}
		synctest.Wait()
		leave()
		if _, err := n.Verify(t.Context(), Scope{ProjectID: "other"}, "a"); !Is(err, KindNotFound) {
			t.Errorf("another project shares the look: %v", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got.Load() != 9 || len(l.looks) != 1 {
			t.Errorf("%d have a result of %d looks", got.Load(), len(l.looks))
		}
		alone, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if err := ask(alone); !errors.Is(err, context.DeadlineExceeded) || len(n.flights.by) > 0 {
			t.Errorf("who gives up alone: %v, and %d looks are left", err, len(n.flights.by))
		}
		if err := ask(t.Context()); err != nil || len(l.looks) != 3 {
			t.Errorf("after that: %v, %d looks", err, len(l.looks))
		}
	})
}

// TestVerifyParallel has no more looks at a time than may be asked for; the others wait, unless they give up.
func TestVerifyParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looked{at: map[string]string{"a": "v", "b": "v", "c": "v", "d": "v", "e": "v"}}
		n := l.inspector()
		n.Parallel = 2
		var now, most atomic.Int64
		l.verify = func(context.Context, *Inspection) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Minute)
			return nil
		}
		var wait sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			wait.Go(func() {
				if _, err := n.Verify(t.Context(), Scope{Admin: true}, id); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		impatient, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := n.Verify(impatient, Scope{Admin: true}, "e"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		wait.Wait()
		if most.Load() != 2 || len(l.looks) != 4 {
			t.Errorf("%d at a time, %d looks", most.Load(), len(l.looks))
		}
	})
}
