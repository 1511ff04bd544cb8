package openstack

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// subject is a package that goes through all operations.
type subject struct {
	name    string
	fsys    fs.FS
	d       *vnfd.Descriptor
	req     *sol003.InstantiateVnfRequest
	aspect  string // that is scaled; "" when nothing scales
	vdu     string // of the aspect, whose VNFC is healed
	servers int
}

// extLinks puts connection points on a network, each by a link of its own.
func extLinks(network string, cps ...string) []sol003.ExtVirtualLinkData {
	var links []sol003.ExtVirtualLinkData
	for _, cp := range cps {
		links = append(links, sol003.ExtVirtualLinkData{Id: "link-" + cp, ResourceId: network, ExtCps: []sol003.VnfExtCpData{{CpdId: cp, CpConfig: []sol003.VnfExtCpConfig{{}}}}})
	}
	return links
}

func scripted(flavour, file, class string, cps ...string) *sol003.InstantiateVnfRequest {
	return &sol003.InstantiateVnfRequest{
		FlavourId: flavour, ExtVirtualLinks: extLinks("net0", cps...),
		AdditionalParams: map[string]any{scriptKey: file, classKey: class},
	}
}

// unscripted is a request that has the VNFD translated.
func unscripted(flavour string, cps ...string) *sol003.InstantiateVnfRequest {
	req := scripted(flavour, "", "", cps...)
	req.AdditionalParams = nil
	return req
}

// subjects are the packages at hand: those of testdata, our own, and the outside samples where they are.
func subjects(t *testing.T) []subject {
	t.Helper()
	var out []subject
	add := func(name string, fsys fs.FS, entry string, req *sol003.InstantiateVnfRequest, aspect, vdu string, servers int) {
		out = append(out, subject{name, fsys, ownPackage(t, fsys, entry), req, aspect, vdu, servers})
	}
	functional := scripted("simple", "./UserData/lcm_user_data.py", "SampleUserData", "VDU1_CP1", "VDU1_CP2", "VDU2_CP1", "VDU2_CP2")
	add("testdata cluster", os.DirFS("testdata/packages/cluster"), "Definitions/top.yaml",
		scripted("complex", "UserData/cluster_user_data.py", "ClusterUserData", "masterNode_CP1", "workerNode_CP2"), "worker_instance", "workerNode", 5)
	add("testdata functional", os.DirFS("testdata/packages/functional"), "Definitions/top.yaml", functional, "VDU1", "VDU1", 3)
	own := "../../../deploy/"
	for flavour, servers := range map[string]int{"simple": 3, "complex": 5} {
		add("kubernetes-cluster "+flavour, joined(t, own+"packages/kubernetes-cluster", own+"definitions"), "Definitions/cluster_top.vnfd.yaml",
			scripted(flavour, "./UserData/k8s_cluster_user_data.py", "KubernetesClusterUserData", "masterNode_CP1", "workerNode_CP2"), "worker_instance", "workerNode", servers)
	}
	add("multi-port", joined(t, own+"packages/multi-port", own+"definitions"), "Definitions/multi_port_top.vnfd.yaml",
		scripted("default", "./UserData/multi_port_user_data.py", "MultiPortUserData", "gateway_CP1", "gateway_CP2", "worker_CP1", "worker_CP2"), "gateway_group", "gateway", 3)
	add("multi-port, translated", joined(t, own+"packages/multi-port", own+"definitions"), "Definitions/multi_port_top.vnfd.yaml",
		unscripted("default", "gateway_CP1", "gateway_CP2", "worker_CP1", "worker_CP2"), "gateway_group", "gateway", 3)
	add("testdata cluster, translated", os.DirFS("testdata/packages/cluster"), "Definitions/top.yaml",
		unscripted("complex", "masterNode_CP1", "workerNode_CP2"), "worker_instance", "workerNode", 5)
	add("testdata functional, translated", os.DirFS("testdata/packages/functional"), "Definitions/top.yaml",
		unscripted("simple", "VDU1_CP1", "VDU1_CP2", "VDU2_CP1", "VDU2_CP2"), "VDU1", "VDU1", 3)
	for aspect, vdu := range map[string]string{"day": "worker", "night": "gate", "watch": "silent"} {
		add("testdata translated by "+aspect, os.DirFS("testdata/packages/translated"), "Definitions/vnfd.yaml", unscripted("simple", "gate_CP1"), aspect, vdu, 6)
	}
	plain := filesOf(t, "toscahot/testdata/vnfds", "Definitions")
	small := unscripted("simple", "worker_CP2")
	small.InstantiationLevelId = "small"
	add("testdata workers", plain, "Definitions/workers.yaml", small, "worker_instance", "worker", 1)
	add("testdata cells", plain, "Definitions/cells.yaml", unscripted("simple"), "cell", "back", 9)
	add("testdata router", plain, "Definitions/router.yaml", unscripted("simple", "outside"), "", "router", 1)
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: only our own packages")
		return out
	}
	for _, name := range []string{"functional", "functional2"} {
		add("sample "+name, samplePackage(t, dir, name, "testdata/packages/functional/UserData"), "Definitions/helloworld3_top.vnfd.yaml", functional, "worker_instance", "VDU1", 3)
	}
	cluster := samplePackage(t, dir, "kubernetes_vnf_package", "testdata/packages/cluster/UserData")
	for flavour, servers := range map[string]int{"simple": 3, "complex": 5, "podaffinity": 5} {
		add("sample cluster "+flavour, cluster, "Definitions/sample_kubernetes_top.vnfd.yaml",
			scripted(flavour, "UserData/cluster_user_data.py", "ClusterUserData", "masterNode_CP1", "workerNode_CP2"), "worker_instance", "workerNode", servers)
	}
	for _, s := range []struct {
		name, dir, entry string
		aspect           string
		cps              []string
	}{
		{"", "vnflcm1", "helloworld3_top.vnfd.yaml", "worker_instance", nil},
		{" outside", "vnflcm1", "helloworld3_top.vnfd.yaml", "worker_instance", []string{"CP1"}},
		{"", "vnflcm3", "helloworld3.vnfd.tosca.yaml", "", []string{"CP1", "CP2"}},
	} {
		pkg := withoutImages(joined(t, dir+"/"+s.dir, dir+"/common/Definitions"))
		add("sample "+s.dir+s.name, pkg, "Definitions/"+s.entry, unscripted("simple", s.cps...), s.aspect, "VDU1", 1)
	}
	return out
}

