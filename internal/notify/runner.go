package notify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// downAfter is how many attempts must fail, none succeeding between them, before a subscriber counts as down: then it is
// called once at a time and no more often than every RetryMin, until it answers and everything goes on at once.
const downAfter = 3

// maxWaiting bounds how many instances whose next attempt is not due are known; those beyond wait until some are due.
const maxWaiting = 5000

// runner delivers to one subscription. An instance is in one of three states: its first line is flying, or waiting for
// the next attempt, or it is not known here and stands in the queue. All but results belongs to the goroutine of run.
type runner struct {
	d    *Dispatcher
	id   string
	sub  *lcm.Subscription
	call *outbound.Client
	bad  error // why the subscription cannot be called at all

	kicks   chan struct{}
	done    chan struct{}
	results chan result

	flying  map[string]bool
	waiting map[string]time.Time
	ahead   map[string][]lcm.Delivery // further lines of instances that are flying
	more    bool                      // there may be lines of instances that are not known here

	failures int // attempts that have failed since the last that did not
	started  time.Time
	unusual  bool // an answer of 2xx other than 204 has been logged
}

// result is what became of an attempt.
type result struct {
	delivery lcm.Delivery
	err      error
	after    time.Duration // how long the subscriber asks to be left alone
	status   int
}

func newRunner(d *Dispatcher, id string) *runner {
	return &runner{
		d: d, id: id, kicks: make(chan struct{}, 1), done: make(chan struct{}), results: make(chan result, d.cfg.Concurrency),
		flying: map[string]bool{}, waiting: map[string]time.Time{}, ahead: map[string][]lcm.Delivery{}, more: true,
	}
}

// kick says that there may be something new.
func (r *runner) kick() {
	select {
	case r.kicks <- struct{}{}:
	default:
	}
}

func (r *runner) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// run delivers until ctx ends, the subscription is gone, or there has been nothing to deliver for a while.
func (r *runner) run(ctx context.Context) {
	defer close(r.done)
	var err error
	if r.sub, err = r.d.queue.Subscription(ctx, r.id); err != nil {
		if !lcm.Is(err, lcm.KindNotFound) && ctx.Err() == nil {
			r.d.Log.WarnContext(ctx, "a subscription cannot be served now", "subscription", r.id, "error", err)
		}
		return
	}
	if r.call, r.bad = r.d.caller.client(r.sub); r.call != nil {
		defer r.d.caller.forget(r.call)
	}
	defer r.land(ctx)
	for ctx.Err() == nil {
		if err := r.fill(ctx); err != nil && ctx.Err() == nil {
			r.d.Log.WarnContext(ctx, "notifications to deliver cannot be read", "subscription", r.id, "error", err)
			pause(ctx, databasePause)
			continue
		}
		var idle <-chan time.Time
		if len(r.flying) == 0 && len(r.waiting) == 0 && !r.more {
			idle = time.After(r.d.cfg.Idle)
		}
		select {
		case <-ctx.Done():
		case <-r.kicks:
			r.more = true
		case first := <-r.results:
			r.settle(ctx, r.collect(first))
		case <-r.timer():
		case <-idle:
			return
		}
	}
}

