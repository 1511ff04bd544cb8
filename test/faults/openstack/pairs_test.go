package openstack

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// pair is a fault in the middle of an operation, and what is to come of it.
type pair struct {
	fault *fault
	op    *operation
	comes outcome
}

// outcome is what is to come of a pair.
type outcome struct {
	// kind is how the operation ends.
	kind kind
	// says are what its error must say; "|" stands between words that are as good.
	says []string
	// because is why it is not touched.
	because string
}

// kind is how an operation ends under a fault.
type kind int

const (
	unwritten kind = iota
	unhurt         // COMPLETED (ROLLED_BACK, of a rollback): the fault does not arise in it, or passes
	fails          // FAILED_TEMP
	refused        // ROLLED_BACK before anything was begun
)

// pairs returns all pairs. One that nobody has written an outcome for fails the test.
func pairs(t *testing.T) []*pair {
	t.Helper()
	var all []*pair
	for f := range faults {
		known := maps.Clone(faults[f].comes)
		for o := range operations {
			p := &pair{fault: &faults[f], op: &operations[o]}
			if p.comes = known[p.op.name]; p.comes.kind == unwritten {
				t.Fatalf("it is not written down what comes of %s in %s", p.fault.name, p.op.name)
			}
			delete(known, p.op.name)
			all = append(all, p)
		}
		if len(known) > 0 {
			t.Fatalf("of %s outcomes are written for operations that there are not: %v", faults[f].name, slices.Collect(maps.Keys(known)))
		}
	}
	return all
}

// The ways on after a fault.
const (
	goesOn    = "goes on"
	retries   = "retry"
	rollsBack = "rollback"
	asksAgain = "asks again"
)

// ways are the ways on that the pair is to be tried with, each in a life of its own.
func (p *pair) ways() []string {
	switch p.comes.kind {
	case fails:
		return []string{retries, rollsBack}
	case refused:
		return []string{asksAgain}
	}
	return []string{goesOn}
}

// live runs the pair through, and one way on.
func (p *pair) live(t *testing.T, h *house, way string) {
	t.Helper()
	l := born(t, h)
	l.takesTurn()
	defer l.rests()
	defer func() {
		if t.Failed() {
			t.Logf("(%s of instance %s in %s, way: %s)", p.op.name, l.id, l.vim, way)
		}
	}()
	if l.was = usual; p.op.from == nil {
		instantiated(l)
	} else {
		p.op.from(l)
	}
	if l.instance().InstantiationState == "NOT_INSTANTIATED" {
		l.was = shape{gone: true}
	}
	becomes, done := p.op.becomes(l.was), "COMPLETED"
	if p.op.isRollback {
		done = "ROLLED_BACK"
	}
	before := l.shown()
	end := p.fault.strike(l)
	op, ends := p.op.ask(l), l.ends
	if p.fault.lasts {
		ends = l.endsInVain
	}
	switch p.comes.kind {
	case fails:
		o := ends(op, "FAILED_TEMP")
		end()
		p.judge(l, o)
		if d := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(l.shown()))); d != "" && !l.was.gone {
			l.Errorf("the instance that shows what is there has other VNFCs (-before +now):\n%s", d)
		}
		p.goOn(l, op, way, becomes)
	case refused:
		o := ends(op, "ROLLED_BACK")
		end()
		p.judge(l, o)
		l.is(l.was, "refused")
		l.does(p.op.ask(l))
		l.is(becomes, "asked again")
	default:
		l.Logf("%s, %s: unhurt, since %s", p.fault.name, p.op.name, p.comes.because)
		l.ends(op, done)
		end()
		l.is(becomes, "done")
	}
	l.dies()
}

// goOn goes on after a failure that has gone.
func (p *pair) goOn(l *life, op, way string, becomes shape) {
	switch {
	case way == retries:
		l.recover(op, "retry")
		l.does(op)
		if p.op.retried != nil {
			becomes = p.op.retried(l.was)
		}
		l.is(becomes, "retried")
	case p.op.undo:
		l.recover(op, "rollback")
		l.ends(op, "ROLLED_BACK")
		l.is(l.was, "rolled back")
	default:
		l.refuses(op, "rollback")
		l.recover(op, "fail")
		l.ends(op, "FAILED")
	}
}

// forbidden is what no error may show: what only programmers of this program understand, mark-up, and secrets.
var forbidden = []string{
	"context deadline exceeded", "context canceled", "Client.Timeout", "EOF", "invalid character", "net/http",
	"127.0.0.1", "dial tcp", "read tcp",
	"unmarshal", "%!", "<nil>", "goroutine", "<html", "<body", "<h1", "</", "&quot;", "devstack", "gAAAA", "X-Auth-Token",
}

// judge looks at the error of an operation that has failed.
func (p *pair) judge(l *life, o *sol003.VnfLcmOpOcc) {
	l.Helper()
	if o.Error == nil || o.Error.Status != 500 || o.Error.Title == "" {
		l.Errorf("the error is %+v", o.Error)
		return
	}
	said := o.Error.Detail
	l.Logf("%s, %s: %s", p.fault.name, p.op.name, said)
	for _, want := range append([]string{l.id, " at step ", l.vim}, p.comes.says...) {
		want = strings.ReplaceAll(want, "{id}", l.id)
		if !slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool { return strings.Contains(said, one) }) {
			l.Errorf("the error does not say %q: %s", want, said)
		}
	}
	for _, bad := range forbidden {
		if strings.Contains(said, bad) {
			l.Errorf("the error says %q: %s", bad, said)
		}
	}
}