// samplePackage puts an outside sample together: its data, the standard's types, scripts of ours, and files where it names
// images and management drivers.
func samplePackage(t *testing.T, dir, name, scripts string) fs.FS {
	t.Helper()
	pkg := joined(t, dir+"/"+name, dir+"/common/Definitions")
	maps.Copy(pkg, filesOf(t, scripts, "UserData"))
	pkg["Scripts/kubernetes_mgmt.py"] = &fstest.MapFile{Data: []byte("driver")}
	return withoutImages(pkg)
}

// joined is a package's folder with another's files among its definitions.
func joined(t *testing.T, dir, definitions string) fstest.MapFS {
	t.Helper()
	pkg := filesOf(t, dir, "")
	maps.Copy(pkg, filesOf(t, definitions, "Definitions"))
	return pkg
}

// filesOf reads a folder.
func filesOf(t *testing.T, dir, to string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[path.Join(to, filepath.ToSlash(rel))] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutImages takes the images' artifacts out of definitions: the VIM has the images that they name.
func withoutImages(pkg fstest.MapFS) fstest.MapFS {
	for name, f := range pkg {
		if !strings.HasPrefix(name, "Definitions/") || !strings.Contains(string(f.Data), "tosca.artifacts.nfv.SwImage") || strings.Contains(name, "etsi_nfv") {
			continue
		}
		var out []string
		lines := strings.Split(string(f.Data), "\n")
		for n := 0; n < len(lines); n++ {
			if strings.TrimSpace(lines[n]) == "artifacts:" && n+2 < len(lines) && strings.Contains(lines[n+2], "tosca.artifacts.nfv.SwImage") {
				n += 3
				continue
			}
			out = append(out, lines[n])
		}
		pkg[name] = &fstest.MapFile{Data: []byte(strings.Join(out, "\n"))}
	}
	return pkg
}

// bring has the VIM know the images that a package names and does not bring.
func (l *lab) bring(f *vnfd.Flavour) {
	l.Helper()
	c, err := l.driver.connect(l.Context(), l.target)
	if err != nil {
		l.Fatal(err)
	}
	for _, i := range f.SoftwareImages {
		if have, err := c.imagesNamed(l.Context(), i.Name); err != nil || len(have) > 0 || i.File != "" {
			continue
		}
		made, err := c.createImage(l.Context(), &imageRequest{Name: i.Name, Visibility: "public", ContainerFormat: "bare", DiskFormat: "raw", Tags: []string{}})
		if err == nil {
			err = c.uploadImage(l.Context(), made.ID, strings.NewReader("data"))
		}
		if err != nil {
			l.Fatal(err)
		}
	}
}

// TestEveryOperation takes every package through its life, with the VIM compared after every step; once with the first
// result of every step lost.
func TestEveryOperation(t *testing.T) {
	for _, s := range subjects(t) {
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, results lost %t", s.name, lose), func(t *testing.T) {
				t.Parallel()
				sim := vimsim.Config{Hosts: []string{"a", "b", "c", "d", "e", "f"}}
				if lose { // and what Heat and Nova do takes a while
					sim.Latency = map[string]time.Duration{"*": 4 * time.Millisecond}
				}
				l := newLab(t, sim, Config{})
				req := *s.req
				v := newVNF(l, s.fsys, s.d, &req)
				v.lose = lose
				l.bring(v.flavour)
				v.ok(v.instantiate())
				v.same("instantiated")
				if n := len(v.now.Info.VnfcResourceInfo); n != s.servers {
					t.Fatalf("%d VNFCs, not %d", n, s.servers)
				}
				first := v.servers(s.vdu)
				if s.aspect != "" {
					v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, s.aspect, 2, nil))
					v.same("scaled out")
				}
				for id, server := range first {
					if v.servers(s.vdu)[id] != server {
						t.Errorf("scaling out has changed VNFC %s", id)
					}
				}
				all := v.servers(s.vdu)
				if s.aspect != "" {
					v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, s.aspect, 1, nil))
					v.same("scaled in")
				}
				for id, server := range v.servers(s.vdu) {
					if all[id] != server {
						t.Errorf("scaling in has changed VNFC %s", id)
					}
				}
				sick := slices.Sorted(maps.Keys(v.servers(s.vdu)))[0]
				before := v.servers(s.vdu)
				v.ok(v.heal(sick))
				v.same("one healed")
				for id, server := range v.servers(s.vdu) {
					if (server == before[id]) == (id == sick) || before[id] == "" {
						t.Errorf("VNFC %s had server %s and has %s, healed was %s", id, before[id], server, sick)
					}
				}
				old := *v.now
				v.ok(v.heal())
				v.same("all healed")
				for _, c := range old.Info.VnfcResourceInfo {
					for vdu := range v.counts() {
						if v.servers(vdu)[c.Id] != "" {
							t.Errorf("VNFC %s of before is still there", c.Id)
						}
					}
				}
				if len(req.ExtVirtualLinks) > 0 {
					kept := v.servers(s.vdu)
					v.ok(v.changeExtConn("net_mgmt"))
					v.same("moved")
					if diff := cmp.Diff(kept, v.servers(s.vdu)); diff != "" {
						t.Errorf("the servers are others: %s", diff)
					}
				}
				v.ok(v.operate(sol003.VnfOperationalStateStopped))
				v.states(t, "SHUTOFF", sol003.VnfOperationalStateStopped)
				v.ok(v.operate(sol003.VnfOperationalStateStarted))
				v.states(t, "ACTIVE", sol003.VnfOperationalStateStarted)
				// What was scaled stays so through an update, and what was moved does through another.
				if s.aspect != "" {
					v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, s.aspect, 1, nil))
					v.same("scaled in again")
				}
				if left := slices.Sorted(maps.Keys(v.servers(s.vdu))); len(left) > 0 {
					v.ok(v.heal(left[0]))
					v.same("one healed again")
				}
				v.terminateAll()
			})
		}
	}
}

// states compares the servers' statuses in Nova and the states of the VNFCs.
func (v *vnf) states(t *testing.T, status string, state sol003.VnfOperationalState) {
	t.Helper()
	for _, s := range v.sim.Cloud.State().Servers {
		if s["status"] != status {
			t.Errorf("server %v is %v, not %s", s["name"], s["status"], status)
		}
	}
	for _, s := range v.now.Info.VnfcInfo {
		if s.VnfcState != state {
			t.Errorf("VNFC %s is %s, not %s", s.VduId, s.VnfcState, state)
		}
	}
}
