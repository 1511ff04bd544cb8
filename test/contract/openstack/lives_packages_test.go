package openstack_test

import (
	"bytes"
	"crypto/rand"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// vnf is a package with what an instance of it is to be.
type vnf struct {
	zip    []byte
	vnfdID string
	shape  shape
}

// descriptorIDs are the VNFD ids of the packages that the project brings.
var descriptorIDs = map[string]string{
	"kubernetes-cluster": "0b2e6f0a-6d3c-4c55-9d2f-6a6f1c9e7a01", "multi-port": "5c1d9a64-0f0b-4b73-8d0e-3f7b2a8e9b02",
}

// ours makes a package of the project's own under a fresh VNFD id, with files in place of its own.
func ours(t *testing.T, name string, overlay map[string][]byte) ([]byte, string) {
	t.Helper()
	files, err := deploy.Files(name)
	must(t, err)
	maps.Copy(files, overlay)
	id := uuid.NewString()
	for path, data := range files {
		if strings.HasPrefix(path, "Definitions/") {
			files[path] = bytes.ReplaceAll(data, []byte(descriptorIDs[name]), []byte(id))
		}
	}
	csartest.FixHashes(files)
	return csartest.Zip(t, files), id
}

// clusterShape is a flavour of a cluster package, the project's or the one from outside.
func clusterShape(t *testing.T, c *target, flavour string, masters int) shape {
	t.Helper()
	request := maps.Clone(deploy.InstantiateRequest("kubernetes-cluster", flavour))
	network := c.networkID(t, net0)
	request["extVirtualLinks"] = []any{
		extLink("net0_master", network, "masterNode_CP1"), extLink("net0_worker", network, "workerNode_CP2"),
	}
	return shape{
		flavour: flavour, request: request,
		vnfcs:       map[string]int{"masterNode": masters, "workerNode": 2},
		cps:         map[string][]string{"masterNode": {"masterNode_CP1"}, "workerNode": {"workerNode_CP2"}},
		external:    map[string]string{"net0_master": network, "net0_worker": network},
		externalCPs: map[string][]string{"net0_master": {"masterNode_CP1"}, "net0_worker": {"workerNode_CP2"}},
		levels:      map[string]int{"master_instance": 0, "worker_instance": 0},
	}
}

// ourCluster is the project's cluster package.
func ourCluster(t *testing.T, c *target, flavour string, masters int) vnf {
	t.Helper()
	zip, id := ours(t, "kubernetes-cluster", nil)
	return vnf{zip, id, clusterShape(t, c, flavour, masters)}
}

// outsideCluster is the cluster package from outside, nil when it is not there.
func outsideCluster(t *testing.T, c *target, flavour string, masters int) *vnf {
	t.Helper()
	p := harness.SamplePackage(t, "kubernetes_vnf_package")
	if p == nil {
		return nil
	}
	s := clusterShape(t, c, flavour, masters)
	return &vnf{p.Zip, p.VnfdID, s}
}

// ourGateway is the project's package of many ports.
func ourGateway(t *testing.T, c *target) vnf {
	t.Helper()
	zip, id := ours(t, "multi-port", nil)
	request := maps.Clone(deploy.InstantiateRequest("multi-port", "default"))
	access, management := c.networkID(t, net0), c.networkID(t, "net_mgmt")
	request["extVirtualLinks"] = []any{
		extLink("access", access, "gateway_CP1", "worker_CP1"), extLink("management", management, "gateway_CP2", "worker_CP2"),
	}
	return vnf{zip, id, shape{
		flavour: "default", request: request,
		vnfcs:       map[string]int{"gateway": 1, "worker": 2},
		cps:         map[string][]string{"gateway": numbered("gateway_CP%d", 5), "worker": numbered("worker_CP%d", 5)},
		volumes:     map[string][]string{"gateway": {"gateway_disk"}},
		external:    map[string]string{"access": access, "management": management},
		externalCPs: map[string][]string{"access": {"gateway_CP1", "worker_CP1"}, "management": {"gateway_CP2", "worker_CP2"}},
		links:       []string{"data_net", "sync_net", "control_net"},
		levels:      map[string]int{"gateway_group": 0},
		images:      map[string]string{"gateway": cirros, "worker": cirros},
		spread:      []string{"gateway", "worker"},
	}}
}

// scripted is our gateway without scaling policies, whose script itself says what scaling and healing bring.
func scripted(t *testing.T, c *target) vnf {
	t.Helper()
	p := ourGateway(t, c)
	files, err := deploy.Files("multi-port")
	must(t, err)
	const top, script = "BaseHOT/default/multi_port_top.yaml", "UserData/multi_port_user_data.py"
	before, rest, found := strings.Cut(string(files[top]), "  gateway_group_scale_out:\n")
	_, after, there := strings.Cut(rest, "  worker_group:\n")
	size := "      desired_capacity: 1\n"
	if !found || !there || strings.Count(before, size) != 1 {
		t.Fatalf("%s is not as it was", top)
	}
	before = strings.Replace(before, size, "      desired_capacity: { get_param: [ nfv, desired_capacity, gateway_group ] }\n", 1)
	p.zip, p.vnfdID = ours(t, "multi-port", map[string][]byte{
		top: []byte(before + "  worker_group:\n" + after),
		script: []byte(strings.Replace(string(files[script]), "        return parameters\n", `        parameters["nfv"]["desired_capacity"] = {"gateway_group": 1}
        return parameters

    @staticmethod
    def scale(base_hot_dict, vnfd_dict, request, instance, info, parameters, resource_number):
        parameters["nfv"]["desired_capacity"]["gateway_group"] = resource_number
        parameters["nfv"]["told"] = "to scale"
        return parameters

    @staticmethod
    def heal(base_hot_dict, vnfd_dict, request, instance, info, parameters, vnfcs):
        parameters["nfv"]["told"] = "to heal %d" % len(vnfcs)
        return parameters
`, 1)),
	})
	return p
}

// outsideFunctional is a package from outside with two groups, five CPs for each VDU and a volume; nil when it is not there.
func outsideFunctional(t *testing.T, c *target, name string) *vnf {
	t.Helper()
	p := harness.SamplePackage(t, name)
	if p == nil {
		return nil
	}
	first, second := c.networkID(t, net0), c.networkID(t, net1)
	return &vnf{p.Zip, p.VnfdID, shape{
		flavour: "simple",
		request: doc{
			"flavourId": "simple",
			"extVirtualLinks": []any{
				extLink("external1", first, "VDU1_CP1", "VDU2_CP1"), extLink("external2", second, "VDU1_CP2", "VDU2_CP2"),
			},
			"additionalParams": doc{
				"lcm-operation-user-data": "./UserData/lcm_user_data.py", "lcm-operation-user-data-class": "SampleUserData",
			},
		},
		vnfcs:       map[string]int{"VDU1": 1, "VDU2": 2},
		cps:         map[string][]string{"VDU1": numbered("VDU1_CP%d", 5), "VDU2": numbered("VDU2_CP%d", 5)},
		volumes:     map[string][]string{"VDU1": {"VirtualStorage"}},
		external:    map[string]string{"external1": first, "external2": second},
		externalCPs: map[string][]string{"external1": {"VDU1_CP1", "VDU2_CP1"}, "external2": {"VDU1_CP2", "VDU2_CP2"}},
		links:       numbered("internalVL%d", 3),
		levels:      map[string]int{"worker_instance": 0},
		images:      map[string]string{"VDU1": cirros, "VDU2": cirros},
	}}
}

// outsideScaling is a package from outside without a template that scales, nil when it is not there.
func outsideScaling(t *testing.T) *vnf {
	t.Helper()
	p := harness.SamplePackage(t, "vnflcm1")
	if p == nil {
		return nil
	}
	return &vnf{p.Zip, p.VnfdID, shape{
		flavour: "simple", request: doc{"flavourId": "simple"},
		vnfcs: map[string]int{"VDU1": 1}, cps: map[string][]string{"VDU1": {"CP1"}},
		volumes: map[string][]string{"VDU1": {"VirtualStorage"}}, images: map[string]string{"VDU1": "VirtualStorage"},
		links: []string{"internalVL1"}, levels: map[string]int{"worker_instance": 0},
	}}
}

// outsideExternal is a package from outside without a template, on external networks; nil when it is not there.
func outsideExternal(t *testing.T, c *target) *vnf {
	t.Helper()
	p := harness.SamplePackage(t, "vnflcm3")
	if p == nil {
		return nil
	}
	first, second := c.networkID(t, net0), c.networkID(t, net1)
	return &vnf{p.Zip, p.VnfdID, shape{
		flavour: "simple",
		request: doc{
			"flavourId": "simple", "extVirtualLinks": []any{extLink("external1", first, "CP1"), extLink("external2", second, "CP2")},
		},
		vnfcs: map[string]int{"VDU1": 1}, cps: map[string][]string{"VDU1": {"CP1", "CP2", "CP3"}}, links: []string{"VL3"},
		external:    map[string]string{"external1": first, "external2": second},
		externalCPs: map[string][]string{"external1": {"CP1"}, "external2": {"CP2"}},
		images:      map[string]string{"VDU1": "Software of VDU1"},
	}}
}

// networks are the external links of a shape, each to be moved to another network than it leads to.
func (v *life) elsewhere(t *testing.T) map[string]string {
	t.Helper()
	a, b := v.networkID(t, net0), v.networkID(t, net1)
	out := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(v.shape.external)) {
		out[id] = a
		if v.shape.external[id] == a {
			out[id] = b
		}
	}
	return out
}

