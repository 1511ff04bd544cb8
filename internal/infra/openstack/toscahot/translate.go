package toscahot

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// Input is what a translation goes by. Only Flavour must be there.
type Input struct {
	Flavour *vnfd.Flavour
	// Request is what the instance is instantiated with, as later operations and grants have changed it
	// (lcm.Instance.Request; SOL003 v2.6.1 §5.5.2.4).
	Request *sol003.InstantiateVnfRequest
	// Grant is the operation's: its VDUZones, Flavours and Images are used. A VDU that has a zone keeps it.
	Grant *lcm.Grant
	// Images are the ids of Glance images by the nodes (VDUs and storages) that they were made for. A node without one uses
	// the image that is named like its sw_image_data.
	Images map[string]string
	// Members are the numbers of members of scaling aspects' groups; for aspects that are not named the request's
	// instantiation level decides.
	Members map[string]int
	// Parameters are those of the stack that there is, nil for a new one. What they say about a node's flavor, image and
	// zone stays unless Grant or Images say otherwise; to have one chosen anew, take it out.
	Parameters map[string]any

	// Flavors are the ids of the VIM's compute flavors by name. A VDU of a new stack whose
	// requested_additional_capability_name is among them uses that flavor; the others get flavors of their own.
	Flavors map[string]string
	// Zones are the VIM's availability zones; a zone that is not among them is an error. Empty: not checked.
	Zones []string
	// Cooldown is how long a group ignores further signals of its policies, in whole seconds; 0 leaves it to Heat.
	Cooldown time.Duration
	// Package has the files that boot_data may name, nil when there are none.
	Package fs.FS
}

// Output is a stack as Heat takes it.
type Output struct {
	// Top is the top template, Files are the nested ones by the names that types refer to.
	Top   string
	Files map[string]string
	// Parameters are the top template's.
	Parameters map[string]any
	// Groups are the AutoScalingGroups, in the order of the VNFD's aspects.
	Groups []Group
	// Warnings say what of the VNFD and the request has no counterpart in the templates.
	Warnings []string
}

// Group is the AutoScalingGroup of a scaling aspect.
type Group struct {
	// Aspect is the aspect's id and the group's name.
	Aspect string
	// Members is the number of members that the template asks for; one has PerMember instances of each VDU.
	Members, Min, Max int
	PerMember         map[string]int
}

// templateVersion is Newton's: what is used here is older than any Heat in use.
const templateVersion = "2016-10-14"

// maxStacks bounds the nested templates; every instance of a VDU that does not scale may need one.
const maxStacks = 200

// Translate makes the templates of a flavour (SOL001 v2.6.1 §6.8, §6.10). Errors are terminal or, for what Heat cannot do,
// unsupported; they name the VNFD's file, the node and the property, or the request's attribute.
func Translate(in Input) (*Output, error) {
	if in.Flavour == nil {
		return nil, lcm.Errorf(lcm.KindInternal, "there is no flavour to translate")
	}
	if in.Request == nil {
		in.Request = new(sol003.InstantiateVnfRequest)
	}
	if in.Grant == nil {
		in.Grant = new(lcm.Grant)
	}
	t := &translation{
		Input: in, out: &Output{Files: map[string]string{}},
		networks: map[string]network{}, flavors: map[string]any{}, hostGroups: map[string]string{},
		fixed: map[string]int{}, most: map[string]int{}, exact: map[string]string{},
		had: nodesOf(in.Parameters), nodes: map[string]map[string]any{},
	}
	t.top = newTemplate(nil)
	for _, step := range []func() error{t.scaling, t.reserve, t.links, t.serverGroups, t.computeFlavors, t.groups, t.unscaled, t.finish} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return t.out, nil
}

// translation is one run of Translate.
type translation struct {
	Input
	out *Output
	top *template

	aspects []aspect
	fixed   map[string]int // instances outside groups, by VDU
	most    map[string]int // instances that there can be, by VDU
	// exact are the names of the top template's resources that must be as they are, with what they are of.
	exact map[string]string

	networks   map[string]network // by virtual link
	flavors    map[string]any     // the value of a server's flavor in the top template, by VDU
	hostGroups map[string]string  // server groups' resources, by VDU

	had   map[string]map[string]any // nfv.VDU of the parameters that there were
	nodes map[string]map[string]any // and of those that there will be
}

// nodesOf returns nfv.VDU of a stack's parameters.
func nodesOf(parameters map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	nfv, _ := parameters["nfv"].(map[string]any)
	vdus, _ := nfv["VDU"].(map[string]any)
	for name, v := range vdus {
		if m, ok := v.(map[string]any); ok {
			out[name] = m
		}
	}
	return out
}