// timer fires when an instance is due, or a subscriber that is down may be called again.
func (r *runner) timer() <-chan time.Time {
	if len(r.flying) >= r.d.cfg.Concurrency || r.down() && len(r.flying) > 0 {
		return nil // whatever is due must wait for one of these
	}
	now := r.d.Clock.Now()
	var next time.Time
	for _, t := range r.waiting {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if free := r.started.Add(r.d.cfg.RetryMin); r.down() && (r.more && len(r.waiting) < maxWaiting || !next.IsZero() && next.Before(free)) {
		next = free
	}
	if next.IsZero() {
		return nil
	}
	return r.d.Clock.After(max(next.Sub(now), 0))
}

func (r *runner) down() bool { return r.failures >= downAfter }

// free tells how many attempts may be begun now.
func (r *runner) free(now time.Time) int {
	if !r.down() {
		return r.d.cfg.Concurrency - len(r.flying)
	}
	if len(r.flying) > 0 || now.Before(r.started.Add(r.d.cfg.RetryMin)) {
		return 0
	}
	return 1
}

// fill begins what may be begun.
func (r *runner) fill(ctx context.Context) error {
	now := r.d.Clock.Now()
	for instance, t := range r.waiting {
		if !t.After(now) {
			delete(r.waiting, instance)
			r.more = true
		}
	}
	limit := 4 * r.d.cfg.Concurrency
	for r.more && r.free(now) > 0 && len(r.waiting) < maxWaiting {
		pass := make([]string, 0, len(r.flying)+len(r.waiting))
		for instance := range r.flying {
			pass = append(pass, instance)
		}
		for instance := range r.waiting {
			pass = append(pass, instance)
		}
		lines, err := r.d.queue.Deliveries(ctx, r.id, pass, limit)
		if err != nil {
			return err
		}
		left := false
		for _, line := range lines {
			_, waits := r.waiting[line.InstanceID]
			switch {
			case waits:
			case r.flying[line.InstanceID]:
				r.ahead[line.InstanceID] = append(r.ahead[line.InstanceID], line)
			case line.NextAt.After(now):
				r.waiting[line.InstanceID] = line.NextAt
			case r.free(now) > 0:
				r.begin(ctx, line)
			default:
				left = true
			}
		}
		r.more = left || len(lines) == limit
	}
	return nil
}

// begin has a line tried, in a goroutine that ends with its call.
func (r *runner) begin(ctx context.Context, line lcm.Delivery) {
	r.flying[line.InstanceID] = true
	r.started = r.d.Clock.Now()
	go func() { r.results <- r.post(ctx, line) }()
}

// collect returns a result with all others that are there.
func (r *runner) collect(first result) []result {
	all := []result{first}
	for {
		select {
		case another := <-r.results:
			all = append(all, another)
		default:
			return all
		}
	}
}

// land waits for what is flying, and records what was delivered.
func (r *runner) land(ctx context.Context) {
	var seqs []int64
	for len(r.flying) > 0 {
		res := <-r.results
		delete(r.flying, res.delivery.InstanceID)
		if res.err == nil {
			seqs = append(seqs, res.delivery.Seq)
		}
	}
	if len(seqs) == 0 {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*databasePause)
	defer cancel()
	if _, err := r.d.queue.Delivered(last, r.id, seqs); err != nil {
		r.d.Log.WarnContext(ctx, "notifications that were delivered will be delivered again", "subscription", r.id, "error", err)
	}
}

// settle records results and has their instances go on.
func (r *runner) settle(ctx context.Context, results []result) {
	now := r.d.Clock.Now()
	var seqs []int64
	var again, over []result
	recovered := false
	for _, res := range results {
		age := now.Sub(res.delivery.At)
		switch {
		case res.err == nil:
			recovered = recovered || r.down()
			r.failures = 0
			seqs = append(seqs, res.delivery.Seq)
			r.d.Observe(Delivered, 1, age)
			r.remark(ctx, res)
		case age > r.d.cfg.MaxAge:
			r.failures++
			seqs = append(seqs, res.delivery.Seq)
			over = append(over, res)
		default:
			if r.failures++; r.failures == downAfter {
				r.d.Log.WarnContext(ctx, "a subscriber does not take notifications", "subscription", r.id, "callback", shown(r.sub), "error", res.err)
			}
			again = append(again, res)
			r.d.Observe(Failed, 1, age)
		}
	}
	r.record(ctx, func() error {
		if len(seqs) == 0 {
			return nil
		}
		n, err := r.d.queue.Delivered(ctx, r.id, seqs)
		if err == nil && n < int64(len(seqs)) {
			clear(r.ahead) // the subscription has been deleted
		}
		return err
	})
	for _, res := range again {
		r.postpone(ctx, now, res)
	}
	r.giveUp(ctx, now, over)
	if recovered {
		r.d.Log.InfoContext(ctx, "a subscriber takes notifications again", "subscription", r.id, "callback", shown(r.sub))
		r.record(ctx, func() error { return r.d.queue.Resume(ctx, r.id) })
		clear(r.waiting)
		r.more = true
	}
	for _, res := range results {
		r.next(ctx, res)
	}
}

// next has the instance of a result go on.
func (r *runner) next(ctx context.Context, res result) {
	instance := res.delivery.InstanceID
	delete(r.flying, instance)
	ahead := r.ahead[instance]
	delete(r.ahead, instance)
	if _, waits := r.waiting[instance]; waits || ctx.Err() != nil {
		return
	}
	if res.err != nil || len(ahead) == 0 || r.free(r.d.Clock.Now()) == 0 {
		r.more = true
		return
	}
	r.begin(ctx, ahead[0])
	r.ahead[instance] = ahead[1:]
}

// postpone records when a line is tried next.
func (r *runner) postpone(ctx context.Context, now time.Time, res result) {
	line := res.delivery
	line.Attempts++
	wait := max(r.d.backoff(line.Attempts), min(res.after, r.d.cfg.RetryMax))
	r.d.Log.InfoContext(ctx, "a notification could not be delivered", "subscription", r.id, "callback", shown(r.sub),
		"notification", line.NotificationID, "instance", line.InstanceID, "attempts", line.Attempts, "again", wait, "error", res.err)
	r.waiting[line.InstanceID] = now.Add(wait)
	r.record(ctx, func() error { return r.d.queue.Postpone(ctx, r.id, line.Seq, line.Attempts, now.Add(wait)) })
}

// giveUp tells of lines that are too old to be tried again; a subscriber that is down loses all lines of that age.
func (r *runner) giveUp(ctx context.Context, now time.Time, over []result) {
	for _, res := range over {
		r.d.Observe(GivenUp, 1, now.Sub(res.delivery.At))
		r.d.Log.ErrorContext(ctx, "a notification is given up", "subscription", r.id, "callback", shown(r.sub),
			"notification", res.delivery.NotificationID, "instance", res.delivery.InstanceID, "happened", res.delivery.At, "error", res.err)
	}
	if len(over) == 0 || !r.down() {
		return
	}
	r.record(ctx, func() error {
		n, err := r.d.queue.DropOld(ctx, r.id, now.Add(-r.d.cfg.MaxAge))
		if n > 0 {
			clear(r.ahead)
			r.d.Observe(GivenUp, int(n), r.d.cfg.MaxAge)
			r.d.Log.ErrorContext(ctx, "notifications to a subscriber that is down are given up", "subscription", r.id, "callback", shown(r.sub), "notifications", n)
		}
		return err
	})
}

// record has the database take something in, however long that takes: until then nothing goes on.
func (r *runner) record(ctx context.Context, f func() error) {
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		r.d.Log.WarnContext(ctx, "what became of notifications cannot be recorded now", "subscription", r.id, "error", err)
		if !pause(ctx, databasePause) {
			return
		}
	}
}

