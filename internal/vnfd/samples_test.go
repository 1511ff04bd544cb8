package vnfd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// samplesDir returns the folder of sample packages that are no part of this
// project, or "" when the environment names none.
func samplesDir(t testing.TB) string {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
	}
	return dir
}

// addDir puts the files below dir into m under prefix; those that are there stay.
func addDir(t testing.TB, m fstest.MapFS, dir, prefix string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := prefix + filepath.ToSlash(rel)
		if _, has := m[name]; has {
			return nil
		}
		data, err := os.ReadFile(p)
		m[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// samplePackage completes the sample package name as its README says.
func samplePackage(t testing.TB, dir, name string, extra ...string) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	addDir(t, m, filepath.Join(dir, name), "")
	for _, x := range extra {
		addDir(t, m, filepath.Join(dir, x, "Definitions"), "Definitions/")
	}
	addDir(t, m, filepath.Join(dir, "common", "Definitions"), "Definitions/")
	for _, f := range []string{
		"Files/images/cirros-0.5.2-x86_64-disk.img",
		"Files/images/ubuntu-20.04-server-cloudimg-amd64.img",
		"Scripts/kubernetes_mgmt.py",
	} {
		m[f] = &fstest.MapFile{Data: []byte("dummy")}
	}
	return m
}

var samples = []struct {
	dir, entry string
	extra      []string
	flavours   string
	counts     []count
}{
	{"kubernetes_vnf_package", "Definitions/sample_kubernetes_top.vnfd.yaml", nil, "simple complex podaffinity", []count{
		{"simple", "masterNode", 1, 3}, {"simple", "workerNode", 2, 4},
		{"complex", "masterNode", 3, 5}, {"complex", "workerNode", 2, 4},
		{"podaffinity", "masterNode", 3, 5}, {"podaffinity", "workerNode", 2, 4},
	}},
	// VDU2 is in no aspect: its initial delta counts.
	{"functional", "Definitions/helloworld3_top.vnfd.yaml", nil, "simple", []count{{"simple", "VDU1", 1, 3}, {"simple", "VDU2", 2, 2}}},
	{"functional2", "Definitions/helloworld3_top.vnfd.yaml", nil, "simple", []count{{"simple", "VDU1", 1, 3}, {"simple", "VDU2", 2, 2}}},
	{"vnflcm1", "Definitions/helloworld3_top.vnfd.yaml", nil, "simple", []count{{"simple", "VDU1", 1, 3}}},
	{"vnflcm3", "Definitions/helloworld3.vnfd.tosca.yaml", nil, "simple", []count{{"simple", "VDU1", 1, -1}}},
	{"cnf_scale", "Definitions/helloworld3_top.vnfd.yaml", nil, "simple scalingsteps", []count{{"simple", "VDU1", 1, 3}, {"scalingsteps", "VDU1", 1, 5}}},
	{"cnf_resources", "Definitions/helloworld3_top.vnfd.yaml", []string{"cnf_scale"}, "simple scalingsteps", []count{{"simple", "VDU1", 1, 1}, {"simple", "VDU2", 1, 3}}},
	{"csar/vnfpkgm1", "Definitions/helloworld3_top.vnfd.yaml", []string{"csar/vnfpkgm2"}, "simple", nil},
	{"csar/vnfpkgm2", "Definitions/helloworld3_top.vnfd.yaml", nil, "simple", []count{{"simple", "VDU1", 1, 1}, {"simple", "VDU2", 1, 3}}},
	{"csar/vnfpkgm3", "vnfd_helloworld_single.yaml", nil, "simple", []count{{"simple", "VDU1", 1, 1}, {"simple", "VDU2", 1, 3}}},
	{"csar/sample_vnf_package_csar_manifest", "VNF.yaml", nil, "simple", nil},
	{"csar/sample_vnf_package_csar_meta", "Definitions/helloworld3_top.vnfd.yaml", []string{"csar/vnfpkgm2"}, "simple", nil},
	{"csar/sample_vnf_package_csar_in_meta_and_manifest", "Definitions/helloworld3_top.vnfd.yaml", []string{"csar/vnfpkgm2"}, "simple", nil},
}

type count struct {
	flavour, vdu  string
	first, second int // at the default level and at instantiation_level_2
}

func TestSamples(t *testing.T) {
	dir := samplesDir(t)
	if dir == "" {
		return
	}
	for _, s := range samples {
		t.Run(strings.ReplaceAll(s.dir, "/", "_"), func(t *testing.T) {
			d, err := Read(samplePackage(t, dir, s.dir, s.extra...), s.entry)
			if err != nil {
				var ds Diagnostics
				errors.As(err, &ds)
				for _, x := range ds {
					t.Error(x)
				}
				return
			}
			var ids []string
			for _, f := range d.Flavours {
				ids = append(ids, f.ID)
			}
			if got := strings.Join(ids, " "); got != s.flavours {
				t.Errorf("flavours %q, want %q", got, s.flavours)
			}
			for _, c := range s.counts {
				f, _ := d.Flavour(c.flavour)
				checkCount(t, f, c.vdu, "", c.first)
				if c.second >= 0 {
					checkCount(t, f, c.vdu, "instantiation_level_2", c.second)
				}
			}
			roundTrip(t, d)
		})
	}
}

func checkCount(t *testing.T, f *Flavour, vdu, level string, want int) {
	t.Helper()
	if got, err := f.InstanceCount(vdu, level); err != nil || got != want {
		t.Errorf("flavour %s, VDU %s, level %q: %d instances, %v; want %d", f.ID, vdu, level, got, err, want)
	}
}

// roundTrip checks that a descriptor comes back from JSON as it went.
func roundTrip(t testing.TB, d *Descriptor) {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back Descriptor
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, &back); diff != "" {
		t.Errorf("descriptor changed on its way through JSON (-before +after):\n%s", diff)
	}
}

