package openstack

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/userdata"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// TestSamples runs the chain of helper functions on the cluster package that the guides use, where it is at hand.
func TestSamples(t *testing.T) {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
		return
	}
	pkg := fstest.MapFS{}
	for _, from := range []struct{ dir, to string }{
		{dir + "/kubernetes_vnf_package", ""}, {dir + "/common/Definitions", "Definitions/"}, {"testdata/packages/cluster/UserData", "UserData/"},
	} {
		err := filepath.WalkDir(from.dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(p)
			rel, _ := filepath.Rel(from.dir, p)
			pkg[from.to+filepath.ToSlash(rel)] = &fstest.MapFile{Data: raw}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pkg["Files/images/ubuntu-20.04-server-cloudimg-amd64.img"] = &fstest.MapFile{Data: []byte("image")}
	pkg["Scripts/kubernetes_mgmt.py"] = &fstest.MapFile{Data: []byte("driver")}
	d, err := vnfd.Read(pkg, "Definitions/sample_kubernetes_top.vnfd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, ok := d.Flavour("simple")
	if !ok {
		t.Fatal("no flavour simple")
	}
	hot, err := loadBaseHOT(pkg, "simple")
	if err != nil {
		t.Fatal(err)
	}
	var request any
	cp := func(id string) string {
		return `{"id":"` + id + `","resourceId":"net-uuid","extCps":[{"cpdId":"` + id + `","cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET",
			"ipOverEthernet":{"ipAddresses":[{"type":"IPV4","subnetId":"sub1","fixedAddresses":["10.0.0.5"]}]}}]}]}]}`
	}
	if err := json.Unmarshal([]byte(`{"flavourId":"simple","extVirtualLinks":[`+cp("masterNode_CP1")+","+cp("workerNode_CP2")+`]}`), &request); err != nil {
		t.Fatal(err)
	}
	got, err := userdata.New(userdata.Config{}, slog.New(slog.NewTextHandler(t.Output(), nil))).Run(t.Context(), userdata.Request{
		PackageFS: pkg, Path: "./UserData/cluster_user_data.py", Class: "ClusterUserData", BaseHOT: hot.forScript(), VNFD: f.Dict, Instantiate: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	net := `{"network":"net-uuid","fixed_ips":[{"subnet":"sub1","ip_address":"10.0.0.5"}]}`
	want := `{"nfv":{"VDU":{"masterNode":{"flavor":"m1.medium","image":"Image for masterNode kubernetes"},"workerNode":{"flavor":"m1.medium","image":"Image for workerNode kubernetes"}},` +
		`"CP":{"masterNode_CP1":` + net + `,"workerNode_CP2":` + net + `}}}`
	var wanted map[string]any
	if err := json.NewDecoder(strings.NewReader(want)).Decode(&wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}
