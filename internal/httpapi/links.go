package httpapi

import (
	"maps"
	"net/url"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// A link of a representation: its name, where it leads beneath the resource, and the states in which it is there. With
// member set it leads to the resource that the member names instead, beneath target.
type link struct {
	name   string
	suffix string
	states []string // of the resource's state member; none: always
	// operations are those of op occs that have the link; none: all.
	operations []string
	// when tells by the stored body whether the link is there in these states; nil: always.
	when   func(body []byte) bool
	member string
	target string
	// granted says that the member is the id of a grant, which the NFVO has.
	granted bool
}

// origin is where links lead, as it stands inside a JSON string: this server, and the NFVO's grants ("" when none is asked).
type origin struct{ here, grants string }

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
	// plain lists have no attribute selectors, and ignore them.
	plain bool
	// emptyFilter says that an empty filter is an error.
	emptyFilter bool
	// aliases are further names of attributes in filters, and the paths that they stand for.
	aliases map[string][]string
}

var instances = &resource{
	path: "/vnflcm/v1/vnf_instances", state: "instantiationState", schema: "VnfInstance", strict: true,
	complex: []string{"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"},
	links: []link{
		{name: "self"},
		{name: "instantiate", suffix: "/instantiate", states: []string{"NOT_INSTANTIATED"}},
		{name: "terminate", suffix: "/terminate", states: instantiated},
		{name: "scale", suffix: "/scale", states: instantiated, when: scales},
		{name: "scaleToLevel", suffix: "/scale_to_level", states: instantiated, when: scales},
		{name: "changeFlavour", suffix: "/change_flavour", states: instantiated},
		{name: "heal", suffix: "/heal", states: instantiated},
		{name: "operate", suffix: "/operate", states: instantiated},
		{name: "changeExtConn", suffix: "/change_ext_conn", states: instantiated},
	},
}

var instantiated = []string{"INSTANTIATED"}

// scales tells whether a VNF can be scaled.
func scales(body []byte) bool {
	status := topMember(topMember(body, "instantiatedVnfInfo"), "scaleStatus")
	return len(status) > 1 && status[skipSpace(status, 1)] != ']'
}

var opOccs = &resource{
	path: "/vnflcm/v1/vnf_lcm_op_occs", state: "operationState", schema: "VnfLcmOpOcc",
	complex: []string{"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"},
	links: []link{
		{name: "self"},
		{name: "vnfInstance", member: "vnfInstanceId", target: "/vnflcm/v1/vnf_instances"},
		{name: "grant", member: "grantId", granted: true},
		{name: "cancel", suffix: "/cancel", states: []string{"STARTING", "PROCESSING", "ROLLING_BACK"}, when: cancelable},
		{name: "retry", suffix: "/retry", states: failed},
		{name: "rollback", suffix: "/rollback", states: failed, when: undoable, operations: []string{
			"INSTANTIATE", "SCALE", "SCALE_TO_LEVEL", "OPERATE", "CHANGE_EXT_CONN", "CHANGE_FLAVOUR", "MODIFY_INFO",
		}},
		{name: "fail", suffix: "/fail", states: failed},
	},
}

var failed = []string{"FAILED_TEMP"}

// cancelable tells whether a live operation is not being canceled yet.
func cancelable(body []byte) bool { return string(topMember(body, "isCancelPending")) != "true" }

// undoable tells of an operation of a kind that can be undone whether it can: what was scaled in is gone.
func undoable(body []byte) bool {
	return topText(body, "operation") != "SCALE" || topText(topMember(body, "operationParams"), "type") != "SCALE_IN"
}

// The subscriptions of SOL003 v2.6.1 §5.4.18: lists of them have a filter and pages only.
var subscriptions = &resource{
	path: "/vnflcm/v1/subscriptions", schema: "LccnSubscription", plain: true,
	links: []link{{name: "self"}},
	aliases: map[string][]string{ // as Tacker's clients name them
		"notificationTypes":  {"filter", "notificationTypes"},
		"operationTypes":     {"filter", "operationTypes"},
		"operationStates":    {"filter", "operationStates"},
		"vnfdIds":            {"filter", "vnfInstanceSubscriptionFilter", "vnfdIds"},
		"vnfInstanceIds":     {"filter", "vnfInstanceSubscriptionFilter", "vnfInstanceIds"},
		"vnfInstanceNames":   {"filter", "vnfInstanceSubscriptionFilter", "vnfInstanceNames"},
		"vnfProvider":        append(products(), "vnfProvider"),
		"vnfProductName":     append(products(), "vnfProducts", "vnfProductName"),
		"vnfSoftwareVersion": append(products(), "vnfProducts", "versions", "vnfSoftwareVersion"),
		"vnfdVersions":       append(products(), "vnfProducts", "versions", "vnfdVersions"),
	},
}

func products() []string {
	return []string{"filter", "vnfInstanceSubscriptionFilter", "vnfProductsFromProviders"}
}

// filterable returns the attributes that filters of the resource may name: those of its schema and their aliases.
func (res *resource) filterable() *schema {
	s := schemas()[res.schema]
	if len(res.aliases) == 0 {
		return s
	}
	all := *s
	all.Properties = maps.Clone(s.Properties)
	for name, path := range res.aliases {
		all.Properties[name] = s.at(path)
	}
	return &all
}

// resolve has conditions on aliases be on what they stand for.
func (res *resource) resolve(conditions []lcm.Condition) []lcm.Condition {
	for i, c := range conditions {
		if path, ok := res.aliases[c.Path[0]]; ok {
			conditions[i].Path = append(slices.Clone(path), c.Path[1:]...)
		}
	}
	return conditions
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
func (res *resource) appendRepresentation(dst []byte, from origin, id string, body []byte, s selection) []byte {
	if res.relative {
		from.here = ""
	}
	dst, some := appendSelected(dst, body, s)
	if len(res.links) == 0 {
		return append(dst, '}')
	}
	if some {
		dst = append(dst, ',')
	}
	state := topText(body, res.state)
	dst = append(dst, `"_links":{`...)
	first := true
	for _, l := range res.links {
		if len(l.states) > 0 && !slices.Contains(l.states, state) ||
			len(l.operations) > 0 && !slices.Contains(l.operations, topText(body, "operation")) ||
			l.when != nil && !l.when(body) {
			continue
		}
		base, path, target := from.here, res.path, id
		if l.member != "" {
			if path, target = l.target, topText(body, l.member); target == "" {
				continue
			}
		}
		if l.granted { // its id is the NFVO's choice: grants/{grantId}, SOL003 v2.6.1 §9.3
			if base, target = from.grants, url.PathEscape(target); base == "" {
				continue
			}
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), l.name...), `":{"href":"`...)
		dst = append(append(append(dst, base...), path...), '/')
		dst = append(append(append(dst, target...), l.suffix...), `"}`...)
	}
	return append(dst, "}}"...)
}
