package crash

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// serverLatency is how long a simulated server takes, so that stacks are waited for.
const serverLatency = 150 * time.Millisecond

// latency is how long simulated servers take when nothing else is said.
var latency = map[string]time.Duration{"OS::Nova::Server": serverLatency}

var (
	// cluster brings images of its own.
	cluster = sample{
		name: "kubernetes-cluster", flavour: "complex", pack: deploy.Package, servers: 5, grows: 1,
		levels: map[string]int{"master_instance": 1, "worker_instance": 1}, leveled: 7, other: "simple", others: 3,
		aspect: "worker_instance", vdu: "workerNode", cp: "workerNode_CP2", upload: "multi-port",
	}
	// multiPort has volumes, and many ports on networks of its own and of others.
	multiPort = sample{
		name: "multi-port", flavour: "default", pack: withNarrow, servers: 3, grows: 1,
		levels: map[string]int{"gateway_group": 2}, leveled: 5, other: narrow, others: 2,
		aspect: "gateway_group", vdu: "gateway", cp: "gateway_CP1", upload: "kubernetes-cluster",
	}
)

// narrow is a flavour of a sample that has one, with one worker.
const narrow = "narrow"

// withNarrow is the sample with many ports as a package with another flavour.
func withNarrow(name string) ([]byte, error) {
	files, err := deploy.Files(name)
	if err != nil {
		return nil, err
	}
	const (
		standard, own = "Definitions/multi_port_df_default.yaml", "Definitions/multi_port_df_narrow.yaml"
		top, types    = "Definitions/multi_port_top.vnfd.yaml", "Definitions/multi_port_types.yaml"
		hots, ownHOTs = "BaseHOT/default/", "BaseHOT/" + narrow + "/"
	)
	for path, data := range files {
		if rest, ok := strings.CutPrefix(path, hots); ok {
			files[ownHOTs+rest] = data
		}
	}
	files[own] = files[standard]
	for _, c := range []struct{ path, old, now string }{
		{top, "  - multi_port_df_default.yaml", "  - multi_port_df_default.yaml\n  - multi_port_df_narrow.yaml"},
		{types, "[ default ]", "[ default, " + narrow + " ]"},
		{own, "flavour_id: default", "flavour_id: " + narrow},
		{own, "number_of_instances: 2, max_number_of_instances: 2", "number_of_instances: 1, max_number_of_instances: 1"},
		{own, "initial_delta: { number_of_instances: 2 }", "initial_delta: { number_of_instances: 1 }"},
		{own, "level_1: { number_of_instances: 2 }", "level_1: { number_of_instances: 1 }"},
		{own, "level_2: { number_of_instances: 2 }", "level_2: { number_of_instances: 1 }"},
		{ownHOTs + "multi_port_top.yaml", "min_size: 2\n      max_size: 2\n      desired_capacity: 2", "min_size: 1\n      max_size: 1\n      desired_capacity: 1"},
	} {
		if n := strings.Count(string(files[c.path]), c.old); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, want it once", c.path, c.old, n)
		}
		files[c.path] = []byte(strings.Replace(string(files[c.path]), c.old, c.now, 1))
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(path)
		if err == nil {
			_, err = f.Write(files[path])
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// stacks is a simulated OpenStack, one for each lane.
var stacks = &stage{
	options: harness.Options{VIM: vimsim.Config{Latency: latency}},
	open:    func(_ context.Context, l *lane) (cloud, error) { return &simulated{l.Cluster}, nil },
	acts:    stackActs,
	samples: map[int]sample{1: multiPort, 3: cluster},
	lanes:   map[int]int{1: 2, 3: 4},
	essential: []string{
		"INSTANTIATE/accept/before", "INSTANTIATE/accept/after", "INSTANTIATE/grant/before", "INSTANTIATE/start/after",
		"INSTANTIATE/infra:images/before", "INSTANTIATE/infra:images/after", "INSTANTIATE/infra:images/recorded",
		"INSTANTIATE/infra:user-data/before", "INSTANTIATE/infra:stack-create/before", "INSTANTIATE/infra:stack-create/after",
		"INSTANTIATE/infra:stack-create/recorded", "INSTANTIATE/infra:stack-wait/after", "INSTANTIATE/infra:inventory/after",
		"INSTANTIATE/finish/before", "INSTANTIATE/finish/recorded",
		"TERMINATE/accept/before", "TERMINATE/accept/after", "TERMINATE/infra:stack-delete/before",
		"TERMINATE/infra:stack-delete/after", "TERMINATE/infra:stack-delete/recorded", "TERMINATE/infra:images-delete/before",
		"TERMINATE/infra:images-delete/after", "TERMINATE/infra:images-delete/recorded", "TERMINATE/finish/before", "TERMINATE/finish/recorded",
		"SCALE/accept/after", "SCALE/leaving:leaving/after", "SCALE/finish/recorded",
		"SCALE_TO_LEVEL/accept/after", "SCALE_TO_LEVEL/leaving:leaving/after", "SCALE_TO_LEVEL/infra:groups/after", "SCALE_TO_LEVEL/finish/recorded",
		"CHANGE_FLAVOUR/accept/after", "CHANGE_FLAVOUR/infra:user-data/after", "CHANGE_FLAVOUR/infra:stack-update/recorded",
		"CHANGE_FLAVOUR/infra:stack-wait/after", "CHANGE_FLAVOUR/finish/recorded", "ROLLBACK-CHANGE_FLAVOUR/infra:rollback-update/recorded", "HEAL/infra:mark/after", "HEAL/infra:stack-update/after",
		"HEAL/infra:respawn-stack-delete/after", "HEAL/infra:stack-create/after", "CHANGE_EXT_CONN/infra:stack-update/recorded",
		"OPERATE/infra:servers/after", "MODIFY_INFO/accept/after", "MODIFY_INFO/finish/before",
		"PROCESSING/accept/before", "PROCESSING/accept/after", "ROLLING_BACK/accept/after", "FAILED/accept/after", "CANCEL/accept/before", "CANCEL/accept/after",
		"ROLLBACK-INSTANTIATE/infra:rollback-stack-delete/after", "ROLLBACK-INSTANTIATE/rolled-back/before", "ROLLBACK-SCALE/rolled-back/recorded", "ROLLBACK-CHANGE_FLAVOUR/rolled-back/recorded",
		"onboard:download:before", "onboard:download:after", "onboard:open:before", "onboard:verify:after", "onboard:vnfd:after",
		"onboard:onboard:before", "onboard:onboard:after",
	},
}

// simulated is a simulated OpenStack as a cloud.
type simulated struct{ *harness.Cluster }

func (v *simulated) close() {} // the cluster's end is its end

func (v *simulated) register(ctx context.Context, api *harness.Client) (string, error) {
	return api.RegisterVIM(ctx, "VIM0", v.Sim.AuthURL)
}

func (v *simulated) look(_ context.Context, s *subject) (*sight, error) {
	out := &sight{came: v.requests(0), members: v.servers(), counts: v.counts()}
	if s == nil {
		return out, nil
	}
	if stack := v.Find(s.id); stack != nil {
		_, out.status, _ = strings.Cut(stack.Status, "_") // whatever it was that came to it
	}
	return out, nil
}

// counts are the numbers of things in the VIM, without what comes and goes by itself.
func (v *simulated) counts() map[string]int {
	c := v.Sim.Cloud.State().Counts
	delete(c, "tokens")
	delete(c, "deleted_stacks")
	return c
}

// servers are the ids of the VIM's servers, sorted.
func (v *simulated) servers() []string {
	var ids []string
	for _, s := range v.Sim.Cloud.State().Servers {
		ids = append(ids, fmt.Sprint(s["id"]))
	}
	slices.Sort(ids)
	return ids
}

// mark returns the number of the newest request in the VIM's journal.
func (v *simulated) mark() int64 {
	j := v.Sim.Cloud.Journal()
	if len(j) == 0 {
		return 0
	}
	return j[len(j)-1].Seq
}

// requests counts the VIM's successful requests since a mark, of the kinds that must not come twice.
func (v *simulated) requests(since int64) map[string]int {
	n := map[string]int{}
	for _, e := range v.Sim.Cloud.Journal() {
		if e.Seq <= since || e.Status >= 300 || e.Status == 0 {
			continue
		}
		parts := strings.Split(e.Path, "/")
		switch last := parts[len(parts)-1]; {
		case e.Service == "heat" && (e.Method == http.MethodPut || e.Method == http.MethodPatch) && len(parts) > 3 && parts[len(parts)-3] == "stacks":
			n["heat update"]++
		case e.Service == "heat" && e.Method == http.MethodPost && (last == "stacks" || last == "signal"),
			e.Service == "glance" && e.Method == http.MethodPost && last == "images",
			e.Service == "nova" && e.Method == http.MethodPost && last == "action":
			n[e.Service+" "+last]++
		}
	}
	return n
}

func (v *simulated) strangers(s *subject) error {
	var errs []error
	for _, stack := range v.Sim.Cloud.State().Stacks {
		if stack.Name != "vnflcm_"+s.id && stack.Status != "DELETE_COMPLETE" {
			errs = append(errs, fmt.Errorf("there is another stack, %s in %s", stack.Name, stack.Status))
		}
	}
	return errors.Join(errs...)
}

func (v *simulated) agrees(l *lane, s *subject, _ *sight, vnf *sol003.VnfInstance) error {
	info := vnf.InstantiatedVnfInfo
	state := v.Sim.Cloud.State()
	var errs []error
	same := func(what string, want, got []string) {
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			errs = append(errs, fmt.Errorf("the instance has other %s than the VIM (-VIM +instance):\n%s", what, d))
		}
	}
	var servers, volumes []string
	links := map[string]string{} // resource by id of the link port
	for _, v := range info.VnfcResourceInfo {
		servers = append(servers, v.ComputeResource.ResourceId)
	}
	for _, v := range info.VirtualStorageResourceInfo {
		volumes = append(volumes, v.StorageResource.ResourceId)
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			links[p.Id] = p.ResourceHandle.ResourceId
		}
	}
	same("servers", texts(state.Servers, "id"), servers)
	same("volumes", texts(state.Volumes, "id"), volumes)
	networks := map[string]string{} // name by id of the port
	names := map[string]string{}
	for _, n := range state.Networks {
		names[fmt.Sprint(n["id"])] = fmt.Sprint(n["name"])
	}
	for _, p := range state.Ports {
		networks[fmt.Sprint(p["id"])] = names[fmt.Sprint(p["network_id"])]
	}
	ports := 0
	for _, v := range info.VnfcResourceInfo {
		for _, cp := range v.VnfcCpInfo {
			if cp.VnfLinkPortId == "" {
				continue
			}
			ports++
			network, there := networks[links[cp.VnfLinkPortId]]
			if !there {
				errs = append(errs, fmt.Errorf("connection point %s of VNFC %s has port %q, which the VIM does not have", cp.CpdId, v.Id, links[cp.VnfLinkPortId]))
			}
			if cp.CpdId == l.cp && s.network != "" && network != s.network {
				errs = append(errs, fmt.Errorf("the port of connection point %s of VNFC %s is in network %s, not %s", cp.CpdId, v.Id, network, s.network))
			}
		}
	}
	if ports != len(links) {
		errs = append(errs, fmt.Errorf("%d link ports belong to connection points of VNFCs, of %d", ports, len(links)))
	}
	status := "ACTIVE"
	if s.shape == stopped {
		status = "SHUTOFF"
	}
	for _, server := range state.Servers {
		if server["status"] != status {
			errs = append(errs, fmt.Errorf("server %v is %v, want %s", server["id"], server["status"], status))
		}
	}
	return errors.Join(errs...)
}

// texts returns an attribute of all documents.
func texts(docs []map[string]any, key string) []string {
	var out []string
	for _, d := range docs {
		out = append(out, fmt.Sprint(d[key]))
	}
	return out
}

// slowly has simulated servers take longer.
func (l *lane) slowly(d time.Duration) {
	slow := maps.Clone(latency)
	slow["OS::Nova::Server"] = d
	l.Sim.Cloud.SetLatency(slow)
}
