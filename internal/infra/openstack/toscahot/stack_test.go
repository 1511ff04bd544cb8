package toscahot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// reporter is a test, or a check of a property.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// cloud is a simulated OpenStack.
type cloud struct {
	reporter
	srv            *vimsim.Server
	token, project string
}

func boot(t *testing.T) *cloud {
	t.Helper()
	srv, err := vimsim.Serve(t.Context(), "127.0.0.1:0", vimsim.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	c := &cloud{reporter: t, srv: srv}
	var body struct {
		Token struct{ Project struct{ ID string } }
	}
	res := c.call("POST", "/identity/v3/auth/tokens", json.RawMessage(`{"auth": {"identity": {"methods": ["password"], "password":
		{"user": {"name": "nfv_user", "domain": {"name": "Default"}, "password": "devstack"}}}, "scope": {"project": {"name": "nfv", "domain": {"id": "default"}}}}}`), &body)
	c.token, c.project = res.Header.Get("X-Subject-Token"), body.Token.Project.ID
	return c
}

// call calls the cloud; anything but success ends the test.
func (c *cloud) call(method, path string, in, out any) *http.Response {
	c.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		c.Fatalf("%v", err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.srv.URL+path, bytes.NewReader(raw))
	if err != nil {
		c.Fatalf("%v", err)
	}
	req.Header.Set("X-Auth-Token", c.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		c.Fatalf("%s %s: %v", method, path, err)
	}
	if res.StatusCode >= 300 {
		c.Fatalf("%s %s: %s %s", method, path, res.Status, answer.String())
	}
	if out != nil {
		if err := json.Unmarshal(answer.Bytes(), out); err != nil {
			c.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return res
}

func (c *cloud) heat(method, path string, in, out any) {
	c.Helper()
	c.call(method, "/orchestration/v1/"+c.project+path, in, out)
}

// stack is a stack in a cloud.
type stack struct {
	*cloud
	path string
}

// create makes a stack of an output and waits for it.
func (c *cloud) create(out *Output) *stack {
	c.Helper()
	var made struct{ Stack struct{ ID string } }
	c.heat("POST", "/stacks", map[string]any{
		"stack_name": "s", "template": out.Top, "files": out.Files, "parameters": out.Parameters, "timeout_mins": 10, "disable_rollback": true,
	}, &made)
	s := &stack{c, "/stacks/s/" + made.Stack.ID}
	s.await("CREATE_COMPLETE")
	return s
}

func (s *stack) update(out *Output) {
	s.Helper()
	s.heat("PUT", s.path, map[string]any{"template": out.Top, "files": out.Files, "parameters": out.Parameters, "timeout_mins": 10}, nil)
	s.await("UPDATE_COMPLETE")
}

func (s *stack) remove() {
	s.Helper()
	s.heat("DELETE", s.path, nil, nil)
	s.await("DELETE_COMPLETE")
}

func (s *stack) await(want string) {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		var is struct {
			Stack struct {
				Status string `json:"stack_status"`
				Reason string `json:"stack_status_reason"`
			}
		}
		s.heat("GET", s.path, nil, &is)
		if is.Stack.Status == want {
			return
		}
		if strings.HasSuffix(is.Stack.Status, "_FAILED") || time.Now().After(deadline) {
			s.Fatalf("the stack is %s (%s), not %s", is.Stack.Status, is.Stack.Reason, want)
		}
	}
}

// within lists the resources of the tree by the stack that they are in, each as "type name".
func (s *stack) within() map[string]map[string]string {
	s.Helper()
	var list struct {
		Resources []struct {
			Name  string `json:"resource_name"`
			Type  string `json:"resource_type"`
			ID    string `json:"physical_resource_id"`
			State string `json:"resource_status"`
			Links []struct{ Href, Rel string }
		}
	}
	s.heat("GET", s.path+"/resources?nested_depth=5", nil, &list)
	out := map[string]map[string]string{}
	for _, r := range list.Resources {
		for _, l := range r.Links {
			if l.Rel == "stack" {
				if out[l.Href] == nil {
					out[l.Href] = map[string]string{}
				}
				out[l.Href][strings.TrimPrefix(r.Type, "OS::")+" "+r.Name] = r.ID
			}
		}
	}
	return out
}

// counts are how many there are of each, by name.
func (s *stack) counts() map[string]int {
	s.Helper()
	out := map[string]int{}
	for _, in := range s.within() {
		for what := range in {
			if kind, _, _ := strings.Cut(what, " "); kind == "Nova::Server" || kind == "Neutron::Port" || kind == "Cinder::Volume" || kind == "Neutron::Net" {
				out[what]++
			}
		}
	}
	return out
}

// layout is what an instance consists of by the domain, in the same terms: without the networks and ports that are not ours.
func layout(r reporter, in Input, levels map[string]int) map[string]int {
	r.Helper()
	n := 0
	info, err := lcm.NewInstantiatedInfoAt(in.Flavour, in.Request, levels, func() string { n++; return strconv.Itoa(n) })
	if err != nil {
		r.Fatalf("%v", err)
	}
	out := map[string]int{}
	given := map[string]int{}
	for _, link := range in.Request.ExtVirtualLinks {
		for _, cp := range link.ExtCps {
			for _, config := range cp.CpConfig {
				if config.LinkPortId != "" {
					given[cp.CpdId]++
				}
			}
		}
	}
	for _, v := range info.VnfcResourceInfo {
		out["Nova::Server "+v.VduId]++
		for _, cp := range v.VnfcCpInfo {
			out["Neutron::Port "+cp.CpdId]++
		}
	}
	for cp, n := range given {
		if out["Neutron::Port "+cp] -= n; out["Neutron::Port "+cp] == 0 {
			delete(out, "Neutron::Port "+cp)
		}
	}
	for _, s := range info.VirtualStorageResourceInfo {
		if i := slices.IndexFunc(in.Flavour.Storages, func(v vnfd.VirtualStorage) bool { return v.Name == s.VirtualStorageDescId }); i < 0 ||
			!slices.Contains(noVolumes, in.Flavour.Storages[i].Type) {
			out["Cinder::Volume "+s.VirtualStorageDescId]++
		}
	}
	managed := map[string]bool{}
	for _, m := range in.Request.ExtManagedVirtualLinks {
		managed[m.VnfVirtualLinkDescId] = true
	}
	for _, vl := range in.Flavour.VirtualLinks {
		if !managed[vl.Name] {
			out["Neutron::Net "+vl.Name]++
		}
	}
	return out
}

func levelsOf(in Input) map[string]int {
	levels := map[string]int{}
	if l, ok := in.Flavour.Level(in.Request.InstantiationLevelId); ok {
		for _, at := range l.ScaleInfo {
			levels[at.Aspect] = at.Level
		}
	}
	return levels
}

// check sees that the stack consists of what the layout asks for, each server with its ports and volumes beside it.
func (s *stack) check(in Input, levels map[string]int) {
	s.Helper()
	if diff := cmp.Diff(layout(s, in, levels), s.counts()); diff != "" {
		s.Errorf("the stack is not as laid out: %s", diff)
	}
	ext := map[string]bool{}
	for _, link := range in.Request.ExtVirtualLinks {
		for _, cp := range link.ExtCps {
			ext[cp.CpdId] = len(cp.CpConfig) > 0 && cp.CpConfig[0].LinkPortId != ""
		}
	}
	for where, has := range s.within() {
		for _, v := range in.Flavour.VDUs {
			if has["Nova::Server "+v.Name] == "" {
				continue
			}
			for _, name := range v.Storages {
				if i := slices.IndexFunc(in.Flavour.Storages, func(v vnfd.VirtualStorage) bool { return v.Name == name }); has["Cinder::Volume "+name] == "" &&
					!slices.Contains(noVolumes, in.Flavour.Storages[i].Type) {
					s.Errorf("%s has no volume %s", where, name)
				}
			}
			for _, cp := range in.Flavour.CPs {
				if cp.VDU == v.Name && has["Neutron::Port "+cp.Name] == "" && !ext[cp.Name] {
					s.Errorf("%s has no port %s", where, cp.Name)
				}
			}
		}
	}
}

// scaled signals a policy and waits until the stack is as the layout has it at those levels.
func (s *stack) scaled(in Input, policy string, levels map[string]int) {
	s.Helper()
	s.heat("POST", s.path+"/resources/"+policy+"/signal", nil, nil)
	want := layout(s, in, levels)
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		diff := cmp.Diff(want, s.counts())
		if diff == "" && s.quiet() {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s does not lead to the layout: %s", policy, diff)
		}
	}
}

func (s *stack) quiet() bool {
	var busy struct{ Stacks []any }
	s.heat("GET", "/stacks?show_nested=true&status=IN_PROGRESS", nil, &busy)
	return len(busy.Stacks) == 0
}

func (s *stack) nothingLeft() {
	s.Helper()
	left := s.srv.Cloud.State().Counts
	for _, kind := range []string{"stacks", "nested_stacks", "servers", "ports", "volumes", "server_groups", "qos_policies"} {
		if left[kind] != 0 {
			s.Errorf("%d %s are left", left[kind], kind)
		}
	}
}

// image is a name that the simulator's images have.
const image = "cirros-0.5.2-x86_64-disk"

// withImages gives every node an image.
func withImages(in *Input) {
	in.Images = map[string]string{}
	for _, i := range in.Flavour.SoftwareImages {
		in.Images[i.ID] = image
	}
}

// TestStacks makes stacks of the VNFDs of testdata.
func TestStacks(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			c := boot(t)
			in := sample(t, s.name)
			withImages(&in)
			if s.change != nil {
				s.change(&in)
			}
			in.Cooldown = 0
			if s.name == "pair" {
				var port struct{ Port struct{ ID string } }
				var nets struct{ Networks []struct{ ID string } }
				c.call("GET", "/network/v2.0/networks?name=net0", nil, &nets)
				c.call("POST", "/network/v2.0/ports", map[string]any{"port": map[string]any{"network_id": nets.Networks[0].ID}}, &port)
				in.Request.ExtVirtualLinks[0].ExtLinkPorts[0].ResourceHandle.ResourceId = port.Port.ID
				defer c.call("DELETE", "/network/v2.0/ports/"+port.Port.ID, nil, nil)
			}
			made := c.create(translate(t, in))
			levels := levelsOf(in)
			made.check(in, levels)
			before := made.within()
			made.update(translate(t, in))
			if diff := cmp.Diff(before, made.within()); diff != "" {
				t.Errorf("an update to the same changes something: %s", diff)
			}
			for _, a := range in.Flavour.Aspects {
				if levels[a.ID] > 0 || len(translate(t, in).Groups) == 0 {
					continue
				}
				levels[a.ID]++
				made.scaled(in, a.ID+scaleOut, levels)
				made.check(in, levels)
				levels[a.ID]--
				if a.ID != "more" { // a group that becomes empty
					made.scaled(in, a.ID+scaleIn, levels)
				}
			}
			made.remove()
		})
	}
}