// fail makes an error about a node or policy of the VNFD, and what of it.
func (t *translation) fail(kind lcm.Kind, what, format string, args ...any) error {
	return lcm.Errorf(kind, "VNFD %s, flavour %s: %s: %s", t.Flavour.File, t.Flavour.ID, what, fmt.Sprintf(format, args...))
}

func (t *translation) warn(format string, args ...any) {
	t.out.Warnings = append(t.out.Warnings, fmt.Sprintf(format, args...))
}

// nfv is the parameter of the top template.
const nfv = "nfv"

// reserve settles the names of the top template: those that others look for are taken, and generated ones keep clear of all
// nodes. The names follow from the VNFD alone: an update must not rename, which would be to replace.
func (t *translation) reserve() error {
	claim := func(name, of string) error {
		if err := t.checkName(name, of); err != nil {
			return err
		}
		if other, taken := t.exact[name]; taken {
			return t.fail(lcm.KindTerminal, of, "its resource %q would have the name of that of %s", name, other)
		}
		t.exact[name] = of
		t.top.take(name)
		return nil
	}
	if err := claim(nfv, "the parameter nfv"); err != nil {
		return err
	}
	for _, a := range t.aspects {
		for _, suffix := range []string{"", scaleOut, scaleIn} {
			if err := claim(a.ID+suffix, "scaling aspect "+a.ID); err != nil {
				return err
			}
		}
	}
	for _, vl := range t.Flavour.VirtualLinks {
		if err := claim(vl.Name, "virtual link "+vl.Name); err != nil {
			return err
		}
	}
	for _, name := range t.vduNodes() {
		if err := t.checkName(name, "node "+name); err != nil {
			return err
		}
		t.top.avoid(name)
	}
	return nil
}

// vduNodes lists the nodes whose resources stand where their VDU's instances are.
func (t *translation) vduNodes() []string {
	var out []string
	for _, v := range t.Flavour.VDUs {
		out = append(out, v.Name)
	}
	for _, cp := range t.Flavour.CPs {
		out = append(out, cp.Name)
	}
	for _, s := range t.Flavour.Storages {
		out = append(out, s.Name)
	}
	return out
}

// checkName refuses what Heat does not take for a resource's name.
func (t *translation) checkName(name, of string) error {
	if name == "" || len(name) > 200 || strings.Contains(name, "/") {
		return t.fail(lcm.KindTerminal, of, "%q cannot be the name of a Heat resource", name)
	}
	return nil
}

// node returns a node's parameters, which begin as they were.
func (t *translation) node(name string) map[string]any {
	n := t.nodes[name]
	if n == nil {
		n = map[string]any{}
		for _, key := range []string{"flavor", "image", "zone"} {
			if v, _ := t.had[name][key].(string); v != "" {
				n[key] = v
			}
		}
		t.nodes[name] = n
	}
	return n
}

// nodeParam is the value of a node's parameter, seen from a template.
func (t *translation) nodeParam(in *template, node, key string) any {
	return in.outer(node+"_"+key, "string", function("get_param", nfv, "VDU", node, key))
}

// finish writes the top template.
func (t *translation) finish() error {
	vdus := map[string]any{}
	for name, n := range t.nodes {
		vdus[name] = n
	}
	t.top.declare(nfv, "json")
	t.out.Parameters = map[string]any{nfv: map[string]any{"VDU": vdus}}
	text, err := t.top.text(fmt.Sprintf("Flavour %s of %s", t.Flavour.ID, t.Flavour.File))
	if err != nil {
		return err
	}
	t.out.Top = text
	slices.Sort(t.out.Warnings)
	t.out.Warnings = slices.Compact(t.out.Warnings)
	return nil
}

// nest writes a nested template and returns its type's name.
func (t *translation) nest(name string, n *template, description string) (string, error) {
	file := name + ".hot.yaml"
	for taken := true; taken; {
		if _, taken = t.out.Files[file]; taken {
			name += "_"
			file = name + ".hot.yaml"
		}
	}
	if len(t.out.Files) == maxStacks {
		return "", lcm.Errorf(lcm.KindUnsupported, "VNFD %s, flavour %s: it needs more than %d nested stacks",
			t.Flavour.File, t.Flavour.ID, maxStacks)
	}
	text, err := n.text(description)
	if err != nil {
		return "", err
	}
	t.out.Files[file] = text
	return file, nil
}

// sorted returns a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
