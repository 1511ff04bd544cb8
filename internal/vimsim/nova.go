package vimsim

import (
	"crypto/md5" //nolint:gosec // the fingerprint format of key pairs
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

type host struct{ name, zone string }

// nova holds the compute service's objects.
type nova struct {
	hosts   []host
	load    map[string]int // servers by host
	servers map[string]*server
	next    int64
	flavors *table
	groups  map[string]*group
	keys    *table // by name
}

type group struct {
	seq                       int64
	id, name, policy, project string
	members                   []string
}

// server is a simulated VM; all fields are guarded by Cloud.mu.
type server struct {
	seq                  int64
	id, name, project    string
	user                 string
	status, task         string
	power                int64
	flavor               doc
	image                string
	zone, host           string
	group                string
	keyName              string
	created, updated     string
	fault                doc
	ports                []string
	ownPorts             map[string]bool // made by Nova, deleted with the server
	volumes              []string
	secGroups            []any
	metadata             doc
	userData             string
	configDrive          bool
	deleteOnTermination  map[string]bool
	instanceName, reserv string
}

func newNova(hosts []string) nova {
	n := nova{load: map[string]int{}, servers: map[string]*server{}, flavors: newTable(), groups: map[string]*group{}, keys: newTable()}
	for _, h := range hosts {
		name, zone, _ := strings.Cut(h, "@")
		if zone == "" {
			zone = "nova"
		}
		n.hosts = append(n.hosts, host{name, zone})
	}
	return n
}

func flavorDoc(id, name string, vcpus, ram, disk int64, specs doc) doc {
	if specs == nil {
		specs = doc{}
	}
	return doc{
		"id": id, "name": name, "vcpus": vcpus, "ram": ram, "disk": disk, "swap": "", "rxtx_factor": 1.0, "OS-FLV-EXT-DATA:ephemeral": int64(0),
		"OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true, "description": nil, "extra_specs": specs, "links": []any{},
	}
}

const novaTime = "2006-01-02T15:04:05Z"

func (c *Cloud) findFlavor(nameOrID string) (doc, bool) {
	l := c.nova.flavors.find(nameOrID, nil)
	if len(l) == 0 {
		return nil, false
	}
	return l[0], true
}

// serverReq is what creating a server needs, ids resolved.
type serverReq struct {
	name, project, user string
	flavor              doc
	image               string
	zone, group         string
	keyName, userData   string
	networks            []doc // {port} or {uuid, fixed_ip}
	volumes             []doc // {volume_id, delete_on_termination, device_name}
	secGroups           []any
	metadata            doc
	configDrive         bool
}

// newServer checks a request as Nova's API does and makes a server in BUILD.
// A server that no host takes goes to ERROR at once. Callers hold mu.
func (c *Cloud) newServer(q serverReq) (*server, error) {
	if lim := c.quota(q.project).Instances; lim > 0 {
		used := 0
		for _, s := range c.nova.servers {
			if s.project == q.project {
				used++
			}
		}
		if used >= lim {
			return nil, fail(403, "Forbidden", fmt.Sprintf("Quota exceeded for instances: Requested 1, but already used %d of %d instances", used, lim))
		}
	}
	if q.image == "" && len(q.volumes) == 0 {
		return nil, fail(400, "BadRequest", "Invalid imageRef provided.")
	}
	if q.zone != "" && !slices.ContainsFunc(c.nova.hosts, func(h host) bool { return h.zone == zoneOf(q.zone) }) {
		return nil, fail(400, "BadRequest", "The requested availability zone is not available")
	}
	if q.group != "" && c.nova.groups[q.group] == nil {
		return nil, fail(400, "BadRequest", "Instance group "+q.group+" could not be found.")
	}
	if q.keyName != "" {
		if _, found := c.nova.keys.get(q.keyName); !found {
			return nil, fail(400, "BadRequest", "Invalid key_name provided.")
		}
	}
	for _, n := range q.networks {
		if pid := str(n, "port"); pid != "" {
			p, found := c.net.ports.get(pid)
			if !found {
				return nil, fail(400, "BadRequest", "Port "+pid+" could not be found.")
			}
			if str(p, "device_id") != "" {
				return nil, fail(409, "Conflict", "Port "+pid+" is still in use.")
			}
		}
	}
	now := c.clk.Now().UTC().Format(novaTime)
	c.nova.next++
	s := &server{
		seq: c.nova.next, id: newID(), name: q.name, project: q.project, user: q.user, status: "BUILD", task: "spawning", flavor: q.flavor,
		image: q.image, zone: zoneOf(q.zone), group: q.group, keyName: q.keyName, created: now, updated: now, ownPorts: map[string]bool{},
		secGroups: q.secGroups, metadata: q.metadata, userData: q.userData, configDrive: q.configDrive, deleteOnTermination: map[string]bool{},
		instanceName: fmt.Sprintf("instance-%08x", c.nova.next), reserv: "r-" + shortID()[:8],
	}
	if s.metadata == nil {
		s.metadata = doc{}
	}
	h, placed := c.schedule(s)
	if !placed {
		// Nova accepts the request and the instance goes to ERROR.
		c.nova.servers[s.id] = s
		c.breakServer(s, 500, "No valid host was found. There are not enough hosts available.")
		return s, nil
	}
	s.host, s.zone = h.name, h.zone
	for _, v := range q.volumes {
		vid := str(v, "volume_id")
		if err := c.attach(vid, s.id, s.host, device(str(v, "device_name"), len(s.volumes))); err != nil {
			for _, done := range s.volumes {
				c.detach(done, s.id)
			}
			if refused, is := err.(*svcErr); is && refused.status == 400 { //nolint:errorlint // attach returns it unwrapped
				err = fail(400, "BadRequest", "Invalid volume: Invalid input received: "+refused.msg+" (HTTP 400) (Request-ID: req-"+newID()+")")
			}
			return nil, err
		}
		s.volumes = append(s.volumes, vid)
		s.deleteOnTermination[vid] = v["delete_on_termination"] == true
	}
	for _, n := range q.networks {
		if err := c.plug(s, n); err != nil {
			c.dropServer(s)
			return nil, err
		}
	}
	c.nova.servers[s.id] = s
	c.nova.load[s.host]++
	if g := c.nova.groups[s.group]; g != nil {
		g.members = append(g.members, s.id)
	}
	return s, nil
}

func zoneOf(az string) string { z, _, _ := strings.Cut(az, ":"); return z }

func device(name string, n int) string {
	if name = strings.TrimPrefix(name, "/dev/"); name != "" {
		return name
	}
	return "vd" + string(rune('a'+n%26))
}

// plug connects a server to a port, or to a network by a port of its own.
func (c *Cloud) plug(s *server, n doc) error {
	pid := str(n, "port")
	if pid == "" {
		req := doc{"network_id": n["uuid"]}
		if ip := str(n, "fixed_ip"); ip != "" {
			req["fixed_ips"] = []any{doc{"ip_address": ip}}
		}
		p, err := c.newPort(s.project, req)
		if err != nil {
			return err
		}
		pid = str(p, "id")
		s.ownPorts[pid] = true
	}
	c.bindPort(pid, s.id, "compute:"+s.zone, s.host)
	s.ports = append(s.ports, pid)
	return nil
}

// unplug takes one port away from a server.
func (c *Cloud) unplug(s *server, pid string) {
	s.ports = slices.DeleteFunc(s.ports, func(x string) bool { return x == pid })
	p, found := c.net.ports.get(pid)
	if !found || str(p, "device_id") != s.id {
		return
	}
	if s.ownPorts[pid] {
		delete(s.ownPorts, pid)
		_ = c.deletePort(pid) // it exists: looked up above
		return
	}
	c.bindPort(pid, "", "", "")
}

// schedule picks the least loaded host that the zone and the group's policy allow.
func (c *Cloud) schedule(s *server) (host, bool) {
	onHost := map[string]int{}
	g := c.nova.groups[s.group]
	if g != nil {
		for _, m := range g.members {
			if o := c.nova.servers[m]; o != nil && o.host != "" {
				onHost[o.host]++
			}
		}
	}
	var best host
	found := false
	cost := func(h host) int {
		n := c.nova.load[h.name]
		if g != nil && g.policy == "soft-anti-affinity" {
			n += 1000 * onHost[h.name]
		}
		if g != nil && g.policy == "soft-affinity" {
			n -= 1000 * onHost[h.name]
		}
		return n
	}
	for _, h := range c.nova.hosts {
		if s.zone != "" && h.zone != s.zone {
			continue
		}
		if g != nil && (g.policy == "anti-affinity" && onHost[h.name] > 0 || g.policy == "affinity" && len(onHost) > 0 && onHost[h.name] == 0) {
			continue
		}
		if !found || cost(h) < cost(best) {
			best, found = h, true
		}
	}
	return best, found
}

func (c *Cloud) breakServer(s *server, code int64, msg string) {
	now := c.clk.Now().UTC().Format(novaTime)
	s.status, s.task, s.updated = "ERROR", "", now
	s.fault = doc{"code": code, "message": msg, "created": now}
}

func (c *Cloud) activate(s *server) {
	if s.status == "BUILD" {
		s.status, s.task, s.power, s.updated = "ACTIVE", "", 1, c.clk.Now().UTC().Format(novaTime)
	}
}

// dropServer removes a server and frees all it held.
func (c *Cloud) dropServer(s *server) {
	for _, p := range slices.Clone(s.ports) {
		c.unplug(s, p)
	}
	for _, v := range s.volumes {
		c.detach(v, s.id)
		if s.deleteOnTermination[v] {
			_ = c.deleteVolume(v) // multiattach volumes may stay in use elsewhere
		}
	}
	if _, had := c.nova.servers[s.id]; had && s.host != "" {
		c.nova.load[s.host]--
	}
	delete(c.nova.servers, s.id)
	if g := c.nova.groups[s.group]; g != nil {
		g.members = slices.DeleteFunc(g.members, func(m string) bool { return m == s.id })
	}
}

func (c *Cloud) newGroup(project, name, policy string) *group {
	c.nova.next++
	g := &group{seq: c.nova.next, id: newID(), name: name, policy: policy, project: project}
	c.nova.groups[g.id] = g
	return g
}

func (g *group) doc() doc {
	members := g.members
	if members == nil {
		members = []string{}
	}
	return doc{
		"id": g.id, "name": g.name, "policy": g.policy, "policies": []string{g.policy}, "rules": doc{}, "members": slices.Clone(members),
		"metadata": doc{}, "project_id": g.project, "user_id": "",
	}
}

// serverDoc renders a server as GET /servers/{id} shows it.
func (c *Cloud) serverDoc(s *server) doc {
	addrs := doc{}
	sgs := s.secGroups
	for _, pid := range s.ports {
		p, found := c.net.ports.get(pid)
		if !found {
			continue
		}
		n, _ := c.net.networks.get(str(p, "network_id"))
		name := str(n, "name")
		l, _ := addrs[name].([]any)
		ips, _ := p["fixed_ips"].([]any)
		for _, f := range ips {
			ip := str(f.(map[string]any), "ip_address")
			ver := int64(4)
			if strings.Contains(ip, ":") {
				ver = 6
			}
			l = append(l, doc{"addr": ip, "version": ver, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": p["mac_address"]})
		}
		addrs[name] = l
	}
	image := any("")
	if s.image != "" {
		image = doc{"id": s.image, "links": []any{}}
	}
	vols := []any{}
	for _, v := range s.volumes {
		vols = append(vols, doc{"id": v, "delete_on_termination": s.deleteOnTermination[v]})
	}
	groups := []any{}
	if s.group != "" {
		groups = append(groups, s.group)
	}
	if sgs == nil {
		sgs = []any{doc{"name": "default"}}
	}
	d := doc{
		"id": s.id, "name": s.name, "status": s.status, "tenant_id": s.project, "user_id": s.user, "metadata": s.metadata, "hostId": hostID(s),
		"image": image, "flavor": doc{"id": s.flavor["id"], "links": []any{}}, "created": s.created, "updated": s.updated, "addresses": addrs,
		"accessIPv4": "", "accessIPv6": "", "key_name": nilIfEmpty(s.keyName), "config_drive": map[bool]string{true: "True"}[s.configDrive],
		"OS-EXT-AZ:availability_zone": s.zone, "OS-EXT-SRV-ATTR:host": nilIfEmpty(s.host), "OS-EXT-SRV-ATTR:hypervisor_hostname": nilIfEmpty(s.host),
		"OS-EXT-SRV-ATTR:instance_name": s.instanceName, "OS-EXT-SRV-ATTR:hostname": strings.ToLower(s.name), "OS-EXT-SRV-ATTR:reservation_id": s.reserv,
		"OS-EXT-STS:vm_state": s.vmState(), "OS-EXT-STS:task_state": nilIfEmpty(s.task), "OS-EXT-STS:power_state": s.power, "OS-DCF:diskConfig": "MANUAL",
		"OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil, "os-extended-volumes:volumes_attached": vols, "security_groups": sgs,
		"server_groups": groups, "locked": false, "description": nil, "tags": []any{}, "links": []any{},
	}
	if s.status == "ACTIVE" {
		d["progress"] = int64(100)
		d["OS-SRV-USG:launched_at"] = strings.TrimSuffix(s.updated, "Z") + ".000000"
	}
	if s.fault != nil {
		d["fault"] = s.fault
	}
	return d
}

// vmState is the server's state as Nova calls it within.
func (s *server) vmState() string {
	switch s.status {
	case "ACTIVE", "REBOOT", "HARD_REBOOT":
		return "active"
	case "ERROR":
		return "error"
	case "SHUTOFF":
		return "stopped"
	}
	return "building"
}

func hostID(s *server) string {
	if s.host == "" {
		return ""
	}
	return fmt.Sprintf("%x", md5.Sum([]byte(s.project+s.host))) //nolint:gosec // an opaque id, no protection
}

func nilIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (c *Cloud) newKey(name, public string) (doc, error) {
	if _, dup := c.nova.keys.get(name); dup {
		return nil, fail(409, "Conflict", "Key pair '"+name+"' already exists.")
	}
	d := doc{"name": name, "public_key": public, "type": "ssh", "fingerprint": fmt.Sprintf("%x", md5.Sum([]byte(public)))} //nolint:gosec // fingerprint
	c.nova.keys.put(name, d)
	return d, nil
}

func (c *Cloud) newFlavor(q doc) (doc, error) {
	name := str(q, "name")
	if l := c.nova.flavors.list(func(d doc) bool { return str(d, "name") == name }); len(l) > 0 {
		return nil, fail(409, "Conflict", "Flavor with name "+name+" already exists.")
	}
	id := hot.String(q["id"])
	if id == "" || id == "auto" {
		id = newID()
	}
	if _, dup := c.nova.flavors.get(id); dup {
		return nil, fail(409, "Conflict", "Flavor with ID "+id+" already exists.")
	}
	vcpus, ok1 := q["vcpus"].(int64)
	ram, ok2 := q["ram"].(int64)
	disk, _ := q["disk"].(int64)
	if !ok1 || !ok2 || vcpus < 1 || ram < 1 {
		return nil, fail(400, "BadRequest", "Invalid input for field/attribute flavor.")
	}
	specs, _ := q["extra_specs"].(map[string]any)
	d := flavorDoc(id, name, vcpus, ram, disk, specs)
	c.nova.flavors.put(id, d)
	return d, nil
}
