package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
)

// The targets, on two cores with a local PostgreSQL and fsync on.
const (
	targetClients   = 16
	targetCreate    = 4000
	targetShow      = 10000
	targetAccepted  = 1500
	targetWhole     = 800
	targetP50       = 5 * time.Millisecond
	targetP99       = 25 * time.Millisecond
	targetListP99   = 20 * time.Millisecond
	targetRSS       = 60_000_000
	targetStart     = 500 * time.Millisecond
	targetUnchanged = 1.25             // of a p99, which moves by itself on cores that client, server and database share
	targetNoise     = time.Millisecond // as much as it moves by itself
)

const (
	starts        = 5 // of which the median counts
	oneByOneCount = 300
	openRate      = 1000 // requests a second of the open loop
	openClients   = 16
	drainTimeout  = 90 * time.Second
	// slowMargin is how much longer operations wait than what is measured meanwhile: the time to accept and begin them.
	slowMargin = 12 * time.Second
	// profileSeconds is how long a missed target's load is profiled.
	profileSeconds = 4
)

// repeat drives a load once more.
type repeat = func(ctx context.Context) error

// bench is one run of the tool.
type bench struct {
	opts options
	dir  string
	out  io.Writer
	note func(format string, args ...any) // progress, for who waits

	bin     string
	keyFile string
	pg      *privatepg.Server
	server  *server
	subject *subject
	report  Report
}

func (b *bench) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

func (b *bench) gauge() cpuTimes { return cpuNow(b.server.pid(), b.pg.PID()) }