// edge is a package of the project's own without a template: with all that is translated, on links from outside.
func edge(t *testing.T, c *target) vnf {
	t.Helper()
	files := csartest.Files(t, "testdata/packages/edge")
	const vnfd, old = "Definitions/edge.yaml", "7d8e2c30-55a4-4f0e-8e7c-2b6f1d9a0c11"
	id := uuid.NewString()
	files[vnfd] = bytes.ReplaceAll(files[vnfd], []byte(old), []byte(id))
	csartest.FixHashes(files)
	out, management, plane := c.networkID(t, net0), c.networkID(t, net1), c.bringNetwork(t, "10.81.0.0/24")
	address, subnet := c.freeAddress(t, out)
	gate := addressed(extLink("outside", out, "gate_out"), address, subnet)
	return vnf{csartest.Zip(t, files), id, shape{
		flavour: "default",
		request: doc{
			"flavourId":              "default",
			"extVirtualLinks":        []any{gate, extLink("management", management, "worker_mgmt")},
			"extManagedVirtualLinks": []any{doc{"id": "plane", "virtualLinkDescId": "backplane", "resourceId": plane}},
		},
		vnfcs: map[string]int{"gate": 1, "side": 1, "worker": 1},
		cps: map[string][]string{
			"gate": {"gate_out", "gate_plane"}, "side": {"side_in"}, "worker": {"worker_in", "worker_mgmt", "worker_plane"},
			"spare": {"spare_in"},
		},
		volumes:     map[string][]string{"worker": {"root", "scratch"}},
		external:    map[string]string{"outside": out, "management": management},
		externalCPs: map[string][]string{"outside": {"gate_out"}, "management": {"worker_mgmt"}},
		managed:     map[string]string{"backplane": plane},
		links:       []string{"inside", "backplane"},
		levels:      map[string]int{"workers": 0, "spares": 0},
		images:      map[string]string{"gate": "edge", "side": "edge", "worker": "edge", "spare": "edge"},
		addresses:   map[string]string{"gate_out": address},
		spread:      []string{"worker"}, together: []string{"gate", "side"},
	}}
}

