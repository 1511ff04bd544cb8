package openstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// instantiation returns the steps of INSTANTIATE.
func (d *Driver) instantiation() []lcm.Step {
	return []lcm.Step{
		{Name: imagesStep, Effect: true, Timeout: d.cfg.UploadTimeout, Run: d.images},
		{Name: "images-active", Timeout: d.cfg.ImageTimeout + slack, RetryFrom: imagesStep, Run: d.imagesActive},
		{Name: "user-data", Timeout: d.cfg.StackTimeout, Run: d.parameters},
		{Name: "stack-create", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.stackCreate},
		{Name: "stack-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: "stack-create", Run: d.stackWait},
		{Name: "inventory", Timeout: d.cfg.StackTimeout, Run: d.inventory},
	}
}

// The actions of a stack.
const (
	actionCreate = "CREATE"
	actionUpdate = "UPDATE"
)

// begin gives a step what it goes on with: the operation's work so far, and the VIM.
func (d *Driver) begin(ctx context.Context, x *lcm.Execution) (*work, *cloud, error) {
	w, err := loadWork(x)
	if err != nil {
		return nil, nil, err
	}
	c, err := d.connect(ctx, x.Target)
	return w, c, err
}

// stackCreate is the step that has Heat create the instance's stack. One that an earlier try has created is taken over;
// one that failed is updated to what we want.
func (d *Driver) stackCreate(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	name := stackName(x.Instance.ID)
	found, err := c.findStack(ctx, name)
	if err != nil {
		return lcm.Progress{}, err
	}
	if found != nil {
		return d.adopt(ctx, x, c, w, found)
	}
	body, err := d.creation(ctx, x, w)
	if err != nil {
		return lcm.Progress{}, err
	}
	id, status, err := c.createStack(ctx, body)
	if status == http.StatusConflict {
		// An earlier request of ours has come through after we had looked, or somebody else's.
		if found, e := c.findStack(ctx, name); e == nil && found != nil {
			return d.adopt(ctx, x, c, w, found)
		}
		return lcm.Progress{}, &lcm.Error{Kind: lcm.KindRetryable, Detail: "VIM " + c.name + ": cannot create stack " + name + ": " + detail(err), Err: err}
	}
	if err != nil {
		return lcm.Progress{}, err
	}
	x.Log.Info("stack created", "stack", id, "name", name)
	w.Action, w.Before = actionCreate, ""
	return d.record(x, w, id)
}

// adopt goes on with a stack of the instance's name that is already there.
func (d *Driver) adopt(ctx context.Context, x *lcm.Execution, c *cloud, w *work, found *stack) (lcm.Progress, error) {
	if !ours(found, x.Instance.ID) {
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "stack %s (%s) exists in VIM %s and is not of this VNF instance: it has no tag %s", found.Name, found.ID, c.name, mark(x.Instance.ID))
	}
	action, state, _ := strings.Cut(found.Status, "_")
	switch {
	case action == "DELETE":
		// One that goes on for ever is asked for once more by each try: Heat begins anew.
		try := "deleted anew by the try of " + x.Begun.UTC().Format(time.RFC3339Nano)
		if state == "FAILED" || w.Before != try {
			if err := c.deleteStack(ctx, found.Name, found.ID); err != nil {
				return lcm.Progress{}, err
			}
			w.Before = try
		}
		return lcm.Wait(d.pause(x), "stack %s (%s) of an earlier try is %s", found.Name, found.ID, found.Status), saveWork(x, w)
	case state == "IN_PROGRESS" && !ofOperation(found, x.Op.ID):
		return lcm.Wait(d.pause(x), "stack %s (%s) of an earlier operation is %s", found.Name, found.ID, found.Status), nil
	case state == "FAILED" || !ofOperation(found, x.Op.ID):
		body, err := d.creation(ctx, x, w)
		if err != nil {
			return lcm.Progress{}, err
		}
		list, err := c.resources(ctx, found.Name, found.ID)
		if err == nil {
			err = c.mend(ctx, list)
		}
		if err != nil {
			return lcm.Progress{}, err
		}
		if err := c.replaceStack(ctx, found.ID, body); err != nil {
			return lcm.Progress{}, err
		}
		x.Log.Info("a stack that failed, or is of an earlier operation, is updated", "stack", found.ID, "name", found.Name, "was", found.Status)
		w.Action, w.Before = actionUpdate, found.state()
	default:
		x.Log.Info("a stack of an earlier try is taken over", "stack", found.ID, "name", found.Name, "status", found.Status)
		w.Action, w.Before = actionCreate, ""
		if action == actionUpdate {
			w.Action = actionUpdate
		}
	}
	return d.record(x, w, found.ID)
}

