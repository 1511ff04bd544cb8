package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

func readEntry(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	return string(raw), r.Close()
}

// ourCluster is our own package of a Kubernetes cluster.
func ourCluster(t *testing.T) candidate {
	t.Helper()
	raw, err := deploy.Package("kubernetes-cluster")
	must(t, err)
	return candidate{
		zip: raw, product: "Kubernetes cluster", provider: "vnfm samples", software: "1.0",
		artifacts: []string{"Scripts/install_k8s_cluster.sh", "Scripts/kubernetes_mgmt.py"},
		images: []string{
			"masterNode vnfm-sample-complex-masterNode", "masterNode vnfm-sample-simple-masterNode",
			"workerNode vnfm-sample-complex-workerNode", "workerNode vnfm-sample-simple-workerNode",
		},
	}
}

// clusterShape is what a flavour of a cluster package consists of: ours, and the one from outside.
func clusterShape(t *testing.T, flavour, network string, masters int) shape {
	t.Helper()
	request := maps.Clone(deploy.InstantiateRequest("kubernetes-cluster", flavour))
	params := request["additionalParams"].(map[string]any)["k8s_cluster_installation_param"].(map[string]any) //nolint:forcetypeassert // it is so
	for _, group := range []string{"master_node", "worker_node"} {
		params[group].(map[string]any)["password"] = vmSecret //nolint:forcetypeassert // it is so
	}
	params["proxy"] = map[string]any{
		"http_proxy": "http://user1:" + proxySecret + "@host1:8080", "https_proxy": "https://user2:" + proxySecret + "@host2:8443",
		"no_proxy": "192.168.246.0/24,10.0.0.1", "k8s_node_cidr": "10.10.0.0/24",
	}
	for _, link := range request["extVirtualLinks"].([]any) { //nolint:forcetypeassert // it is so
		link.(map[string]any)["resourceId"] = network //nolint:forcetypeassert // it is so
	}
	return shape{
		flavour: flavour, request: request,
		vnfcs:    map[string]int{"masterNode": masters, "workerNode": 2},
		cps:      map[string][]string{"masterNode": {"masterNode_CP1"}, "workerNode": {"workerNode_CP2"}},
		external: map[string][]string{"net0_master": {"masterNode_CP1"}, "net0_worker": {"workerNode_CP2"}},
		networks: map[string]string{"net0_master": network, "net0_worker": network},
		aspects:  []string{"master_instance", "worker_instance"},
	}
}

func ourMultiPort(t *testing.T) (candidate, shape) {
	t.Helper()
	raw, err := deploy.Package("multi-port")
	must(t, err)
	c := candidate{
		zip: raw, product: "Gateway with many ports", provider: "vnfm samples", software: "2.0",
		artifacts: []string{"UserData/multi_port_user_data.py"},
		images:    []string{"gateway_disk cirros-0.5.2-x86_64-disk", "worker cirros-0.5.2-x86_64-disk"},
	}
	return c, shape{
		flavour: "default", request: deploy.InstantiateRequest("multi-port", "default"),
		vnfcs: map[string]int{"gateway": 1, "worker": 2},
		cps: map[string][]string{
			"gateway": {"gateway_CP1", "gateway_CP2", "gateway_CP3", "gateway_CP4", "gateway_CP5"},
			"worker":  {"worker_CP1", "worker_CP2", "worker_CP3", "worker_CP4", "worker_CP5"},
		},
		external: map[string][]string{"access": {"gateway_CP1", "worker_CP1"}, "management": {"gateway_CP2", "worker_CP2"}},
		networks: map[string]string{"access": "net0", "management": "net_mgmt"},
		aspects:  []string{"gateway_group"},
		volumes:  map[string]int{"gateway": 1},
		links:    []string{"data_net", "sync_net", "control_net"},
	}
}

// outsideCluster completes the cluster package from outside; false without one.
func outsideCluster(t *testing.T) (candidate, bool) {
	t.Helper()
	s := harness.SamplePackage(t, "kubernetes_vnf_package")
	if s == nil {
		return candidate{}, false
	}
	return candidate{
		zip: s.Zip, vnfdID: s.VnfdID, product: "Sample VNF", provider: "Company", software: "1.0",
		artifacts: []string{"Scripts/install_helm.sh", "Scripts/install_k8s_cluster.sh", "Scripts/kubernetes_mgmt.py"},
		images: []string{
			"masterNode Image for masterNode HA kubernetes", "masterNode Image for masterNode kubernetes",
			"workerNode Image for workerNode HA kubernetes", "workerNode Image for workerNode kubernetes",
		},
	}, true
}

