package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/userdata"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// The keys of additionalParams that name a package's user data script.
const (
	scriptKey = "lcm-operation-user-data"
	classKey  = "lcm-operation-user-data-class"
)

// script returns the user data script that a request names.
func script(params map[string]any) (file, class string, err error) {
	file, class = text(params, scriptKey), text(params, classKey)
	if file != "" && class != "" {
		return file, class, nil
	}
	return "", "", lcm.Errorf(lcm.KindTerminal, "LCM user data failed to get %s or %s from additionalParams.", scriptKey, classKey)
}

// parameters is the step that makes the stack's parameters: by the package's user data script, or by the translation of the
// VNFD when the request names none. It changes nothing outside; what it finds is kept in the work.
func (d *Driver) parameters(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	req, err := instantiateRequest(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	var params map[string]any
	var hot *baseHOT
	if translated(req) { // everything is chosen anew, as a script does
		params, hot, err = d.chosen(ctx, x, w, req, granted(x, nil), nil)
	} else {
		params, hot, err = d.scripted(ctx, x, w, req)
	}
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := d.pinImages(ctx, x, w, params); err != nil {
		return lcm.Progress{}, err
	}
	if x.Op.Operation == sol003.LcmOperationTypeChangeFlavour {
		if err := keepZones(x, params, translated(req)); err != nil {
			return lcm.Progress{}, err
		}
	}
	applyGrant(granted(x, nil), params)
	members := membersOf(x.Flavour, req, x.Instance.Info, plan(x).Leaves...)
	w.Capacities = capacities(x.Flavour, members, hot, params, x.Op.Operation != sol003.LcmOperationTypeInstantiate)
	if w.Parameters, err = json.Marshal(params); err != nil {
		return lcm.Progress{}, fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	return lcm.Done(), saveWork(x, w)
}

// scripted lets the package's user data script make the stack's parameters of its Base HOT, the VNFD and the request.
func (d *Driver) scripted(ctx context.Context, x *lcm.Execution, w *work, req *sol003.InstantiateVnfRequest) (map[string]any, *baseHOT, error) {
	file, class, err := script(req.AdditionalParams)
	if err != nil {
		return nil, nil, err
	}
	files, err := x.Files(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	hot, err := loadBaseHOT(files, x.Flavour.ID)
	if err != nil {
		return nil, nil, err
	}
	given := *req // the script has no business with the VIM's credentials
	given.VimConnectionInfo = lcm.RedactConnections(req.VimConnectionInfo)
	made := map[string][]userdata.Image{}
	for _, i := range w.Images {
		made[i.Node] = append(made[i.Node], userdata.Image{ID: i.ID, Name: i.Name, Type: "image"})
	}
	params, err := d.script.Run(ctx, userdata.Request{
		PackageFS: files, Path: file, Class: class, BaseHOT: hot.forScript(), VNFD: x.Flavour.Dict,
		Instantiate: &given, Images: made,
	})
	return params, hot, scriptError(err)
}

// scriptError classes an error of a user data script.
func scriptError(err error) error {
	var own *userdata.Error
	if errors.As(err, &own) {
		return &lcm.Error{Kind: lcm.KindTerminal, Detail: own.Error(), Err: err}
	}
	return err
}

// rescript lets the package's user data script make the stack's parameters anew for an operation that changes a running
// instance, by its method scale or heal, from those that there are; last is the method's last argument. A script without
// the method, and one that returns nothing, leaves them as they are; and so does a package that is translated.
func (d *Driver) rescript(ctx context.Context, x *lcm.Execution, method string, params json.RawMessage, last any) (map[string]any, error) {
	now, err := decodeParameters(params)
	if err != nil || x.Instance.Request == nil || translated(x.Instance.Request) {
		return now, err
	}
	file, class, err := script(x.Instance.Request.AdditionalParams)
	if err != nil {
		return nil, err
	}
	files, err := x.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	hot, err := loadBaseHOT(files, x.Flavour.ID)
	if err != nil {
		return nil, err
	}
	shown := x.Before.Representation()
	made, err := d.script.Run(ctx, userdata.Request{
		PackageFS: files, Path: file, Class: class, Method: method, BaseHOT: hot.forScript(), VNFD: x.Flavour.Dict,
		Operation: x.Op.Params, Instance: shown, Info: shown.InstantiatedVnfInfo, Parameters: now, Last: last,
	})
	switch {
	case errors.Is(err, userdata.ErrNoMethod), err == nil && len(made) == 0:
		return now, nil
	case err != nil:
		return nil, scriptError(err)
	}
	return made, nil
}

// section returns parameters.nfv.<name>, nil when it is not there.
func section(params map[string]any, name string) map[string]any {
	nfv, _ := params["nfv"].(map[string]any)
	s, _ := nfv[name].(map[string]any)
	return s
}

// pinImages replaces image names by ids where Heat could not tell which image a name means. A script takes the name from
// the VNFD (nfv.VDU.<node>.image = sw_image_data.name); names are not unique in Glance, since every instance has images
// of its own. So the name is replaced by the id of the image made for the node; and, for a node whose image the package
// does not bring, by one id if Glance has several of that name: the smallest of those that no instance brought, or, if
// all were brought by instances, the smallest of all. A name that Glance has once, or not at all, stays.
func (d *Driver) pinImages(ctx context.Context, x *lcm.Execution, w *work, params map[string]any) error {
	vdus := section(params, "VDU")
	chosen := map[string]string{}
	for _, i := range x.Flavour.SoftwareImages {
		node, _ := vdus[i.ID].(map[string]any)
		if node == nil || i.Name == "" || node["image"] != i.Name {
			continue
		}
		if made, ok := w.image(i.ID); ok {
			node["image"] = made.ID
			continue
		}
		id, asked := chosen[i.Name]
		if !asked {
			var err error
			if id, err = d.chooseImage(ctx, x, i.Name); err != nil {
				return err
			}
			chosen[i.Name] = id
		}
		if id != "" {
			node["image"] = id
		}
	}
	return nil
}

// chooseImage returns the id of the image that an ambiguous name is to mean, "" when it is not ambiguous.
func (d *Driver) chooseImage(ctx context.Context, x *lcm.Execution, name string) (string, error) {
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return "", err
	}
	all, err := c.imagesNamed(ctx, name)
	if err != nil || len(all) < 2 {
		return "", err
	}
	slices.SortFunc(all, func(a, b image) int { return strings.Compare(a.ID, b.ID) })
	for _, i := range all {
		if i.Instance == "" {
			return i.ID, nil
		}
	}
	return all[0].ID, nil
}

// membersOf returns how many members the group of each scaling aspect has in the layout of an instance that was instantiated by
// req: one for every VNFC of the aspect's first VDU that does not leave. Aspects that share it with another one are left out
// where the package's own templates say how.
func membersOf(f *vnfd.Flavour, req *sol003.InstantiateVnfRequest, info *sol003.InstantiatedVnfInfo, leaves ...string) map[string]int {
	out := map[string]int{}
	if info == nil {
		return out
	}
	for n := range f.Aspects {
		aspect := &f.Aspects[n]
		if len(aspect.VDUs) == 0 {
			continue
		}
		vdu, sharing, count := aspect.VDUs[0].VDU, 0, 0
		for m := range f.Aspects {
			if f.Aspects[m].Scales(vdu) {
				sharing++
			}
		}
		for _, v := range info.VnfcResourceInfo {
			if v.VduId == vdu && !slices.Contains(leaves, v.Id) {
				count++
			}
		}
		if sharing == 1 {
			out[aspect.ID] = count
		}
	}
	if req != nil && translated(req) {
		addShared(out, f, info)
	}
	return out
}

// capacities makes the number of members, by aspect, count for the AutoScalingGroups that the aspects scale. A parameter
// <aspect>_desired_capacity of the top template gets the number (over what the script said); where the template has a
// literal that differs, the number to write there is returned, by group; a function decides for itself, unless always.
func capacities(f *vnfd.Flavour, members map[string]int, hot *baseHOT, params map[string]any, always bool) map[string]int {
	out := map[string]int{}
	for aspect, count := range members {
		if name := aspect + "_" + capacityName; hot.declares(name) {
			params[name] = count
			delete(members, aspect)
		}
	}
	for name, count := range hot.byGroup(f, members) {
		group, _ := hot.group(name)
		if literal, ok := literalCapacity(group); ok && literal != count || !ok && always {
			out[name] = count
		}
	}
	return out
}