// TestReconnect sees that other networks and addresses replace ports only.
func TestReconnect(t *testing.T) {
	c := boot(t)
	in := sample(t, "workers")
	withImages(&in)
	out := translate(t, in)
	s := c.create(out)
	servers := func() map[string]string {
		got := map[string]string{}
		for where, has := range s.within() {
			if id := has["Nova::Server worker"]; id != "" {
				got[where] = id
			}
		}
		return got
	}
	before := servers()
	link := &in.Request.ExtVirtualLinks[0]
	link.ResourceId = "net0"
	link.ExtCps[0].CpConfig[0].CpProtocolData[0].IpOverEthernet.IpAddresses[0].SubnetId = "sub_net0"
	in.Parameters = out.Parameters
	next := translate(t, in)
	if diff := cmp.Diff(out.Files, next.Files); diff != "" {
		t.Errorf("the nested templates differ: %s", diff)
	}
	s.update(next)
	s.check(in, levelsOf(in))
	if diff := cmp.Diff(before, servers()); diff != "" || len(before) != 3 {
		t.Errorf("the servers are others: %s", diff)
	}
	s.remove()
	s.nothingLeft()
}

// TestYAML sees that strings survive the way through the template's text.
func TestYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+0-9:._eExXoObB~]{1,8}`), rapid.StringMatching(`[ \t\n#:a'"|>-]{0,12}`),
			rapid.SampledFrom([]string{"yes", "No", "on", "y", "N", "null", "~", "", ".inf", "0o7", "1_000", "2016-10-14", "<<", "=", "12:34:56", "a: b", "a\nb\n", "a\n\n", " a\nb"}))
		s := text.Draw(t, "text")
		in := newTemplate(nil)
		in.add("r", resource{kind: "T", properties: map[string]any{"p": s, "k" + s: []any{s, map[string]any{s: true}}}})
		out, err := in.text(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hot.Decode([]byte(out))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := map[string]any{
			"heat_template_version": templateVersion, "description": s,
			"resources": map[string]any{"r": map[string]any{"type": "T", "properties": map[string]any{"p": s, "k" + s: []any{s, map[string]any{s: true}}}}},
		}
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Fatalf("%s\n%s", diff, out)
		}
	})
}

