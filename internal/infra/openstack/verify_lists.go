package openstack

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
)

func (c *cloud) cinder(ctx context.Context) (*gophercloud.ServiceClient, error) {
	return c.service(ctx, "block-storage", openstack.NewBlockStorageV3)
}

// port is a Neutron port as far as a verification looks at it.
type port struct {
	ID       string `json:"id"`
	Server   string `json:"device_id"` // "" while it is at none
	MAC      string `json:"mac_address"`
	FixedIPs []struct {
		Address string `json:"ip_address"`
	} `json:"fixed_ips"`
}

// addresses are the port's IP addresses.
func (p *port) addresses() []string {
	out := make([]string, len(p.FixedIPs))
	for n, ip := range p.FixedIPs {
		out[n] = ip.Address
	}
	return out
}

// has tells whether the port has an IP address, however it is written.
func (p *port) has(address string) bool {
	want, err := netip.ParseAddr(address)
	return slices.ContainsFunc(p.FixedIPs, func(ip struct {
		Address string `json:"ip_address"`
	}) bool {
		have, bad := netip.ParseAddr(ip.Address)
		return ip.Address == address || err == nil && bad == nil && have == want
	})
}

// volume is a Cinder volume as far as a verification looks at it.
type volume struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Attachments []struct {
		Server string `json:"server_id"`
	} `json:"attachments"`
}

// servers are those that the volume is attached to.
func (v *volume) servers() []string {
	out := make([]string, len(v.Attachments))
	for n, a := range v.Attachments {
		out[n] = a.Server
	}
	return out
}

// network is a Neutron network.
type network struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

const (
	// pageSize is how many servers or volumes are listed at a time.
	pageSize = 1000
	// fewLeft is of how many servers or volumes each is asked for by its id, rather than to read through the project's.
	fewLeft = 8
	// idsAtOnce is of how many ports or networks one list asks for by their ids: the address must not become too long.
	idsAtOnce = 100
)

// pager reads resources of a project, of which there may be many more than are looked for.
type pager[T any] struct {
	page func(ctx context.Context, query string) (list []T, more bool, err error)
	one  func(ctx context.Context, id string) (*T, error) // nil when there is none
	id   func(*T) string
}

// find returns those of the resources that are there, by id: by lists as long as many are left to be found, so that hundreds
// take a few calls, and not a call each.
func (p pager[T]) find(ctx context.Context, ids []string) (map[string]*T, error) {
	found := make(map[string]*T, len(ids))
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	broken := false
	for marker, more := "", true; more && len(left) > fewLeft; {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if marker != "" {
			query.Set("marker", marker)
		}
		list, further, err := p.page(ctx, query.Encode())
		switch {
		case statusOf(err) == http.StatusBadRequest && marker != "": // what the marker names has gone meanwhile
			broken = true
		case err != nil:
			return nil, err
		}
		for n := range list {
			marker = p.id(&list[n])
			if left[marker] {
				found[marker] = &list[n]
				delete(left, marker)
			}
		}
		more = further && len(list) > 0
	}
	if len(left) > fewLeft && !broken {
		return found, nil
	}
	for id := range left {
		v, err := p.one(ctx, id)
		if err != nil {
			return nil, err
		}
		if v != nil {
			found[id] = v
		}
	}
	return found, nil
}

// links are those of a list's answer.
type links []gophercloud.Link

func (l links) more() bool {
	return slices.ContainsFunc(l, func(a gophercloud.Link) bool { return a.Rel == "next" })
}

// serversOf returns those of the servers that are there, by id.
func (c *cloud) serversOf(ctx context.Context, ids []string) (map[string]*server, error) {
	return pager[server]{
		page: func(ctx context.Context, query string) ([]server, bool, error) {
			nova, err := c.nova(ctx)
			if err != nil {
				return nil, false, err
			}
			var answer struct {
				Servers []server `json:"servers"`
				Links   links    `json:"servers_links"`
			}
			_, err = c.exchange(ctx, nova, "list servers", http.MethodGet, nil, &answer, []int{http.StatusOK}, []string{"servers", "detail?" + query})
			return answer.Servers, answer.Links.more(), err
		},
		one: c.server,
		id:  func(s *server) string { return s.ID },
	}.find(ctx, ids)
}

