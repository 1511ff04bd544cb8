package openstack

import (
	"context"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

func (c *cloud) neutron(ctx context.Context) (*gophercloud.ServiceClient, error) {
	return c.service(ctx, "network", openstack.NewNetworkV2)
}

// networkOf returns the id of the network that a port is in, "" when there is no such port.
func (c *cloud) networkOf(ctx context.Context, port string) (string, error) {
	neutron, err := c.neutron(ctx)
	if err != nil {
		return "", err
	}
	var one struct {
		Port struct {
			Network string `json:"network_id"`
		} `json:"port"`
	}
	status, err := c.exchange(ctx, neutron, "read port "+port, http.MethodGet, nil, &one, []int{http.StatusOK}, []string{"ports", port})
	if status == http.StatusNotFound {
		return "", nil
	}
	return one.Port.Network, err
}

// leadLinks points the virtual links whose networks have other names in the stack to the networks that their ports are in, by
// what Neutron says, and returns the names of those that have none.
func (c *cloud) leadLinks(ctx context.Context, info *sol003.InstantiatedVnfInfo, t *tree, vimID string) (missing []string, err error) {
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		if given := vl.NetworkResource; given.ResourceId != "" && given.VimConnectionId != vimID || t.network(vl.VnfVirtualLinkDescId, nil) != nil {
			continue
		}
		led := false
		for _, p := range vl.VnfLinkPorts {
			if p.ResourceHandle.ResourceId == "" || p.ResourceHandle.VimLevelResourceType != portType {
				continue
			}
			id, err := c.networkOf(ctx, p.ResourceHandle.ResourceId)
			if err != nil {
				return missing, err
			}
			if id == "" {
				continue
			}
			vl.NetworkResource = sol003.ResourceHandle{VimConnectionId: vimID, ResourceId: id, VimLevelResourceType: netType}
			led = true
			break
		}
		if !led && vl.NetworkResource.ResourceId == "" {
			missing = append(missing, "network "+vl.VnfVirtualLinkDescId)
		}
	}
	return missing, nil
}
