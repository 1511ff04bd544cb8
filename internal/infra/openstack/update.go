package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/toscahot"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// wish is what a stack is to be.
type wish struct {
	flavour *vnfd.Flavour
	// request is what the instance is instantiated with, nil for what it is now.
	request *sol003.InstantiateVnfRequest
	// params are the stack's parameters. Parameters of the top template that tell a group's size by convention
	// (<group>_desired_capacity) are overwritten.
	params json.RawMessage
	// capacities are the sizes that groups of the top template are to have, by aspect; atLeast those that groups which are
	// smaller are brought to.
	capacities, atLeast map[string]int
	// anew says that the stack is of another flavour than it was: groups that no aspect scales get the size of the template.
	anew bool
	// stays are the VNFCs whose members stay when a group shrinks, as long as there are others; nil: Heat chooses.
	stays []sol003.VnfcResourceInfo
	// tag tells this wish from others of the same instance.
	tag string
	// stamp makes the members' definitions differ from those before by a description: after an update that has failed Heat
	// takes the groups' old definitions for the members' present ones, and would not go back to them.
	stamp string
}

// stackBody makes the request for the instance's stack: the package's templates with the sizes of groups, by name, and the
// parameters.
func (d *Driver) stackBody(x *lcm.Execution, hot *baseHOT, is wish, sizes map[string]int) (*stackRequest, error) {
	top, err := hot.rewritten(sizes, is.stamp)
	if err != nil {
		return nil, err
	}
	tags := mark(x.Instance.ID) + "," + is.tag
	if name := tagOf(x.Instance.Name); name != "" {
		tags += "," + name
	}
	params := is.params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return &stackRequest{
		Name: stackName(x.Instance.ID), Template: string(top), Files: hot.files(), Parameters: params,
		TimeoutMins: max(1, int((d.cfg.StackTimeout+time.Minute-1)/time.Minute)), DisableRollback: true, Tags: tags,
	}, nil
}

// template returns the templates of the stack that is wished: the flavour's Base HOT of the package, or what the flavour is
// translated to with the wished parameters.
func (d *Driver) template(ctx context.Context, x *lcm.Execution, is wish) (*baseHOT, error) {
	req := is.request
	if req == nil {
		var err error
		if req, err = instantiateRequest(x); err != nil {
			return nil, err
		}
	}
	if translated(req) {
		params, err := decodeParameters(is.params)
		if err != nil {
			return nil, err
		}
		hot, _, err := d.translate(ctx, x, toscahot.Input{Flavour: is.flavour, Request: req, Parameters: params})
		return hot, err
	}
	files, err := x.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	return loadBaseHOT(files, is.flavour.ID)
}

