package kubernetes

import (
	"context"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// shared has the steps take their turns with the VIM. One whose turn does not come waits without a worker, and has not begun.
func (d *Driver) shared(steps []lcm.Step) []lcm.Step {
	for n := range steps {
		steps[n].Turn = func(ctx context.Context, x *lcm.Execution) (func(), lcm.Progress) {
			return d.cfg.Crew.Turn(ctx, x, nil)
		}
	}
	return steps
}
