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
)

// The keys of additionalParams that name a package's user data script.
const (
	scriptKey = "lcm-operation-user-data"
	classKey  = "lcm-operation-user-data-class"
)

// script returns the user data script that a request names. Without one, a package would have to be translated from
// TOSCA to HOT.
func script(params map[string]any) (file, class string, err error) {
	file, class = text(params, scriptKey), text(params, classKey)
	switch {
	case file != "" && class != "":
		return file, class, nil
	case file == "" && class == "":
		return "", "", lcm.Errorf(lcm.KindTerminal, "additionalParams name no user data script (%s, %s), and translating the VNFD from TOSCA to HOT is not supported yet", scriptKey, classKey)
	}
	return "", "", lcm.Errorf(lcm.KindTerminal, "LCM user data failed to get %s or %s from additionalParams.", scriptKey, classKey)
}

// parameters is the step that lets the package's user data script make the stack's parameters. It changes nothing
// outside; what it finds is kept in the work.
func (d *Driver) parameters(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	var req sol003.InstantiateVnfRequest
	if err := x.Params(&req); err != nil {
		return lcm.Progress{}, err
	}
	file, class, err := script(req.AdditionalParams)
	if err != nil {
		return lcm.Progress{}, err
	}
	files, err := x.Files(ctx)
	if err != nil {
		return lcm.Progress{}, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	hot, err := loadBaseHOT(files, req.FlavourId)
	if err != nil {
		return lcm.Progress{}, err
	}
	given := req // the script has no business with the VIM's credentials
	given.VimConnectionInfo = lcm.RedactConnections(req.VimConnectionInfo)
	made := map[string][]userdata.Image{}
	for _, i := range w.Images {
		made[i.Node] = append(made[i.Node], userdata.Image{ID: i.ID, Name: i.Name, Type: "image"})
	}
	params, err := d.script.Run(ctx, userdata.Request{
		PackageFS: files, Path: file, Class: class, BaseHOT: hot.forScript(), VNFD: x.Flavour.Dict,
		Instantiate: &given, Images: made,
	})
	if err != nil {
		var own *userdata.Error
		if errors.As(err, &own) {
			return lcm.Progress{}, &lcm.Error{Kind: lcm.KindTerminal, Detail: own.Error(), Err: err}
		}
		return lcm.Progress{}, err
	}
	if err := d.pinImages(ctx, x, w, params); err != nil {
		return lcm.Progress{}, err
	}
	applyGrant(x, params)
	if w.Capacities, err = capacities(x, hot, req.InstantiationLevelId, params); err != nil {
		return lcm.Progress{}, err
	}
	if w.Parameters, err = json.Marshal(params); err != nil {
		return lcm.Progress{}, fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	return lcm.Done(), saveWork(x, w)
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

// applyGrant merges what the NFVO has granted into nfv.VDU: zones where none is set, flavours and images.
func applyGrant(x *lcm.Execution, params map[string]any) {
	if x.Grant == nil {
		return
	}
	node := func(name string) map[string]any {
		nfv, ok := params["nfv"].(map[string]any)
		if !ok {
			nfv = map[string]any{}
			params["nfv"] = nfv
		}
		vdus, ok := nfv["VDU"].(map[string]any)
		if !ok {
			vdus = map[string]any{}
			nfv["VDU"] = vdus
		}
		n, ok := vdus[name].(map[string]any)
		if !ok {
			n = map[string]any{}
			vdus[name] = n
		}
		return n
	}
	if x.Instance.Info != nil {
		for _, vnfc := range x.Instance.Info.VnfcResourceInfo {
			zone := x.Grant.Zones[vnfc.Id]
			if zone == "" {
				continue
			}
			if n := node(vnfc.VduId); n["zone"] == nil {
				n["zone"] = zone
			}
		}
	}
	for id, flavour := range x.Grant.Flavours {
		node(id)["flavor"] = flavour
	}
	for id, image := range x.Grant.Images {
		node(id)["image"] = image
	}
}

// capacities makes the instantiation level count for every AutoScalingGroup that is named like a scaling aspect. A
// parameter <aspect>_desired_capacity of the top template gets the number of members (over what the script said); where
// the template has a literal that differs, the number to write there is returned; a function decides for itself.
func capacities(x *lcm.Execution, hot *baseHOT, levelID string, params map[string]any) (map[string]int, error) {
	out := map[string]int{}
	for n := range x.Flavour.Aspects {
		aspect := &x.Flavour.Aspects[n]
		if len(aspect.VDUs) == 0 {
			continue
		}
		count, err := x.Flavour.InstanceCount(aspect.VDUs[0].VDU, levelID)
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "%w", err)
		}
		if name := aspect.ID + "_" + capacityName; hot.declares(name) {
			params[name] = count
			continue
		}
		group, ok := hot.group(aspect.ID)
		if !ok {
			continue
		}
		if literal, ok := literalCapacity(group); ok && literal != count {
			out[aspect.ID] = count
		}
	}
	return out, nil
}