// update asks Heat to make a stack what is wished. Every group of the template is written with a size, that of is.capacities
// or the one that it has: Heat would set it to what the package says, and take members away by that.
func (d *Driver) update(ctx context.Context, x *lcm.Execution, c *cloud, found *stack, is wish) error {
	hot, err := d.template(ctx, x, is)
	if err != nil {
		return err
	}
	list, err := c.resources(ctx, found.Name, found.ID)
	if err != nil {
		return err
	}
	if err := c.mend(ctx, list); err != nil {
		return err
	}
	params, err := decodeParameters(is.params)
	if err != nil {
		return err
	}
	sizes := map[string]int{}
	capacities, atLeast := hot.byGroup(is.flavour, is.capacities), hot.byGroup(is.flavour, is.atLeast)
	for _, name := range hot.groups() {
		g := findGroup(found.ID, list, name)
		size, given := capacities[name]
		switch {
		case given:
		case g == nil:
			continue // it is new; the template tells
		case is.anew && !hot.scaled(is.flavour, name):
			p, _ := hot.group(name)
			if n, literal := literalCapacity(p); literal {
				if err := c.makeWay(ctx, g, list, n, is.stays); err != nil {
					return err
				}
			}
			continue
		default:
			size = max(len(g.members), atLeast[name])
		}
		if err := c.makeWay(ctx, g, list, size, is.stays); err != nil {
			return err
		}
		for n := range is.flavour.Aspects {
			if id := is.flavour.Aspects[n].ID; hot.declares(id+"_"+capacityName) && hot.groupOf(&is.flavour.Aspects[n]) == name {
				params[id+"_"+capacityName] = size
			}
		}
		if p, _ := hot.group(name); !hasSize(p, size) {
			sizes[name] = size
		}
	}
	if is.params, err = json.Marshal(params); err != nil {
		return fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	if strings.HasSuffix(found.Status, "_FAILED") {
		is.stamp = is.tag
	}
	body, err := d.stackBody(x, hot, is, sizes)
	if err != nil {
		return err
	}
	if err := c.replaceStack(ctx, found.ID, body); err != nil {
		return err
	}
	x.Log.Info("the stack is updated", "stack", found.ID, "was", found.Status, "sizes", sizes)
	return nil
}

// makeWay marks members of a group that is to shrink to a size, so that Heat takes them away before those that VNFCs are in: what
// has failed goes anyhow, before all. A group that is not there yet, or of which Heat chooses (no VNFC stays), is left alone.
func (c *cloud) makeWay(ctx context.Context, g *group, list []resource, size int, stays []sol003.VnfcResourceInfo) error {
	if g == nil || stays == nil {
		return nil
	}
	spare := len(g.members) - size
	var others []*resource
	for _, m := range g.members {
		in := below(list, m)
		switch {
		case m.failed():
			spare--
		case m.unbegun(), !slices.ContainsFunc(stays, func(v sol003.VnfcResourceInfo) bool { return in[text(v.Metadata, homeKey)] }):
			others = append(others, m)
		}
	}
	for _, m := range others[:min(max(spare, 0), len(others))] {
		if err := c.markUnhealthy(ctx, m, "Rollback"); err != nil {
			return err
		}
	}
	return nil
}

// own reads the stack of the instance that is recorded. Terminal: it is gone.
func (d *Driver) own(ctx context.Context, x *lcm.Execution, c *cloud) (*stack, *infra, error) {
	s, err := loadInfra(x.Instance)
	if err != nil {
		return nil, nil, err
	}
	name := stackName(x.Instance.ID)
	if s.StackID == "" {
		return nil, nil, lcm.Errorf(lcm.KindTerminal, "no stack is recorded for VNF instance %s", x.Instance.ID)
	}
	found, err := c.stack(ctx, name, s.StackID)
	if err != nil {
		return nil, nil, err
	}
	if found == nil || strings.HasPrefix(found.Status, "DELETE_") {
		return nil, nil, lcm.Errorf(lcm.KindTerminal, "stack %s (%s) of VNF instance %s is gone from VIM %s", name, s.StackID, x.Instance.ID, c.name)
	}
	return found, s, nil
}

// updateStep returns a step that has Heat update the stack to what want says, once for the tag. want may say nothing.
func (d *Driver) updateStep(tag func(x *lcm.Execution) string, want func(ctx context.Context, x *lcm.Execution, c *cloud, w *work) (*wish, error)) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		w, c, err := d.begin(ctx, x)
		if err != nil {
			return lcm.Progress{}, err
		}
		found, _, err := d.own(ctx, x, c)
		if err != nil {
			return lcm.Progress{}, err
		}
		w.StackID, w.Action, w.Before = found.ID, actionUpdate, ""
		asked := tagged(found, tag(x))
		switch _, state, _ := strings.Cut(found.Status, "_"); {
		case asked && state != "FAILED":
			x.Log.Info("an update of an earlier try is taken over", "stack", found.ID, "status", found.Status)
			return lcm.Done(), saveWork(x, w)
		case state == "IN_PROGRESS" && x.Op.State == sol003.LcmOperationStateRollingBack:
			if err := c.cancel(ctx, found.Name, found.ID); err != nil {
				return lcm.Progress{}, err
			}
			return lcm.Wait(d.pause(x), "stack %s (%s) is %s, and is cancelled", found.Name, found.ID, found.Status), nil
		case state == "IN_PROGRESS":
			return lcm.Wait(d.pause(x), "stack %s (%s) is %s", found.Name, found.ID, found.Status), nil
		}
		is, err := want(ctx, x, c, w)
		if err != nil {
			return lcm.Progress{}, err
		}
		if is == nil {
			return lcm.Done(), saveWork(x, w)
		}
		is.tag = tag(x)
		if err := d.update(ctx, x, c, found, *is); err != nil {
			return lcm.Progress{}, err
		}
		w.Before = found.state()
		return lcm.Done(), saveWork(x, w)
	}
}