func TestSampleScaleGroups(t *testing.T) {
	dir := samplesDir(t)
	if dir == "" {
		return
	}
	for _, c := range []struct{ dir, entry, flavour, level, want string }{
		{"kubernetes_vnf_package", "Definitions/sample_kubernetes_top.vnfd.yaml", "complex", "instantiation_level_2",
			`{"master_instance":{"vdu":["masterNode"],"num":1,"maxLevel":2,"initialNum":3,"initialLevel":2,"default":5},"worker_instance":{"vdu":["workerNode"],"num":1,"maxLevel":2,"initialNum":2,"initialLevel":2,"default":4}}`},
		{"cnf_scale", "Definitions/helloworld3_top.vnfd.yaml", "scalingsteps", "instantiation_level_2",
			`{"vdu1_aspect":{"vdu":["VDU1"],"num":2,"maxLevel":2,"initialNum":1,"initialLevel":2,"default":5}}`},
		{"vnflcm3", "Definitions/helloworld3.vnfd.tosca.yaml", "simple", "", `{}`},
	} {
		d, err := Read(samplePackage(t, dir, c.dir), c.entry)
		if err != nil {
			t.Errorf("%s: %v", c.dir, err)
			continue
		}
		f, _ := d.Flavour(c.flavour)
		got, err := json.Marshal(f.ScaleGroups(c.level))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.dir, got, c.want)
		}
	}
}

func TestSampleDetails(t *testing.T) {
	dir := samplesDir(t)
	if dir == "" {
		return
	}
	d, err := Read(samplePackage(t, dir, "vnflcm1"), "Definitions/helloworld3_top.vnfd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &d.Flavours[0]
	one := 1
	wantVDU := []VDU{{Name: "VDU1", Type: typeCompute, PropName: "VDU1", Description: "VDU1 compute node", MinInstances: 1, MaxInstances: 3,
		InitialInstances: &one, VCPUs: 1, RAM: 512e6, Disk: 3e9, Storages: []string{"VirtualStorage"}}}
	img := SoftwareImage{ID: "VirtualStorage", Name: "VirtualStorage", Version: "0.5.2",
		Checksum:        Checksum{"sha-512", f.SoftwareImages[0].Checksum.Hash},
		ContainerFormat: "bare", DiskFormat: "qcow2", MinDisk: 2e9, MinRAM: 256e6, Size: 1e9,
		File: "Files/images/cirros-0.5.2-x86_64-disk.img"}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"VDUs", f.VDUs, wantVDU},
		{"storages", f.Storages, []VirtualStorage{{Name: "VirtualStorage", Type: typeBlockStorage, Size: 3e9, SoftwareImage: &img}}},
		{"images", f.SoftwareImages, []SoftwareImage{img}},
		{"CPs", f.CPs, []CP{{Name: "CP1", VDU: "VDU1", VirtualLink: "internalVL1", Order: 2, LayerProtocols: []string{"ipv4"}}}},
		{"links", f.VirtualLinks, []VirtualLink{{Name: "internalVL1", Description: "Internal Virtual link in the VNF", LayerProtocols: []string{"ipv4"},
			CIDR: "33.33.0.0/24", IPVersion: "ipv4", MaxLeafBitrate: 1 << 20, MaxRootBitrate: 1 << 20, MinLeafBitrate: 1 << 20, MinRootBitrate: 1 << 20}}},
		{"external CPs", f.ExternalCPs, []ExternalCP{{"virtual_link_external", "CP1", "virtual_link"}}},
		{"hooks", f.Hooks, map[string]string(nil)},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}
