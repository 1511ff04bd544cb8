package openstack

import (
	"context"
	"fmt"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// shared has the steps take their turns with the VIM, in the region that the instance is in. One whose turn does not come
// waits without a worker, and has not begun.
func (d *Driver) shared(steps []lcm.Step) []lcm.Step {
	for n := range steps {
		run, uploads := steps[n].Run, steps[n].Name == imagesStep
		steps[n].Turn = func(ctx context.Context, x *lcm.Execution) (func(), lcm.Progress) { return d.turn(ctx, x, uploads) }
		steps[n].Run = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
			target, err := settled(x.Instance, x.Target)
			if err != nil {
				return lcm.Progress{}, err
			}
			x.Target = target
			return run(ctx, x)
		}
	}
	return steps
}

// turn is a step's turn with the VIM: a worker, and with a step that uploads images one of the VIM's uploads.
func (d *Driver) turn(ctx context.Context, x *lcm.Execution, uploads bool) (leave func(), wait lcm.Progress) {
	if !uploads || !uploading(x) {
		return d.cfg.Crew.Turn(ctx, x, nil)
	}
	return d.cfg.Crew.Turn(ctx, x, func() (func(), string) {
		t, err := d.throttleOf(x.Target)
		if err != nil {
			return func() {}, "" // the step itself says what is wrong with the VIM
		}
		done, ok := t.upload()
		if !ok {
			return nil, fmt.Sprintf("VIM %s is given as many images as it may at the same time", nameOf(x.Target))
		}
		return done, ""
	})
}

// settled is the target of an instance that has been made in a region: that one, even if the VIM's first one is another by
// now.
func settled(i *lcm.Instance, t *lcm.VimTarget) (*lcm.VimTarget, error) {
	if t.Region != "" {
		return t, nil
	}
	s, err := loadInfra(i)
	if err != nil || s.Region == "" || s.Region == regionOf(t) {
		return t, err
	}
	in := *t
	in.Region = s.Region
	return &in, nil
}
