package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// The queues: onboarding is heavy and must not keep operations waiting.
const (
	lcmQueue     = river.QueueDefault
	onboardQueue = "onboard"
)

// operationArgs is the trigger of an op occ: it names the fence under which it is to be run and nothing else.
type operationArgs struct {
	OpOcc string `json:"opOcc"`
	Fence int64  `json:"fence"`
}

// Kind implements river.JobArgs.
func (operationArgs) Kind() string { return "lcm_operation" }

// onboardArgs is the trigger of a package's onboarding.
type onboardArgs struct {
	Package string `json:"package"`
	Fence   int64  `json:"fence"`
}

// Kind implements river.JobArgs.
func (onboardArgs) Kind() string { return "onboard_package" }

// maxAttempts is how often a trigger whose run itself failed (the database was away) is tried again; after that the
// sweep makes a new one.
const maxAttempts = 1000

func (s *Store) enqueueOperation(ctx context.Context, tx pgx.Tx, opOccID string, fence int64) error {
	_, err := s.River.InsertTx(ctx, tx, operationArgs{OpOcc: opOccID, Fence: fence}, &river.InsertOpts{Queue: lcmQueue, MaxAttempts: maxAttempts})
	if err != nil {
		return fmt.Errorf("enqueue op occ %s: %w", opOccID, err)
	}
	return nil
}

func (s *Store) enqueueOnboard(ctx context.Context, tx pgx.Tx, packageID string, fence int64) error {
	_, err := s.River.InsertTx(ctx, tx, onboardArgs{Package: packageID, Fence: fence}, &river.InsertOpts{Queue: onboardQueue, MaxAttempts: maxAttempts})
	if err != nil {
		return fmt.Errorf("enqueue the onboarding of VNF package %s: %w", packageID, err)
	}
	return nil
}

// WorkConfig says what a node's workers run and how.
type WorkConfig struct {
	// RunOperation runs an op occ under a fence as a node: lcm.Engine.Run.
	RunOperation func(ctx context.Context, node, opOccID string, fence int64) (again time.Duration, finished bool, err error)
	// Interrupt is told of requests to cancel an op occ: lcm.Engine.Interrupt.
	Interrupt func(opOccID string, mode sol003.CancelModeType)
	// RunOnboarding onboards a package under a fence.
	RunOnboarding func(ctx context.Context, packageID string, fence int64) error
	// Background loops run while this process is a node: they are given its id and must end with their context.
	Background []func(ctx context.Context, node string)

	Operations    int           // op occs worked on at the same time; a waiting one counts for none
	Onboardings   int           // packages onboarded at the same time
	FetchCooldown time.Duration // the shortest time between two looks into the queue
	FetchPoll     time.Duration // how often the queue is looked into without being told: the grain of waits
	Retention     time.Duration // how long finished triggers are kept
	Watch         time.Duration // how often dead nodes and orphaned work are looked for
	StopTimeout   time.Duration // how long running steps are given to hand over; what is cut is taken over by others
}

// workers work on the triggers of the queue.
type workers struct {
	client *river.Client[pgx.Tx]
	cancel context.CancelCauseFunc
}

// jobTimeout is longer than any run of a step may take; a run that has not come back by then is the sweep's.
const jobTimeout = 6 * time.Hour

// startWorkers starts to work on triggers as the node, until stop.
func (s *Store) startWorkers(ctx context.Context, node string, cfg WorkConfig) (*workers, error) {
	kinds := river.NewWorkers()
	river.AddWorker(kinds, &operationWorker{node: node, run: cfg.RunOperation})
	river.AddWorker(kinds, &onboardWorker{run: cfg.RunOnboarding})
	client, err := river.NewClient(riverpgxv5.New(s.Pool), &river.Config{
		ID: node, Workers: kinds, Logger: riverLog(s.Log),
		Queues: map[string]river.QueueConfig{
			lcmQueue:     {MaxWorkers: cfg.Operations},
			onboardQueue: {MaxWorkers: cfg.Onboardings},
		},
		FetchCooldown: cfg.FetchCooldown, FetchPollInterval: cfg.FetchPoll, FetchOnlyKnownKinds: true,
		JobTimeout: jobTimeout, RescueStuckJobsAfter: jobTimeout + time.Hour,
		CompletedJobRetentionPeriod: cfg.Retention, CancelledJobRetentionPeriod: cfg.Retention, DiscardedJobRetentionPeriod: cfg.Retention,
	})
	if err != nil {
		return nil, fmt.Errorf("start the workers: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if err := client.Start(ctx); err != nil {
		cancel(err)
		return nil, fmt.Errorf("start the workers: %w", err)
	}
	return &workers{client: client, cancel: cancel}, nil
}

// stop cancels what runs with lcm.ErrShutdown as the cause, waits until it is handed over, and returns.
func (w *workers) stop(ctx context.Context) error {
	w.cancel(lcm.ErrShutdown)
	if err := w.client.StopAndCancel(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop the workers: %w", err)
	}
	return nil
}

type operationWorker struct {
	river.WorkerDefaults[operationArgs]
	node string
	run  func(ctx context.Context, node, opOccID string, fence int64) (time.Duration, bool, error)
}

// Work implements river.Worker.
func (w *operationWorker) Work(ctx context.Context, job *river.Job[operationArgs]) error {
	again, finished, err := w.run(ctx, w.node, job.Args.OpOcc, job.Args.Fence)
	switch {
	case err != nil:
		return err
	case finished:
		return nil
	default:
		return river.JobSnooze(again)
	}
}

// NextRetry implements river.Worker: the database was away; look again soon.
func (w *operationWorker) NextRetry(job *river.Job[operationArgs]) time.Time {
	return soon(job.Attempt)
}

type onboardWorker struct {
	river.WorkerDefaults[onboardArgs]
	run func(ctx context.Context, packageID string, fence int64) error
}

// Work implements river.Worker.
func (w *onboardWorker) Work(ctx context.Context, job *river.Job[onboardArgs]) error {
	err := w.run(ctx, job.Args.Package, job.Args.Fence)
	if err != nil && errors.Is(context.Cause(ctx), lcm.ErrShutdown) {
		return river.JobSnooze(0)
	}
	return err
}

// NextRetry implements river.Worker.
func (w *onboardWorker) NextRetry(job *river.Job[onboardArgs]) time.Time { return soon(job.Attempt) }

func soon(attempt int) time.Time {
	return time.Now().Add(min(time.Duration(attempt)*200*time.Millisecond, 5*time.Second))
}