// drawn makes a flavour that can be translated, with a request.
func drawn(t *rapid.T) Input {
	number := func(least, most int, what string) int { return rapid.IntRange(least, most).Draw(t, what) }
	flip := func(what string) bool { return rapid.Bool().Draw(t, what) }
	words := rapid.SampledFrom([]string{"VDU", "yes", "null", "1e3", "a.b", "x-y", "_u", "nfv_", "é", "0x1", "flavor"})
	count := 0
	name := func(what string) string { count++; return words.Draw(t, what) + strconv.Itoa(count) }

	in := Input{Flavour: &vnfd.Flavour{ID: "f", File: "f.yaml"}, Request: &sol003.InstantiateVnfRequest{}, Images: map[string]string{}}
	f := in.Flavour
	sw := func(node string) *vnfd.SoftwareImage {
		f.SoftwareImages = append(f.SoftwareImages, vnfd.SoftwareImage{ID: node, Name: image})
		return &f.SoftwareImages[len(f.SoftwareImages)-1]
	}
	for range number(0, 2, "links") {
		vl := vnfd.VirtualLink{Name: name("link"), CIDR: fmt.Sprintf("10.%d.0.0/16", 100+len(f.VirtualLinks))}
		if flip("qos") {
			vl.MaxLeafBitrate = int64(number(1, 1<<30, "bitrate"))
		}
		f.VirtualLinks = append(f.VirtualLinks, vl)
		if flip("managed") {
			in.Request.ExtManagedVirtualLinks = append(in.Request.ExtManagedVirtualLinks,
				sol003.ExtManagedVirtualLinkData{Id: "m", VnfVirtualLinkDescId: vl.Name, ResourceId: "net1"})
		}
	}
	for range number(0, 2, "storages") {
		s := vnfd.VirtualStorage{Name: name("storage"), Size: int64(number(1, 4, "size")) << 30}
		s.SoftwareImage = sw(s.Name)
		f.Storages = append(f.Storages, s)
	}
	ext := sol003.ExtVirtualLinkData{Id: "ext", ResourceId: "net0"}
	for range number(1, 3, "VDUs") {
		v := vnfd.VDU{Name: name("VDU"), VCPUs: 1, RAM: 1 << 30}
		for _, s := range f.Storages {
			if flip("uses") {
				v.Storages = append(v.Storages, s.Name)
			}
		}
		if len(v.Storages) == 0 || flip("own image") {
			v.SoftwareImage = sw(v.Name)
		}
		for order := range number(0, 2, "CPs") {
			cp := vnfd.CP{Name: name("CP"), VDU: v.Name, Order: 9 - order}
			at := number(0, len(f.VirtualLinks), "link")
			if at < len(f.VirtualLinks) {
				cp.VirtualLink = f.VirtualLinks[at].Name
			}
			if cp.VirtualLink == "" || flip("external too") {
				data := sol003.VnfExtCpData{CpdId: cp.Name}
				if flip("subnet") {
					data.CpConfig = []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{IpOverEthernet: &sol003.IpOverEthernetAddressData{
						IpAddresses: []sol003.IpAddressData{{NumDynamicAddresses: 1, SubnetId: "sub_net0"}}}}}}}
				}
				ext.ExtCps = append(ext.ExtCps, data)
			}
			f.CPs = append(f.CPs, cp)
		}
		if flip("initial") {
			n := number(0, 3, "instances")
			v.InitialInstances = &n
		}
		f.VDUs = append(f.VDUs, v)
	}
	in.Request.ExtVirtualLinks = []sol003.ExtVirtualLinkData{ext}
	drawAspects(t, f)
	if len(f.VDUs) > 1 && flip("rule") {
		f.Affinity = append(f.Affinity, vnfd.AffinityRule{Name: name("rule"), Scope: "nfvi_node", Targets: []string{f.VDUs[0].Name, f.VDUs[1].Name}})
	}
	withImages(&in)
	return in
}

