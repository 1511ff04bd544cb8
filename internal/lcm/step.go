package lcm

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// Step is one named part of an operation.
//
// Run may be called any number of times for one step: again after each wait, and again on another node when this one
// died at any instruction. So it MUST first look for what an earlier try has made (by stack name, tags, labels, a
// marker on the host) and it MUST NOT do anything that can fail between creating a primary resource and returning.
// What it changes in the Execution's Instance and Op, and what it puts into its work, is committed with its result, and
// only then; after an error or a lost fence it is as if never done.
type Step struct {
	Name string
	// Effect says that Run changes something outside; its intent is then committed before it first runs. A step without
	// effect (a wait, a look, a computation) costs no commit of its own.
	Effect bool
	// Timeout limits how long the step may take altogether, waits included; 0 means no limit.
	Timeout time.Duration
	// RetryFrom names the earlier step, of the same driver, that a retry goes on at when this one has failed: the one that
	// acts, where this one only looks. "" means this one.
	RetryFrom string
	// Idle says that nothing is under way outside while the step waits: a graceful cancellation need not await its end.
	Idle bool
	// Turn, when set, is asked before each Run whether the step's turn has come: leave, called after Run, gives the turn back.
	// A nil leave says no, and for how long to wait. Nothing is recorded of that: a step that only queues has not begun, its
	// time does not run, and a graceful cancellation does not await it; nor does it fail while it queues.
	Turn func(ctx context.Context, x *Execution) (leave func(), wait Progress)
	// own marks the engine's steps, which leave nothing half-done when they fail; last the one that ends the operation.
	own, last bool
	Run       func(ctx context.Context, x *Execution) (Progress, error)
}

// Progress is what a step's Run reports.
type Progress struct {
	wait time.Duration
	done bool
	Note string // what is being waited for, for logs and watchers
}

// Done says that the step is finished.
func Done() Progress { return Progress{done: true} }

// Wait says that the step is to be run again after d, and what it waits for. No worker is held meanwhile; the work put
// into the Execution is committed.
func Wait(d time.Duration, format string, args ...any) Progress {
	return Progress{wait: d, Note: fmt.Sprintf(format, args...)}
}

// Finished tells whether the step is done; if not, After tells how long to wait.
func (p Progress) Finished() bool { return p.done }

// After tells how long to wait before the next run.
func (p Progress) After() time.Duration { return p.wait }

// Execution is what a step sees: the operation, working copies of the op occ and the instance, and the surroundings.
type Execution struct {
	Op       *OpOcc
	Instance *Instance
	Before   *Instance // the instance as it was when the operation began; not to be changed
	Target   *VimTarget
	Package  *Package      // the instance's package, with its Descriptor
	Flavour  *vnfd.Flavour // the flavour that the instance has or is to have
	Grant    *Grant
	Plan     *Plan     // never nil in a driver
	Begun    time.Time // when the running step was begun, on whichever node
	Log      *slog.Logger
	Now      func() time.Time
	NewID    func() string

	files func(ctx context.Context) (PackageFS, error)
}

// PackageFS is the content of an onboarded package: cleaned paths from the package's root.
type PackageFS interface {
	fs.FS
	fs.ReadFileFS
	fs.ReadDirFS
	// Close releases what reading holds; files opened before stay unusable after.
	Close() error
}

// Files opens the package's content. The caller closes it.
func (x *Execution) Files(ctx context.Context) (PackageFS, error) {
	if x.files == nil {
		return nil, Errorf(KindInternal, "the package's content is not at hand in this step")
	}
	return x.files(ctx)
}

// WithFiles returns a copy of the Execution whose Files are opened by open; for tests of drivers.
func (x Execution) WithFiles(open func(ctx context.Context) (PackageFS, error)) *Execution {
	x.files = open
	return &x
}

// Work reads the owner's work into v; it leaves v as it is when there is none yet.
func (x *Execution) Work(owner string, v any) error {
	raw, ok := x.Op.Work[owner]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("read the work of %s in op occ %s: %w", owner, x.Op.ID, err)
	}
	return nil
}

// SetWork replaces the owner's work; it is committed with the step's next result or wait.
func (x *Execution) SetWork(owner string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the work of %s in op occ %s: %w", owner, x.Op.ID, err)
	}
	x.Op.Work = x.Op.Work.with(owner, raw)
	return nil
}

// Params decodes the operation's request into v.
func (x *Execution) Params(v any) error {
	if err := json.Unmarshal(x.Op.Params, v); err != nil {
		return fmt.Errorf("read the parameters of op occ %s: %w", x.Op.ID, err)
	}
	return nil
}