// outsideFunctional completes the functional test's package from outside; false without one.
func outsideFunctional(t *testing.T, network string) (candidate, shape, bool) {
	t.Helper()
	s := harness.SamplePackage(t, "functional")
	if s == nil {
		return candidate{}, shape{}, false
	}
	c := candidate{
		zip: s.Zip, vnfdID: s.VnfdID, product: "Sample VNF", provider: "Company", software: "1.0", artifacts: []string{},
		images: []string{"VDU2 cirros-0.5.2-x86_64-disk", "VirtualStorage cirros-0.5.2-x86_64-disk"},
	}
	var links []any
	for _, n := range []string{"1", "2"} {
		var cps []any
		for _, vdu := range []string{"VDU1", "VDU2"} {
			cps = append(cps, map[string]any{
				"cpdId":    vdu + "_CP" + n,
				"cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}}}},
			})
		}
		links = append(links, map[string]any{"id": "external" + n, "resourceId": network, "extCps": cps})
	}
	return c, shape{
		flavour: "simple",
		request: map[string]any{
			"flavourId": "simple", "extVirtualLinks": links,
			"additionalParams": map[string]any{"lcm-operation-user-data": "./UserData/lcm_user_data.py", "lcm-operation-user-data-class": "SampleUserData"},
		},
		vnfcs: map[string]int{"VDU1": 1, "VDU2": 2},
		cps: map[string][]string{
			"VDU1": {"VDU1_CP1", "VDU1_CP2", "VDU1_CP3", "VDU1_CP4", "VDU1_CP5"}, "VDU2": {"VDU2_CP1", "VDU2_CP2", "VDU2_CP3", "VDU2_CP4", "VDU2_CP5"},
		},
		external: map[string][]string{"external1": {"VDU1_CP1", "VDU2_CP1"}, "external2": {"VDU1_CP2", "VDU2_CP2"}},
		networks: map[string]string{"external1": network, "external2": network},
		aspects:  []string{"worker_instance"},
		volumes:  map[string]int{"VDU1": 1},
		links:    []string{"internalVL1", "internalVL2", "internalVL3"},
	}, true
}

// onboardRenamed onboards our package with many ports under another descriptor id, so that it can be there beside the
// original, and returns that id.
func (l *lab) onboardRenamed(ctx context.Context, t *testing.T, pkg string) string {
	t.Helper()
	raw, vnfd := variant(t, "multi-port", nil)
	must(t, l.api.Upload(ctx, pkg, raw))
	_, err := l.api.AwaitOnboarded(ctx, pkg)
	must(t, err)
	return vnfd
}

// variant builds a package of ours under a fresh descriptor id, with files put in place of its own (nil removes one).
func variant(t *testing.T, name string, overlay map[string][]byte) (raw []byte, vnfdID string) {
	t.Helper()
	return variantOf(t, name, uuid.NewString(), overlay)
}

// variantOf is variant with a descriptor id that is given.
func variantOf(t *testing.T, name, vnfdID string, overlays ...map[string][]byte) ([]byte, string) {
	t.Helper()
	files, err := deploy.Files(name)
	must(t, err)
	old := descriptorIDs[name]
	for path, data := range files {
		if strings.HasPrefix(path, "Definitions/") {
			files[path] = bytes.ReplaceAll(data, []byte(old), []byte(vnfdID))
		}
	}
	for _, overlay := range overlays {
		for path, data := range overlay {
			if files[path] = data; data == nil {
				delete(files, path)
			}
		}
	}
	csartest.FixHashes(files)
	return csartest.Zip(t, files), vnfdID
}

var descriptorIDs = map[string]string{
	"kubernetes-cluster": "0b2e6f0a-6d3c-4c55-9d2f-6a6f1c9e7a01",
	"multi-port":         "5c1d9a64-0f0b-4b73-8d0e-3f7b2a8e9b02",
	"web-cnf":            "8e3f1c27-4b58-4d0a-a6c1-2d9b7f5e6c03",
}