// drawAspects adds scaling aspects whose VDUs can be in one group.
func drawAspects(t *rapid.T, f *vnfd.Flavour) {
	number := func(least, most int, what string) int { return rapid.IntRange(least, most).Draw(t, what) }
	level := vnfd.InstantiationLevel{ID: "level"}
	owned := map[string]bool{}
	for n := range number(0, 2, "aspects") {
		a := vnfd.ScalingAspect{ID: "aspect" + strconv.Itoa(n), MaxLevel: number(1, 3, "levels"), StepDeltas: []string{"d1", "d2"}[:number(1, 2, "deltas")]}
		if !slices.ContainsFunc(f.Aspects, func(o vnfd.ScalingAspect) bool { return o.ID == f.VDUs[0].Name }) && rapid.Bool().Draw(t, "named like a VDU") {
			a.ID = f.VDUs[0].Name
		}
		first, members := number(0, len(f.VDUs)-1, "first"), 0
		by := []int{number(1, 2, "by"), number(1, 2, "by")}
		for m := range f.VDUs {
			v := &f.VDUs[(first+m)%len(f.VDUs)]
			per := 1
			if m > 0 {
				if owned[v.Name] || rapid.Bool().Draw(t, "apart") {
					continue
				}
				per = number(0, 2, "per member")
			}
			if !owned[v.Name] {
				initial := number(0, 2, "base")
				if m > 0 {
					initial = per*members + min(initial, 1)
				} else {
					members = initial
				}
				v.InitialInstances = &initial
			}
			owned[v.Name] = true
			a.VDUs = append(a.VDUs, vnfd.VDUDeltas{VDU: v.Name, Deltas: []vnfd.Delta{{ID: "d1", Instances: per * by[0]}, {ID: "d2", Instances: per * by[1]}}})
		}
		f.Aspects = append(f.Aspects, a)
		level.ScaleInfo = append(level.ScaleInfo, vnfd.ScaleInfo{Aspect: a.ID, Level: number(0, min(1, a.MaxLevel), "level")})
	}
	f.Levels, f.DefaultLevel = []vnfd.InstantiationLevel{level}, "level"
}

