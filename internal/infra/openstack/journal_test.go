package openstack

import (
	"context"
	"maps"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// journaled is a driver whose steps are run as the engine runs them through failures: what is done is not done again, and a
// retry goes on where the failed step says.
type journaled struct {
	*Driver
	done, skip map[string]bool
	names      []string // all steps, as the last Steps returned them
	failed     string   // the step that failed last
	from       map[string]string

	// fail names a step that fails once; after lets it take effect before.
	fail  string
	after bool
	// crash names a step whose second run is lost together with what the process remembers.
	crash string
	runs  int
}

func newJournaled(d *Driver) *journaled {
	return &journaled{Driver: d, done: map[string]bool{}, skip: map[string]bool{}, from: map[string]string{}}
}

// Steps implements lcm.InfraDriver.
func (j *journaled) Steps(x *lcm.Execution) ([]lcm.Step, error) {
	all, err := j.Driver.Steps(x)
	if err != nil {
		return nil, err
	}
	j.names = nil
	var left []lcm.Step
	for _, s := range all {
		j.names = append(j.names, s.Name)
		j.from[s.Name] = s.Name
		if s.RetryFrom != "" {
			j.from[s.Name] = s.RetryFrom
		}
		if j.skip[s.Name] {
			continue
		}
		run := s.Run
		s.Run = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
			if j.fail == s.Name && !j.after {
				j.fail, j.failed = "", s.Name
				return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "step %s fails, as asked", s.Name)
			}
			if j.crash == s.Name {
				if j.runs++; j.runs == 2 {
					y, op := *x, *x.Op
					op.Work = maps.Clone(x.Op.Work)
					y.Op, y.Instance = &op, x.Instance.Clone()
					_, _ = run(ctx, &y)
					j.signals.sent(x.Op.ID)
					return lcm.Wait(j.cfg.PollMin, "another process"), nil
				}
			}
			p, err := run(ctx, x)
			switch {
			case err != nil:
				j.failed = s.Name
			case j.fail == s.Name && !strings.HasSuffix(p.Note, "is about to be signalled"): // that is not its effect yet
				j.fail, j.failed = "", s.Name
				return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "step %s fails after its effect, as asked", s.Name)
			case p.Finished():
				j.done[s.Name] = true
			}
			return p, err
		}
		left = append(left, s)
	}
	return left, nil
}

// resume has the next run go on where a retry does.
func (j *journaled) resume() {
	undone := false
	for _, name := range j.names {
		undone = undone || name == j.from[j.failed]
		j.skip[name] = j.done[name] && !undone
		if undone {
			delete(j.done, name)
		}
	}
}