// remark logs, once, an answer that is a success and not the one of the standard.
func (r *runner) remark(ctx context.Context, res result) {
	if res.status == http.StatusNoContent || r.unusual {
		return
	}
	r.unusual = true
	r.d.Log.InfoContext(ctx, "a subscriber does not answer notifications with 204", "subscription", r.id, "callback", shown(r.sub), "status", res.status)
}

// post delivers one notification (SOL003 v2.6.1 §5.4.20.3.1).
func (r *runner) post(ctx context.Context, line lcm.Delivery) result {
	res := result{delivery: line}
	if r.bad != nil {
		res.err = r.bad
		return res
	}
	body, err := message(r.d.cfg.EndpointURL, r.sub, &line)
	if err != nil {
		res.err = err
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, r.d.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.sub.CallbackURI, bytes.NewReader(body))
	if err != nil {
		res.err = fmt.Errorf("the callback is no URI: %w", err)
		return res
	}
	req.Header.Set("Content-Type", "application/json")
	r.d.Probe("notify/deliver/before")
	resp, err := r.call.Do(req)
	if err != nil {
		res.err = err
		return res
	}
	defer func() { _ = resp.Body.Close() }()
	res.status = resp.StatusCode
	if resp.StatusCode/100 != 2 {
		res.err = fmt.Errorf("it answered %d", resp.StatusCode)
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			res.after = time.Duration(min(s, 1<<20)) * time.Second
		}
	}
	// What is left of a short answer is read, so that the connection can be used again.
	if resp.ContentLength >= 0 && resp.ContentLength <= drain {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	r.d.Probe("notify/deliver/after")
	return res
}
