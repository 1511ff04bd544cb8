package kubernetes

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// shared has the steps take their turns with the VIM, and those that run helm with helm. One whose turn does not come waits without
// a worker, and has not begun.
func (d *Driver) shared(steps []lcm.Step) []lcm.Step {
	for n := range steps {
		step := &steps[n]
		run, runsHelm := step.Run, d.cfg.Helm != nil && slices.Contains(helming, bare(step.Name))
		step.Turn = func(ctx context.Context, x *lcm.Execution) (func(), lcm.Progress) {
			if !runsHelm || !charts(x) {
				return d.cfg.Crew.Turn(ctx, x, nil)
			}
			return d.cfg.Crew.Turn(ctx, x, func() (func(), string) {
				leave, ok := d.cfg.Helm.Turn()
				if !ok {
					return nil, "helm is run as often at a time as it may"
				}
				return leave, ""
			})
		}
		if runsHelm {
			step.Run = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
				if charts(x) {
					ctx = helm.InTurn(ctx)
				}
				return run(ctx, x)
			}
		}
	}
	return steps
}

// helming are the steps that run helm when the VNF is made of charts.
var helming = []string{"leftovers", "manifests", "check", "apply", "delete", "pods-look", "pods-delete", "scale"}

// bare is a step's name without what it is done for.
func bare(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "respawn-"), "rollback-")
}

// charts tells whether the VNF is made of charts.
func charts(x *lcm.Execution) bool { return isTrue(requestOf(x).AdditionalParams[helmKey]) }