// volumesOf returns those of the volumes that are there, by id.
func (c *cloud) volumesOf(ctx context.Context, ids []string) (map[string]*volume, error) {
	if len(ids) == 0 { // there may be no Cinder
		return nil, nil
	}
	cinder, err := c.cinder(ctx)
	if err != nil {
		return nil, err
	}
	return pager[volume]{
		page: func(ctx context.Context, query string) ([]volume, bool, error) {
			var answer struct {
				Volumes []volume `json:"volumes"`
				Links   links    `json:"volumes_links"`
			}
			_, err := c.exchange(ctx, cinder, "list volumes", http.MethodGet, nil, &answer, []int{http.StatusOK}, []string{"volumes", "detail?" + query})
			return answer.Volumes, answer.Links.more(), err
		},
		one: func(ctx context.Context, id string) (*volume, error) {
			var one struct {
				Volume volume `json:"volume"`
			}
			status, err := c.exchange(ctx, cinder, "read volume "+id, http.MethodGet, nil, &one, []int{http.StatusOK}, []string{"volumes", id})
			if status == http.StatusNotFound {
				return nil, nil
			}
			return &one.Volume, err
		},
		id: func(v *volume) string { return v.ID },
	}.find(ctx, ids)
}

// neutronList asks Neutron for the resources of a kind whose attribute is one of the values.
func (c *cloud) neutronList(ctx context.Context, kind, attribute string, values, fields []string, answer any, each func()) error {
	neutron, err := c.neutron(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(values, idsAtOnce) {
		query := url.Values{attribute: some, "fields": fields}
		if _, err := c.exchange(ctx, neutron, "list "+kind, http.MethodGet, nil, answer, []int{http.StatusOK}, []string{kind + "?" + query.Encode()}); err != nil {
			return err
		}
		each()
	}
	return nil
}

// portsOf returns those of the ports that are there, by id.
func (c *cloud) portsOf(ctx context.Context, ids []string) (map[string]*port, error) {
	found := make(map[string]*port, len(ids))
	var answer struct {
		Ports []port `json:"ports"`
	}
	err := c.neutronList(ctx, "ports", "id", ids, []string{"id", "device_id", "mac_address", "fixed_ips"}, &answer, func() {
		for n := range answer.Ports {
			found[answer.Ports[n].ID] = &answer.Ports[n]
		}
		answer.Ports = nil
	})
	return found, err
}

// networksOf tells which of the networks are there, by id or by name, as requests call them.
func (c *cloud) networksOf(ctx context.Context, called []string) (map[string]bool, error) {
	there := make(map[string]bool, len(called))
	var answer struct {
		Networks []network `json:"networks"`
	}
	for _, attribute := range []string{"id", "name"} {
		left := slices.DeleteFunc(slices.Clone(called), func(name string) bool { return there[name] })
		err := c.neutronList(ctx, "networks", attribute, left, []string{"id", "name"}, &answer, func() {
			for _, n := range answer.Networks {
				there[n.ID], there[n.Name] = true, true
			}
			answer.Networks = nil
		})
		if err != nil {
			return nil, err
		}
	}
	return there, nil
}

// properties returns those that the template of a resource's stack gives it.
func (c *cloud) properties(ctx context.Context, r *resource) (map[string]any, error) {
	var template struct {
		Resources map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"resources"`
	}
	name, id := r.link("stack")
	_, err := c.call(ctx, "read the template of stack "+name, http.MethodGet, nil, &template, []int{http.StatusOK}, "stacks", name, id, "template")
	return template.Resources[r.Name].Properties, err
}

// listed writes ids for people.
func listed(ids []string, none string) string {
	if len(ids) == 0 {
		return none
	}
	return strings.Join(ids, ", ")
}
