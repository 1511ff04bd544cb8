package httpapi

import (
	"slices"
)

// A link of a representation: its name, where it leads beneath the resource, and the states in which it is there. With
// member set it leads to the resource that the member names instead, beneath target.
type link struct {
	name   string
	suffix string
	states []string // of the resource's state member; none: always
	// operations are those of op occs that have the link; none: all.
	operations []string
	member     string
	target     string
}

// resource is one kind of resource of which lists and single representations are read.
type resource struct {
	path    string // beneath the server's root
	state   string // the member that holds the state on which links depend
	schema  string // in sol003.yaml
	complex []string
	links   []link
	// relative hrefs begin at the server's root, the others with the endpoint's URL.
	relative bool
	// strict lists refuse query parameters that they do not know.
	strict bool
	// emptyFilter says that an empty filter is an error.
	emptyFilter bool
}

var instances = &resource{
	path: "/vnflcm/v1/vnf_instances", state: "instantiationState", schema: "VnfInstance", strict: true,
	complex: []string{"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"},
	links: []link{
		{name: "self"},
		{name: "instantiate", suffix: "/instantiate", states: []string{"NOT_INSTANTIATED"}},
		{name: "terminate", suffix: "/terminate", states: []string{"INSTANTIATED"}},
	},
}

var opOccs = &resource{
	path: "/vnflcm/v1/vnf_lcm_op_occs", state: "operationState", schema: "VnfLcmOpOcc",
	complex: []string{"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"},
	links: []link{
		{name: "self"},
		{name: "vnfInstance", member: "vnfInstanceId", target: "/vnflcm/v1/vnf_instances"},
		{name: "retry", suffix: "/retry", states: []string{"FAILED_TEMP"}},
		{name: "rollback", suffix: "/rollback", states: []string{"FAILED_TEMP"}, operations: []string{"INSTANTIATE"}},
		{name: "fail", suffix: "/fail", states: []string{"FAILED_TEMP"}},
	},
}

var packages = &resource{
	path: "/vnfpkgm/v1/vnf_packages", state: "onboardingState", schema: "VnfPkgInfo", relative: true, emptyFilter: true,
	complex: []string{"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"},
	links: []link{
		{name: "self"},
		{name: "packageContent", suffix: "/package_content"},
		{name: "vnfd", suffix: "/vnfd", states: []string{"ONBOARDED"}},
	},
}

// appendRepresentation appends a stored body with what the selection shows of it, and its links. id and body are of the
// store: ids need no escapes.
func (res *resource) appendRepresentation(dst []byte, endpoint, id string, body []byte, s selection) []byte {
	if res.relative {
		endpoint = ""
	}
	dst, some := appendSelected(dst, body, s)
	if some {
		dst = append(dst, ',')
	}
	state := topText(body, res.state)
	dst = append(dst, `"_links":{`...)
	first := true
	for _, l := range res.links {
		if len(l.states) > 0 && !slices.Contains(l.states, state) ||
			len(l.operations) > 0 && !slices.Contains(l.operations, topText(body, "operation")) {
			continue
		}
		path, target := res.path, id
		if l.member != "" {
			if path, target = l.target, topText(body, l.member); target == "" {
				continue
			}
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), l.name...), `":{"href":"`...)
		dst = append(append(append(dst, endpoint...), path...), '/')
		dst = append(append(append(dst, target...), l.suffix...), `"}`...)
	}
	return append(dst, "}}"...)
}