// runFunc is a step's Run.
type runFunc = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error)

// opTag is the tag of a stack that is as the operation asks for; backTag of one that is as it was before.
func opTag(x *lcm.Execution) string   { return mark(x.Op.ID) }
func backTag(x *lcm.Execution) string { return mark(x.Op.ID) + "-back" }

// keep is the last step of an operation that has changed the stack's parameters: they are recorded.
func (d *Driver) keep(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	s.Parameters = w.Parameters
	return lcm.Done(), saveInfra(x.Instance, s)
}

// back returns the steps that make the stack what it was before the operation, for the operations that only update it.
func (d *Driver) back() []lcm.Step {
	return []lcm.Step{
		{Name: "rollback-update", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.updateStep(backTag, d.asBefore)},
		{Name: "rollback-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: "rollback-update", Run: d.stackWait},
		{Name: "rollback-images", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.imagesBack},
		d.backStep(),
	}
}

// backStep is the last step of the rollback of an operation that leaves the instance there.
func (d *Driver) backStep() lcm.Step {
	return lcm.Step{Name: "rollback-inventory", Timeout: d.cfg.StackTimeout, Run: d.inventoryBack}
}

// inventoryBack is the step that makes the instance what it was before the operation, and points its handles to what is there
// now: what had been replaced is not the same again.
func (d *Driver) inventoryBack(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	x.Instance = x.Before.Clone()
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	found, _, err := d.own(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	list, err := c.resources(ctx, found.Name, found.ID)
	if err != nil {
		return lcm.Progress{}, err
	}
	if x.Instance.Info != nil {
		t := newTree(found.ID, list)
		t.fill(x.Instance.Info, x.Target.ID)
		_, err = c.leadLinks(ctx, x.Instance.Info, t, x.Target.ID)
	}
	return lcm.Done(), err
}

// asBefore is the stack as it was before the operation; nothing when the operation had not asked for another yet.
func (d *Driver) asBefore(ctx context.Context, x *lcm.Execution, c *cloud, _ *work) (*wish, error) {
	found, _, err := d.own(ctx, x, c)
	if err != nil {
		return nil, err
	}
	if !tagged(found, opTag(x)) && !tagged(found, backTag(x)) {
		return nil, nil
	}
	was, err := loadInfra(x.Before)
	if err != nil {
		return nil, err
	}
	flavour := x.Flavour
	if x.Before.Info != nil && x.Before.Info.FlavourId != flavour.ID {
		f, ok := x.Package.Descriptor.Flavour(x.Before.Info.FlavourId)
		if !ok {
			return nil, lcm.Errorf(lcm.KindTerminal, "VNF package %s has no flavour '%s' any more", x.Package.ID, x.Before.Info.FlavourId)
		}
		flavour = f
	}
	is := &wish{flavour: flavour, request: x.Before.Request, params: was.Parameters}
	if members := membersOf(flavour, x.Before.Request, x.Before.Info); x.Op.Operation == sol003.LcmOperationTypeChangeFlavour {
		is.capacities, is.anew = members, true
		if x.Before.Info != nil {
			is.stays = x.Before.Info.VnfcResourceInfo
		}
	} else {
		is.atLeast = members
	}
	return is, nil
}

// imagesBack is the step that deletes the images that a failed operation has made.
func (d *Driver) imagesBack(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	was, err := loadInfra(x.Before)
	if err != nil {
		return lcm.Progress{}, err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Done(), c.deleteImagesExcept(ctx, x.Instance.ID, was.Images)
}

// instantiateRequest returns the request that the instance was instantiated with, as it is kept up to date.
func instantiateRequest(x *lcm.Execution) (*sol003.InstantiateVnfRequest, error) {
	switch {
	case x.Instance.Request != nil:
		return x.Instance.Request, nil
	case x.Op.Operation == sol003.LcmOperationTypeInstantiate:
		req := new(sol003.InstantiateVnfRequest)
		return req, x.Params(req)
	}
	return nil, lcm.Errorf(lcm.KindTerminal, "it is not recorded what VNF instance %s was instantiated with", x.Instance.ID)
}