// big has instances of the package edge begin at their second level.
func (p *vnf) big() {
	p.shape.request["instantiationLevelId"] = "big"
	p.shape.vnfcs["worker"], p.shape.vnfcs["spare"] = 3, 1
	p.shape.levels = map[string]int{"workers": 2, "spares": 1}
}

// bringNetwork has the project have a network, until the test ends.
func (c *target) bringNetwork(t *testing.T, cidr string) string {
	t.Helper()
	made := c.neutron.do(t, http.MethodPost, "networks", doc{"network": doc{"name": "brought"}}).is(t, http.StatusCreated)
	id := text(made.doc, "network", "id")
	t.Cleanup(func() { c.neutron.do(t, http.MethodDelete, "networks/"+id, nil).is(t, http.StatusNoContent) })
	subnet := doc{"subnet": doc{"network_id": id, "ip_version": 4, "cidr": cidr}}
	c.neutron.do(t, http.MethodPost, "subnets", subnet).is(t, http.StatusCreated)
	return id
}

// freeAddress is an address of a network that nobody else is likely to take, and its subnet's id.
func (c *target) freeAddress(t *testing.T, network string) (address, subnet string) {
	t.Helper()
	s := one(t, c.neutron.get(t, "subnets?network_id="+network), "subnets")
	prefix, err := netip.ParsePrefix(text(s, "cidr"))
	must(t, err)
	raw := prefix.Addr().As4()
	_, err = rand.Read(raw[prefix.Bits()/8:])
	must(t, err)
	raw[3] = max(min(raw[3], 250), 10)
	return netip.AddrFrom4(raw).String(), text(s, "id")
}

// addressed is an external link whose only CP has an address.
func addressed(link doc, address, subnet string) doc {
	link["extCps"].([]any)[0].(doc)["cpConfig"] = []any{doc{"cpProtocolData": []any{doc{ //nolint:forcetypeassert // it is so
		"layerProtocol":  "IP_OVER_ETHERNET",
		"ipOverEthernet": doc{"ipAddresses": []any{doc{"type": "IPV4", "fixedAddresses": []any{address}, "subnetId": subnet}}},
	}}}}
	return link
}