// record keeps the stack in the instance; nothing here can fail but for a defect.
func (d *Driver) record(x *lcm.Execution, w *work, id string) (lcm.Progress, error) {
	w.StackID = id
	if err := saveInfra(x.Instance, &infra{
		StackID: id, StackName: stackName(x.Instance.ID), Region: regionOf(x.Target), Images: w.Images, Parameters: w.Parameters, VnfdID: x.Instance.VnfdID,
	}); err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Done(), saveWork(x, w)
}

// creation makes the request for the stack that the instantiation asks for.
func (d *Driver) creation(ctx context.Context, x *lcm.Execution, w *work) (*stackRequest, error) {
	is := wish{flavour: x.Flavour, params: w.Parameters, tag: opTag(x)}
	hot, err := d.template(ctx, x, is)
	if err != nil {
		return nil, err
	}
	return d.stackBody(x, hot, is, w.Capacities)
}

// ofOperation tells whether a stack is as the operation has asked for, and not one before it.
func ofOperation(s *stack, opOccID string) bool { return tagged(s, mark(opOccID)) }

// ours tells whether a stack carries the instance's tag.
func ours(s *stack, instanceID string) bool { return tagged(s, mark(instanceID)) }

func tagged(s *stack, tag string) bool {
	return slices.ContainsFunc(s.Tags, func(t string) bool { return strings.TrimSpace(t) == tag })
}

// tagOf makes a tag of an instance's name: Heat separates tags by commas and takes at most 80 characters.
func tagOf(name string) string {
	r := []rune(strings.TrimSpace(strings.ReplaceAll(name, ",", " ")))
	if len(r) > 80 {
		r = r[:80]
	}
	return strings.TrimSpace(string(r))
}

// stackWait is the step that waits until the stack is complete.
func (d *Driver) stackWait(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	name := stackName(x.Instance.ID)
	s, err := c.stack(ctx, name, w.StackID)
	if err != nil {
		return lcm.Progress{}, err
	}
	prefix := waitPrefix(x, w)
	waited := x.Now().Sub(x.Begun)
	switch {
	case s == nil:
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "%s stack %s (%s) is gone from VIM %s", prefix, name, w.StackID, c.name)
	case w.Before != "" && s.state() == w.Before && waited < d.cfg.Settle:
		// Heat has not begun yet.
	case s.Status == "CREATE_COMPLETE" || s.Status == "UPDATE_COMPLETE":
		return lcm.Done(), nil
	case !strings.HasSuffix(s.Status, "_IN_PROGRESS"):
		return lcm.Progress{}, c.stackError(ctx, prefix, s)
	}
	if waited >= d.cfg.StackTimeout {
		c.giveUp(ctx, x, s.Name, s.ID)
		return lcm.Progress{}, c.overdue(prefix, d.cfg.StackTimeout, s)
	}
	return lcm.Wait(d.pause(x), "stack %s (%s) is %s", s.Name, s.ID, s.Status), nil
}

// giveUp ends an action that has been waited for for too long, so that a retry need not wait for it too. That it cannot be
// ended changes nothing.
func (c *cloud) giveUp(ctx context.Context, x *lcm.Execution, name, id string) {
	if err := c.cancel(ctx, name, id); err != nil {
		x.Log.Warn("the action of a stack is not ended", "stack", id, "error", err)
	}
}

// waitPrefix begins what is said of a stack that has failed.
func waitPrefix(x *lcm.Execution, w *work) string {
	switch {
	case w.Action == actionCreate:
		return "VNF Create"
	case x.Op.State == sol003.LcmOperationStateRollingBack:
	case x.Op.Operation == sol003.LcmOperationTypeHeal && !whole(x):
		return "VNF Heal"
	case x.Op.Operation == sol003.LcmOperationTypeChangeExtConn:
		return "VNF ChangeExtConn"
	}
	return "VNF Update"
}

// overdue words that a stack has not come to rest in time.
func (c *cloud) overdue(prefix string, within time.Duration, s *stack) error {
	return lcm.Errorf(lcm.KindTerminal, "%s action is not completed within %g seconds on stack %s (%s, in VIM %s is %s: %s)",
		prefix, within.Seconds(), s.ID, s.Name, c.name, s.Status, cut(s.Reason))
}

// stackError words a stack's failure: Heat's reason, the stack, and the resources that failed.
func (c *cloud) stackError(ctx context.Context, prefix string, s *stack) error {
	why := s.Reason
	if why == "" {
		why = s.Status
	}
	detail := fmt.Sprintf("%s %s (stack %s, %s, in VIM %s is %s)", prefix, cut(why), s.Name, s.ID, c.name, s.Status)
	if failed := c.failures(ctx, s); failed != "" {
		detail += "; failed resources: " + failed
	}
	return &lcm.Error{Kind: lcm.KindTerminal, Detail: detail}
}
