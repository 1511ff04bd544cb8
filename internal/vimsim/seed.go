package vimsim

type flavorSeed struct {
	name             string
	id               string
	vcpus, ram, disk int64
	specs            doc
}

// Extra specs of a flavor by which servers misbehave, as in the test lab with
// real services: seconds until a server is built, and a build that fails.
const (
	specDelay = "vimsim:delay"
	specFail  = "vimsim:fail"
)

var seedFlavors = []flavorSeed{
	{"m1.tiny", "1", 1, 512, 1, nil}, {"m1.small", "2", 1, 2048, 20, nil}, {"m1.medium", "3", 2, 4096, 40, nil},
	{"m1.large", "4", 4, 8192, 80, nil}, {"m1.xlarge", "5", 8, 16384, 160, nil},
	{"lab.slow", "101", 1, 512, 1, doc{specDelay: "20"}}, {"lab.fail", "102", 1, 512, 1, doc{specFail: "1"}},
}

var seedImages = []string{"cirros-0.5.2-x86_64-disk", "ubuntu-20.04"}

type netSeed struct {
	name, cidr string
	external   bool
}

var seedNetworks = []netSeed{
	{"net0", "10.10.0.0/16", false}, {"net1", "10.10.0.0/16", false}, {"net_mgmt", "192.168.120.0/22", false},
	{"public", "172.24.4.0/24", true},
}

// seed makes the predefined flavors, images and networks; callers hold mu.
func (c *Cloud) seed() {
	p := c.keys.projectID(c.cfg.Project)
	for _, f := range seedFlavors {
		c.nova.flavors.put(f.id, flavorDoc(f.id, f.name, f.vcpus, f.ram, f.disk, f.specs))
	}
	for _, n := range seedImages {
		c.makeSeedImage(n, p)
	}
	for _, n := range seedNetworks {
		nd := c.newNetwork(p, doc{"name": n.name, "shared": true, "router:external": n.external})
		if _, err := c.newSubnet(p, doc{"name": "sub_" + n.name, "network_id": nd["id"], "cidr": n.cidr, "ip_version": int64(4), "enable_dhcp": !n.external}); err != nil {
			c.log.Error("seed a subnet", "network", n.name, "err", err)
		}
	}
}
