package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/toscahot"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// translated tells whether the templates of what a request instantiates are translated from the VNFD: it names no user data
// script. Whether the package has a Base HOT does not count.
func translated(req *sol003.InstantiateVnfRequest) bool {
	return text(req.AdditionalParams, scriptKey) == "" && text(req.AdditionalParams, classKey) == ""
}

// translate makes the templates of a flavour, with what else comes of the translation.
func (d *Driver) translate(ctx context.Context, x *lcm.Execution, in toscahot.Input) (*baseHOT, *toscahot.Output, error) {
	files, err := x.Files(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	in.Package = files
	out, err := toscahot.Translate(in)
	if err != nil {
		return nil, nil, err
	}
	h := &baseHOT{topFile: "of flavour " + in.Flavour.ID + " of " + in.Flavour.File, nested: map[string]hotFile{}}
	top, err := parsedHOT(h.topFile, []byte(out.Top))
	if err != nil {
		return nil, nil, err
	}
	h.top, h.parsed = top.text, top.parsed
	for name, content := range out.Files {
		if h.nested[name], err = parsedHOT(name, []byte(content)); err != nil {
			return nil, nil, err
		}
	}
	return h, out, nil
}

// chosen is a translation in which what the VIM has to be asked for is chosen: had are the stack's parameters that are to
// stay, nil for a new stack.
func (d *Driver) chosen(
	ctx context.Context, x *lcm.Execution, w *work, req *sol003.InstantiateVnfRequest, grant *lcm.Grant, had map[string]any,
) (map[string]any, *baseHOT, error) {
	in := toscahot.Input{Flavour: x.Flavour, Request: req, Grant: grant, Parameters: had, Images: map[string]string{}}
	for _, i := range w.Images {
		in.Images[i.Node] = i.ID
	}
	wanted := map[string]bool{}
	for _, v := range x.Flavour.VDUs {
		if v.FlavorName != "" {
			wanted[v.FlavorName] = true
		}
	}
	if len(wanted) > 0 {
		c, err := d.connect(ctx, x.Target)
		if err != nil {
			return nil, nil, err
		}
		if in.Flavors, err = c.flavorsNamed(ctx, wanted, flavorsPage); err != nil {
			return nil, nil, err
		}
	}
	hot, out, err := d.translate(ctx, x, in)
	if err != nil {
		return nil, nil, err
	}
	warn(x, out)
	return out.Parameters, hot, nil
}

// warn logs what of the VNFD and the request the templates cannot have.
func warn(x *lcm.Execution, out *toscahot.Output) {
	for _, what := range out.Warnings {
		x.Log.Warn("not all of the VNFD and the request is translated", "flavour", x.Flavour.ID, "what", what)
	}
}

// rechosen has nodes' flavors and images chosen anew, by the VNFD that the instance has now.
func (d *Driver) rechosen(
	ctx context.Context, x *lcm.Execution, w *work, params map[string]any, nodes map[string]bool,
) (map[string]any, error) {
	for name := range nodes {
		delete(section(params, "VDU"), name)
	}
	req, err := instantiateRequest(x)
	if err != nil {
		return nil, err
	}
	params, _, err = d.chosen(ctx, x, w, req, granted(x, nodes), params)
	if err != nil {
		return nil, err
	}
	return params, keepZones(x, params, true)
}

// keepZones has VDUs stay in the zones that they have: servers that are not made anew would have to move. Of
// parameters that a script has made only those are given that it says nothing of; of the others all.
func keepZones(x *lcm.Execution, params map[string]any, all bool) error {
	s, err := loadInfra(x.Instance)
	if err != nil {
		return err
	}
	had, err := s.parameters()
	if err != nil {
		return err
	}
	vdus := section(params, "VDU")
	for name, v := range section(had, "VDU") {
		was, _ := v.(map[string]any)
		if text(was, "zone") == "" {
			continue
		}
		node, _ := vdus[name].(map[string]any)
		switch {
		case all && node != nil, node != nil && node["zone"] == nil:
			node["zone"] = was["zone"]
		case all, node != nil: // a translation has no such VDU; a script has chosen
		default:
			if _, ok := x.Flavour.VDU(name); ok { // the zone is all that is said of it
				within(within(params, "nfv"), "VDU")[name] = map[string]any{"zone": was["zone"]}
			}
		}
	}
	return nil
}

// flavorsPage is how many flavors are asked for at a time: what Nova gives at most, by default.
const flavorsPage = 1000

// flavorsNamed returns the ids of the VIM's flavors of these names, by name; those that it does not have are left out. It asks
// for so many at a time.
func (c *cloud) flavorsNamed(ctx context.Context, names map[string]bool, limit int) (map[string]string, error) {
	nova, err := c.nova(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for marker := ""; len(out) < len(names); {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if marker != "" {
			query.Set("marker", marker)
		}
		var page struct {
			Flavors []struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"flavors"`
		}
		_, err := c.exchange(ctx, nova, "list the flavors", http.MethodGet, nil, &page, []int{http.StatusOK}, []string{"flavors?" + query.Encode()})
		if err != nil {
			return nil, err
		}
		for _, f := range page.Flavors {
			if names[f.Name] {
				out[f.Name] = f.ID
			}
		}
		if len(page.Flavors) == 0 || page.Flavors[len(page.Flavors)-1].ID == marker {
			break
		}
		marker = page.Flavors[len(page.Flavors)-1].ID
	}
	return out, nil
}

// addShared adds the groups' sizes of aspects that share their first VDU with another one, which cannot be counted: by the
// scale levels, in the groups of translated templates, where the first of the aspects has the VDU's initial instances.
func addShared(members map[string]int, f *vnfd.Flavour, info *sol003.InstantiatedVnfInfo) {
	if info == nil {
		return
	}
	for n := range f.Aspects {
		a := &f.Aspects[n]
		if _, counted := members[a.ID]; counted || len(a.VDUs) == 0 {
			continue
		}
		name, size := a.VDUs[0].VDU, 0
		if vdu, ok := f.VDU(name); ok && firstOn(f, name) == n {
			if size = 1; vdu.InitialInstances != nil {
				size = *vdu.InitialInstances
			}
		}
		for _, s := range info.ScaleStatus {
			if s.AspectId != a.ID {
				continue
			}
			if added, err := a.Added(name, s.ScaleLevel); err == nil {
				members[a.ID] = size + added
			}
		}
	}
}

// firstOn returns which aspect is the first that scales a VDU.
func firstOn(f *vnfd.Flavour, vdu string) int {
	for n := range f.Aspects {
		if f.Aspects[n].Scales(vdu) {
			return n
		}
	}
	return -1
}