// TestProperties makes stacks of drawn flavours: every template can be read, they lead to what the domain lays out, and a step
// of an aspect leads to the next level's layout.
func TestProperties(t *testing.T) {
	c := boot(t)
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t)
		out, err := Translate(in)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Translate(in); err != nil || again.written() != out.written() {
			t.Fatalf("the same input gives something else (%v)", err)
		}
		for file, text := range out.Files {
			if tm, err := hot.ParseText(text); err != nil || tm.CheckRefs() != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
		}
		if tm, err := hot.ParseText(out.Top); err != nil || tm.CheckRefs() != nil {
			t.Fatalf("%v\n%s", err, out.Top)
		}
		mine := &cloud{reporter: t, srv: c.srv, token: c.token, project: c.project}
		s := mine.create(out)
		levels := levelsOf(in)
		s.check(in, levels)
		for _, a := range in.Flavour.Aspects {
			if levels[a.ID] == 0 {
				levels[a.ID] = 1
				s.scaled(in, a.ID+scaleOut, levels)
				break
			}
		}
		s.remove()
		s.nothingLeft()
	})
}

// FuzzTranslate sees that no descriptor that can be read brings the translation down, and that what comes out can be read.
func FuzzTranslate(f *testing.F) {
	for _, s := range samples {
		raw, err := os.ReadFile(filepath.Join("testdata", "vnfds", s.name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		request, err := os.ReadFile(filepath.Join("testdata", "vnfds", s.name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, request)
	}
	f.Fuzz(func(t *testing.T, raw, request []byte) {
		d, err := vnfd.Read(fstest.MapFS{"v.yaml": {Data: raw}}, "v.yaml")
		if err != nil {
			return
		}
		in := Input{Request: new(sol003.InstantiateVnfRequest)}
		if json.Unmarshal(request, in.Request) != nil {
			return
		}
		for n := range d.Flavours {
			in.Flavour = &d.Flavours[n]
			out, err := Translate(in)
			if err != nil {
				if k := lcm.KindOf(err); k != lcm.KindTerminal && k != lcm.KindUnsupported {
					t.Fatalf("%s: %v", k, err)
				}
				continue
			}
			for file, text := range out.Files {
				if _, err := hot.ParseText(text); err != nil {
					t.Fatalf("%s: %v\n%s", file, err, text)
				}
			}
			if _, err := hot.ParseText(out.Top); err != nil {
				t.Fatalf("%v\n%s", err, out.Top)
			}
		}
	})
}

// TestSamples translates outside packages at every level, where they are at hand.
func TestSamples(t *testing.T) {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
		return
	}
	for _, s := range []struct{ dir, entry string }{
		{"vnflcm1", "Definitions/helloworld3_top.vnfd.yaml"}, {"vnflcm3", "Definitions/helloworld3.vnfd.tosca.yaml"},
		{"csar/vnfpkgm2", "Definitions/helloworld3_top.vnfd.yaml"}, {"csar/vnfpkgm3", "vnfd_helloworld_single.yaml"},
		{"csar/sample_vnf_package_csar_manifest", "VNF.yaml"},
		{"functional", "Definitions/helloworld3_top.vnfd.yaml"}, {"kubernetes_vnf_package", "Definitions/sample_kubernetes_top.vnfd.yaml"},
	} {
		pkg := fstest.MapFS{}
		for _, from := range []struct{ dir, to string }{{s.dir, ""}, {"common/Definitions", "Definitions/"}} {
			at := filepath.Join(dir, from.dir)
			err := filepath.WalkDir(at, func(p string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				raw, err := os.ReadFile(p)
				rel, _ := filepath.Rel(at, p)
				pkg[from.to+filepath.ToSlash(rel)] = &fstest.MapFile{Data: raw}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"Files/images/cirros-0.5.2-x86_64-disk.img", "Files/images/ubuntu-20.04-server-cloudimg-amd64.img", "Scripts/kubernetes_mgmt.py"} {
			pkg[file] = &fstest.MapFile{Data: []byte("x")}
		}
		d, err := vnfd.Read(pkg, s.entry)
		if err != nil {
			var all vnfd.Diagnostics
			errors.As(err, &all)
			t.Fatalf("%s: %v", s.dir, all)
		}
		for n := range d.Flavours {
			f := &d.Flavours[n]
			levels := []string{""}
			for _, l := range f.Levels {
				levels = append(levels, l.ID)
			}
			for _, level := range levels {
				t.Run(strings.ReplaceAll(s.dir, "/", "_")+"/"+f.ID+"/"+level, func(t *testing.T) {
					if len(f.VDUs) == 0 {
						t.Log("no VDU")
						return
					}
					in := Input{Flavour: f, Request: &sol003.InstantiateVnfRequest{FlavourId: f.ID, InstantiationLevelId: level}}
					withImages(&in)
					ext := sol003.ExtVirtualLinkData{Id: "ext", ResourceId: "net0"}
					for _, cp := range f.CPs {
						if cp.VirtualLink == "" || slices.ContainsFunc(f.ExternalCPs, func(x vnfd.ExternalCP) bool { return x.Node == cp.Name }) {
							ext.ExtCps = append(ext.ExtCps, sol003.VnfExtCpData{CpdId: cp.Name})
						}
					}
					in.Request.ExtVirtualLinks = []sol003.ExtVirtualLinkData{ext}
					c := boot(t)
					made := c.create(translate(t, in))
					made.check(in, levelsOf(in))
					at := maps.Clone(levelsOf(in))
					for _, a := range f.Aspects {
						if at[a.ID] < a.MaxLevel {
							at[a.ID]++
							made.scaled(in, a.ID+scaleOut, at)
						}
					}
					made.remove()
					made.nothingLeft()
				})
			}
		}
	}
}