// run measures everything that was asked for, in an order in which nothing disturbs what comes after.
func (b *bench) run(ctx context.Context) (err error) {
	serving := b.opts.wantsAny(serverParts)
	if serving {
		b.note("building the server")
		if b.bin, err = build(ctx, b.dir); err != nil {
			return err
		}
		if b.keyFile, err = writeKeyFile(b.dir); err != nil {
			return err
		}
	}
	b.note("starting PostgreSQL")
	if b.pg, err = privatepg.Start(ctx, privatepg.Options{Dir: b.dir + "/postgres", MaxConnections: 200, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	if err := b.machine(ctx); err != nil {
		return err
	}
	if b.opts.wants("pgbench") {
		if err := b.pgbench(ctx); err != nil {
			return err
		}
	}
	if !serving {
		return nil
	}
	steps := []struct {
		part string
		run  func(context.Context) error
	}{
		{"", b.start},
		{"memory", b.idle},
		{"", b.prepare},
		{"memory", b.filled},
		{"show", b.show},
		{"list", b.list},
		{"create", b.create},
		{"latency", b.oneByOne},
		{"operations", b.operations},
		{"waiting", b.waiting},
		{"notifications", b.notifications},
		{"memory", b.loaded},
	}
	for _, s := range steps {
		if s.part != "" && !b.opts.wants(s.part) {
			continue
		}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	b.report.summary(b.out)
	return b.profiles(ctx)
}

// close ends the children. What goes wrong with that is an error too: a server that does not stop is not done.
func (b *bench) close() error {
	var err error
	if b.server != nil {
		err = b.server.stop()
	}
	if b.pg != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if e := b.pg.Stop(ctx); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (b *bench) machine(ctx context.Context) error {
	m := describeMachine(b.dir)
	bin := b.pg.Binaries()
	m.Postgres = fmt.Sprintf("%d.%d", bin.Major, bin.Minor)
	b.printf("%s, %d cores, %.1f GiB, %s, load before %s\n%s, PostgreSQL %s with fsync on, server's database.max_conns %d\n",
		m.CPU, m.Cores, m.MemoryGiB, m.Kernel, m.LoadBefore, m.Go, m.Postgres, b.opts.maxConns)
	if m.FileSystem == "tmpfs" {
		b.printf("WARNING: %s is in memory, commits cost nothing there: give a folder on a disk with -dir\n", b.dir)
	}
	if b.opts.wants("fsync") {
		b.note("fdatasync")
		l, err := measureFsync(ctx, b.dir, time.Second)
		if err != nil {
			return err
		}
		m.Fsync = &l
		b.printf("fdatasync of 8 KiB on %s: p50 %s, p99 %s, %s /s\n", m.FileSystem, ms(l.P50), ms(l.P99), perSecond(float64(time.Second)/float64(l.Mean)))
	}
	b.report.Machine, b.report.MaxConns = m, b.opts.maxConns
	return nil
}

func (b *bench) pgbench(ctx context.Context) error {
	bin, err := findPgbench(b.pg.Binaries().Dir)
	if err != nil {
		return err
	}
	url, err := b.pg.NewDatabase(ctx, "pgbench")
	if err != nil {
		return err
	}
	p, err := preparePgbench(ctx, bin, url, b.dir, b.pg.PID())
	if err != nil {
		return err
	}
	var rows [][]string
	for _, n := range b.opts.clients {
		b.note("pgbench, %d clients", n)
		c, err := p.run(ctx, n, b.opts.duration)
		if err != nil {
			return err
		}
		b.report.Pgbench = append(b.report.Pgbench, c)
		rows = append(rows, []string{fmt.Sprint(n), perSecond(c.Rate), ms(c.Latency), fmt.Sprintf("%.0f", c.Postgres), percent(c.Others)})
	}
	b.printf("\npgbench: one commit of one row of 0.7 kB with its primary key and two indexes\n")
	table(b.out, []string{"clients", "commits/s", "mean", "PostgreSQL µs/commit", "others"}, rows)
	return nil
}

// ofPgbench relates a rate to the commits of as many clients.
func (b *bench) ofPgbench(clients int, rate float64) float64 {
	for _, c := range b.report.Pgbench {
		if c.Clients == clients {
			return rate / c.Rate
		}
	}
	return 0
}

// start starts the server, first with an empty database, and leaves the last one running.
func (b *bench) start(ctx context.Context) error {
	o := serverOptions{bin: b.bin, databaseURL: b.pg.URL(), keyFile: b.keyFile, maxConns: b.opts.maxConns}
	times := 1
	if b.opts.wants("start") {
		times += starts
	}
	var fresh time.Duration
	var took []time.Duration
	before := cpuNow(0, b.pg.PID())
	for n := range times {
		b.note("starting the server (%d of %d)", n+1, times)
		if b.server != nil {
			if err := b.server.stop(); err != nil {
				return err
			}
			b.server = nil
		}
		s, err := startServer(ctx, o)
		if err != nil {
			return err
		}
		b.server = s
		if n == 0 {
			fresh = s.ready
		} else {
			took = append(took, s.ready)
		}
	}
	if len(took) == 0 {
		return nil
	}
	r := &Start{Fresh: fresh, Again: latencyOf(took)}
	b.report.Start = r
	b.printf("\nexec → ready: %s (median of %d, slowest %s); with an empty database %s\n", ms(r.Again.P50), starts, ms(r.Again.Max), ms(r.Fresh))
	b.verdict(atMost("exec → ready, database there", r.Again.P50, targetStart, again{}).beside(cpuNow(0, b.pg.PID()).per(before, 1).Others))
	return nil
}

func (b *bench) verdict(v Verdict) { b.report.Verdicts = append(b.report.Verdicts, v) }

// pause lets the machine come to rest.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (b *bench) memory(when string) (Memory, error) {
	rss, peak, err := memory(b.server.pid())
	if err != nil {
		return Memory{}, fmt.Errorf("read the server's memory: %w", err)
	}
	m := Memory{When: when, RSS: rss, Peak: peak}
	b.report.Memory = append(b.report.Memory, m)
	b.printf("\nRSS %s: %s (at most %s so far)\n", when, mb(rss), mb(peak))
	return m, nil
}

func (b *bench) memoryVerdict(m Memory) {
	b.verdict(Verdict{Figure: "RSS " + m.When, Measured: mb(m.RSS), Target: "≤ " + mb(targetRSS), Met: m.RSS <= targetRSS, again: again{key: "heap", profile: "heap"}})
}

func (b *bench) idle(ctx context.Context) error {
	b.note("idle")
	before := b.gauge()
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	c := b.gauge().per(before, 1)
	m, err := b.memory("idle")
	if err != nil {
		return err
	}
	b.printf("CPU idle: server %.1f ms/s, PostgreSQL %.1f ms/s\n", c.Server/2000, c.Postgres/2000)
	b.memoryVerdict(m)
	return nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if !b.opts.wantsAny(subjectParts) {
		return nil
	}
	if b.subject, err = prepare(ctx, b.server.addr, b.gauge); err != nil {
		return err
	}
	b.note("making %d VNF instances", b.opts.instances)
	l, err := b.subject.ensure(ctx, b.opts.instances, 0)
	if err == nil {
		b.printf("\n%s VNF instances made by 16 clients in %s\n", perSecond(float64(b.opts.instances)), l.Took.Round(time.Millisecond))
	}
	return err
}

func (b *bench) filled(context.Context) error {
	m, err := b.memory(fmt.Sprintf("with %s VNF instances, just made", perSecond(float64(len(b.subject.all)))))
	if err == nil {
		b.memoryVerdict(m)
	}
	return err
}

func (b *bench) loaded(context.Context) error {
	_, err := b.memory("after everything")
	return err
}

// loads drives an operation with each number of clients and prints the table.
func (b *bench) loads(ctx context.Context, name, title string, do func() operation) ([]Load, error) {
	var all []Load
	var rows [][]string
	for _, n := range b.opts.clients {
		b.note("%s, %d clients", name, n)
		l, err := closedLoop{addr: b.server.addr, clients: n, warm: b.opts.warm(), length: b.opts.duration, gauge: b.gauge}.run(ctx, do())
		if err != nil {
			return nil, fmt.Errorf("%s with %d clients: %w", name, n, err)
		}
		l.OfPgbench = b.ofPgbench(n, l.Rate)
		all = append(all, l)
		rows = append(rows, loadRow(l))
	}
	b.printf("\n%s\n", title)
	table(b.out, loadHeader, rows)
	return all, nil
}

// again describes the repetition of a closed loop.
func (b *bench) again(key string, clients int, do func() operation) again {
	return again{key: key, profile: "profile", load: func(ctx context.Context) error {
		_, err := closedLoop{addr: b.server.addr, clients: clients, length: b.opts.duration, gauge: b.gauge}.run(ctx, do())
		return err
	}}
}

func (b *bench) rateVerdict(name string, loads []Load, target float64, do func() operation) {
	for _, l := range loads {
		if l.Clients == targetClients {
			b.verdict(atLeast(fmt.Sprintf("%s, %d clients", name, l.Clients), l.Rate, target, l.OfPgbench, b.again(name, l.Clients, do)).beside(l.CPU.Others))
		}
	}
}

func (b *bench) show(ctx context.Context) (err error) {
	b.report.Show, err = b.loads(ctx, "show", "show: GET /vnflcm/v1/vnf_instances/{id}", b.subject.show)
	b.rateVerdict("show", b.report.Show, targetShow, b.subject.show)
	return err
}

func (b *bench) list(ctx context.Context) (err error) {
	count := perSecond(float64(len(b.subject.all)))
	b.report.List, err = b.loads(ctx, "list", "list: GET /vnflcm/v1/vnf_instances, a page of 100 of "+count, b.subject.list)
	for _, l := range b.report.List {
		if l.Clients == 1 {
			b.verdict(atMost("list page of 100 of "+count+", 1 client, p99", l.Latency.P99, targetListP99, b.again("list", 1, b.subject.list)).beside(l.CPU.Others))
		}
	}
	return err
}

func (b *bench) create(ctx context.Context) (err error) {
	b.report.Create, err = b.loads(ctx, "create", "create: POST /vnflcm/v1/vnf_instances", b.subject.create)
	b.rateVerdict("create", b.report.Create, targetCreate, b.subject.create)
	return err
}

// oneByOne instantiates one instance after the other.
func (b *bench) oneByOne(ctx context.Context) error {
	b.note("accept → COMPLETED, one at a time")
	o, err := b.singles(ctx, oneByOneCount)
	if err != nil {
		return fmt.Errorf("operations one at a time: %w", err)
	}
	b.report.OneByOne = o
	b.printf("\ninstantiate on the instant VIM, one at a time (%d)\n", o.Server.Count)
	row := func(name string, l Latency) []string {
		return []string{name, ms(l.P50), ms(l.Mean), ms(l.P99), ms(l.Max)}
	}
	table(b.out, []string{"", "p50", "mean", "p99", "max"}, [][]string{
		row("op occ: stateEnteredTime of COMPLETED − startTime", o.Server),
		row("client: POST sent → GET answers COMPLETED", o.Client),
	})
	a := again{
		key: "operations one at a time", profile: "profile",
		prepare: func(ctx context.Context) error {
			_, err := b.subject.ensure(ctx, 0, 10*oneByOneCount)
			return err
		},
		load: func(ctx context.Context) error {
			_, err := b.singles(ctx, oneByOneCount)
			return err
		},
	}
	b.verdict(atMost("accept → COMPLETED, op occ, p50", o.Server.P50, targetP50, a).beside(o.Others))
	b.verdict(atMost("accept → COMPLETED, op occ, p99", o.Server.P99, targetP99, a).beside(o.Others))
	b.verdict(atMost("accept → COMPLETED, as the client sees it, p50", o.Client.P50, targetP50, a).beside(o.Others))
	b.verdict(atMost("accept → COMPLETED, as the client sees it, p99", o.Client.P99, targetP99, a).beside(o.Others))
	return nil
}

// warmUps are the operations that are done first and not counted.
const warmUps = 20

func (b *bench) singles(ctx context.Context, count int) (*OneByOne, error) {
	if _, err := b.subject.ensure(ctx, 0, count+warmUps); err != nil {
		return nil, err
	}
	c := newConn(b.server.addr)
	defer c.close()
	body := b.subject.instantiateBody(0)
	var server, client []time.Duration
	before := b.gauge()
	most := time.Now().Add(3 * b.opts.duration)
	for n, id := range b.subject.take(count + warmUps) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(client) > 0 && time.Now().After(most) {
			break // as slow as this, fewer tell as much
		}
		begin := time.Now()
		opID, err := instantiate(c, id, body)
		if err != nil {
			return nil, err
		}
		var op opOcc
		err = poll(ctx, drainTimeout, 500*time.Microsecond, func() (bool, error) {
			if err := c.get(opOccsPath+"/"+opID, &op); err != nil {
				return false, err
			}
			return op.ended()
		})
		if err != nil {
			return nil, err
		}
		if n >= warmUps {
			client = append(client, time.Since(begin))
			server = append(server, op.StateEnteredTime.Sub(op.StartTime))
		}
	}
	return &OneByOne{Server: latencyOf(server), Client: latencyOf(client), Others: b.gauge().per(before, len(client)).Others}, nil
}

// operations instantiates many instances with many clients and waits until every operation is COMPLETED.
func (b *bench) operations(ctx context.Context) error {
	var rows [][]string
	count := b.opts.operations
	for _, n := range b.opts.clients {
		if n < targetClients {
			continue
		}
		b.note("%d LCM operations, %d clients", count, n)
		o, err := b.wholes(ctx, n, count)
		if err != nil {
			return fmt.Errorf("LCM operations with %d clients: %w", n, err)
		}
		o.Accepted.OfPgbench, o.OfPgbench = b.ofPgbench(n, o.Accepted.Rate), b.ofPgbench(n, o.Whole)
		b.report.Operations = append(b.report.Operations, *o)
		rows = append(rows, append([]string{
			fmt.Sprint(n), perSecond(o.Accepted.Rate), ms(o.Accepted.Latency.P50), ms(o.Accepted.Latency.P99), perSecond(o.Whole), ratio(o.OfPgbench),
			ms(o.Completed.P50), ms(o.Completed.P99),
		}, cpuCells(o.CPU)...))
		a := again{
			key: fmt.Sprintf("whole operations, %d clients", n), profile: "profile",
			prepare: func(ctx context.Context) error {
				_, err := b.subject.ensure(ctx, 0, count)
				return err
			},
			load: func(ctx context.Context) error {
				_, err := b.wholes(ctx, n, count)
				return err
			},
		}
		b.verdict(atLeast(fmt.Sprintf("accepted while completing, %d clients", n), o.Accepted.Rate, targetAccepted, o.Accepted.OfPgbench, a).beside(o.Accepted.CPU.Others))
		b.verdict(atLeast(fmt.Sprintf("whole LCM operations, %d clients", n), o.Whole, targetWhole, o.OfPgbench, a).beside(o.CPU.Others))
	}
	if rows == nil {
		return nil
	}
	b.printf("\ninstantiate on the instant VIM, %s operations each, all of them COMPLETED (CPU is of the whole operation)\n", perSecond(float64(count)))
	table(b.out, append([]string{"clients", "accepted/s", "202 p50", "p99", "whole/s", "× pgbench", "→ COMPLETED p50", "p99"}, loadHeader[6:]...), rows)
	return nil
}

// accept asks for count instances to be instantiated and returns the op occs' ids in the order of acceptance.
func (b *bench) accept(ctx context.Context, clients, count int, body []byte) (Load, []string, error) {
	instances := b.subject.take(count)
	ids := make([][]string, clients)
	feed := make(chan string, count)
	for _, id := range instances {
		feed <- id
	}
	close(feed)
	l, err := closedLoop{addr: b.server.addr, clients: clients, total: count, gauge: b.gauge}.run(ctx, func(c *conn, client int) error {
		instance, ok := <-feed
		if !ok {
			return errExhausted
		}
		id, err := instantiate(c, instance, body)
		ids[client] = append(ids[client], id)
		return err
	})
	all := slices.Concat(ids...)
	slices.Sort(all) // ids are made in the order of time
	return l, all, err
}

func (b *bench) wholes(ctx context.Context, clients, count int) (*Operation, error) {
	if _, err := b.subject.ensure(ctx, 0, count); err != nil {
		return nil, err
	}
	before := b.gauge()
	l, ids, err := b.accept(ctx, clients, count, b.subject.instantiateBody(0))
	if err != nil {
		return nil, err
	}
	ops, err := awaitCompleted(ctx, b.server.addr, ids, drainTimeout)
	if err != nil {
		return nil, err
	}
	after := b.gauge()
	took := make([]time.Duration, len(ops))
	last := before.at
	for n, op := range ops {
		took[n] = op.StateEnteredTime.Sub(op.StartTime)
		if op.StateEnteredTime.After(last) {
			last = op.StateEnteredTime
		}
	}
	return &Operation{
		Clients: clients, Count: count, Accepted: l, Completed: latencyOf(took), CPU: after.per(before, count),
		Whole: float64(count) / last.Sub(before.at).Seconds(),
	}, nil
}

// waiting measures showing an instance before, while and after operations wait for a VIM that takes its time.
func (b *bench) waiting(ctx context.Context) error {
	count := b.opts.waiting
	if count == 0 {
		return nil
	}
	if _, err := b.subject.ensure(ctx, 0, count); err != nil {
		return err
	}
	open := openLoop{addr: b.server.addr, clients: openClients, rate: openRate, length: b.opts.duration, gauge: b.gauge}
	w := &Waiting{Count: count}
	at := func(when string, l *Load, rss *int64) (err error) {
		b.note("show at a fixed rate, %s %d operations wait for their VIM", when, count)
		if *l, err = open.run(ctx, b.subject.show()); err != nil {
			return fmt.Errorf("show %s operations wait: %w", when, err)
		}
		*rss, _, err = memory(b.server.pid())
		return err
	}
	if err := at("before", &w.Before, &w.RSSBefore); err != nil {
		return err
	}
	slow := b.opts.duration + slowMargin
	ids, err := b.keepWaiting(ctx, count, slow)
	if err != nil {
		return err
	}
	if err := at("while", &w.During, &w.RSSDuring); err != nil {
		return err
	}
	end := time.Now()
	ops, err := awaitCompleted(ctx, b.server.addr, ids, slow+drainTimeout)
	if err != nil {
		return fmt.Errorf("operations on the slow VIM: %w", err)
	}
	for _, op := range ops {
		if op.StateEnteredTime.Before(end) {
			return fmt.Errorf("op occ %s was COMPLETED before the measurement ended: it took too long to accept %d operations that wait %s", op.ID, count, slow)
		}
	}
	var rss int64
	if err := at("after", &w.After, &rss); err != nil {
		return err
	}
	without := (w.Before.Latency.P99 + w.After.Latency.P99) / 2
	w.Ratio = float64(w.During.Latency.P99) / float64(without)
	b.report.Waiting = w
	b.printf("\nshow at %s requests/s while %s operations wait for a slow VIM (all COMPLETED afterwards)\n", perSecond(openRate), perSecond(float64(count)))
	row := func(name string, l Load, rss int64) []string {
		return append([]string{name, perSecond(l.Rate), ms(l.Latency.P50), ms(l.Latency.P99), ms(l.Latency.Max), mb(rss)}, cpuCells(l.CPU)...)
	}
	table(b.out, append([]string{"", "requests/s", "p50", "p99", "max", "RSS"}, loadHeader[6:]...), [][]string{
		row("before", w.Before, w.RSSBefore), row("during", w.During, w.RSSDuring), row("after", w.After, rss),
	})
	b.verdict(Verdict{
		Figure: fmt.Sprintf("show p99 with %d operations waiting ÷ without", count), Measured: ratio(w.Ratio),
		Target: "≤ " + ratio(targetUnchanged) + " or + " + ms(targetNoise),
		Met:    w.Ratio <= targetUnchanged || w.During.Latency.P99-without <= targetNoise,
		Others: max(w.Before.CPU.Others, w.During.CPU.Others, w.After.CPU.Others),
		again: again{
			key: "show while operations wait", profile: "profile",
			prepare: func(ctx context.Context) error {
				if _, err := b.subject.ensure(ctx, 0, count); err != nil {
					return err
				}
				_, err := b.keepWaiting(ctx, count, profileSeconds*time.Second+slowMargin)
				return err
			},
			load: func(ctx context.Context) error {
				_, err := open.run(ctx, b.subject.show())
				return err
			},
		},
	})
	return nil
}

// keepWaiting has operations accepted whose VIM takes as long as wait, and returns when all have begun.
func (b *bench) keepWaiting(ctx context.Context, count int, wait time.Duration) ([]string, error) {
	b.note("%d operations whose VIM takes %s", count, wait)
	_, ids, err := b.accept(ctx, targetClients, count, b.subject.instantiateBody(wait))
	if err != nil {
		return nil, err
	}
	return ids, b.awaitProcessing(ctx, ids)
}

// awaitProcessing waits until all operations have begun.
func (b *bench) awaitProcessing(ctx context.Context, ids []string) error {
	c := newConn(b.server.addr)
	defer c.close()
	for _, id := range ids {
		var op opOcc
		err := poll(ctx, drainTimeout, 20*time.Millisecond, func() (bool, error) {
			if err := c.get(opOccsPath+"/"+id, &op); err != nil {
				return false, err
			}
			_, err := op.ended()
			return op.OperationState != sol003.LcmOperationStateStarting, err
		})
		if err != nil {
			return fmt.Errorf("wait for op occ %s to begin: %w", id, err)
		}
	}
	return nil
}

// profiles shows where the time goes under each load that missed its target: of the server, and of PostgreSQL.
func (b *bench) profiles(ctx context.Context) error {
	done := map[string]string{}
	for n := range b.report.Verdicts {
		v := &b.report.Verdicts[n]
		if v.Met || v.again.profile == "" {
			continue
		}
		key := v.again.key
		if text, ok := done[key]; ok {
			v.Profile = text
			continue
		}
		b.note("profiling: %s", key)
		text, err := b.profile(ctx, v.again)
		if err != nil {
			return fmt.Errorf("%s is missed, and why cannot be told: %w", v.Figure, err)
		}
		done[key], v.Profile = text, text
		what := "CPU time of the server under the load of"
		if v.again.load == nil {
			what = "what holds the server's memory"
		}
		b.printf("\n%s: %s\n%s", what, key, text)
	}
	return nil
}

func (b *bench) profile(ctx context.Context, a again) (string, error) {
	if a.prepare != nil {
		if err := a.prepare(ctx); err != nil {
			return "", err
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var seen *activity
	var seenErr error
	var wg sync.WaitGroup
	if a.load != nil {
		wg.Go(func() { seen, seenErr = watchActivity(watching, b.pg.URL()) })
	}
	file := filepath.Join(b.dir, a.profile+".pprof")
	err := b.server.profile(ctx, a.profile, file, profileSeconds, a.load)
	stop()
	wg.Wait()
	if err := errors.Join(err, seenErr); err != nil {
		return "", err
	}
	var out strings.Builder
	if err := printProfile(ctx, &out, file); err != nil {
		return "", err
	}
	if seen != nil {
		seen.print(&out)
	}
	return out.String(), nil
}
