package openstack

import (
	"context"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// removal returns the steps that remove all that an instance has in the VIM.
func (d *Driver) removal(prefix string) []lcm.Step {
	return []lcm.Step{
		{Name: prefix + "stack-delete", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.stackDelete},
		{Name: prefix + "stack-delete-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: prefix + "stack-delete", Run: d.stackDeleteWait},
		{Name: prefix + "images-delete", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.imagesDelete},
	}
}

// stackDelete is the step that has Heat delete the instance's stack: the one recorded, else one of its name and tag.
func (d *Driver) stackDelete(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	name := stackName(x.Instance.ID)
	var found *stack
	if s.StackID != "" {
		found, err = c.stack(ctx, name, s.StackID)
	} else if found, err = c.findStack(ctx, name); found != nil && !ours(found, x.Instance.ID) {
		x.Log.Warn("a stack of the instance's name is not the instance's and stays", "stack", found.ID, "name", name)
		found = nil
	}
	if err != nil {
		return lcm.Progress{}, err
	}
	w.StackID, w.Before = "", ""
	if found != nil && found.Status != "DELETE_COMPLETE" {
		w.StackID = found.ID
		if found.Status != "DELETE_IN_PROGRESS" {
			w.Before = found.state()
			if err := c.deleteStack(ctx, name, found.ID); err != nil {
				return lcm.Progress{}, err
			}
		}
	}
	return lcm.Done(), saveWork(x, w)
}

// stackDeleteWait is the step that waits until the stack is gone.
func (d *Driver) stackDeleteWait(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil || w.StackID == "" {
		return lcm.Done(), err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	const prefix = "VNF Delete"
	s, err := c.stack(ctx, stackName(x.Instance.ID), w.StackID)
	if err != nil {
		return lcm.Progress{}, err
	}
	if s == nil || s.Status == "DELETE_COMPLETE" {
		return lcm.Done(), nil
	}
	waited := x.Now().Sub(x.Begun)
	// Only a failed delete ends the wait; any other state is one that Heat has not left yet.
	if s.Status == "DELETE_FAILED" && (s.state() != w.Before || waited >= d.cfg.Settle) {
		return lcm.Progress{}, c.stackError(ctx, prefix, s)
	}
	if waited >= d.cfg.StackTimeout {
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "%s action is not completed within %g seconds on stack %s", prefix, d.cfg.StackTimeout.Seconds(), s.ID)
	}
	return lcm.Wait(d.pause(x), "stack %s (%s) is %s", s.Name, s.ID, s.Status), nil
}
