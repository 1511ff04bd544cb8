package httpapi

import (
	"net/netip"
	"net/url"
	"slices"
)

// bodyRules says what a JSON body must be: its schema, what is tolerated of it, and what the schema cannot say.
type bodyRules struct {
	schema    string // in sol003.yaml; "" for a body that its handler checks
	normalise func(m map[string]any) bool
	rule      func(m map[string]any) *violation
	patch     bool // application/merge-patch+json is a content type of it
}

// bodies maps the method and the route of every request with a JSON body to its rules.
var bodies = map[string]bodyRules{
	"POST /vnflcm/v1/vnf_instances":                  {schema: "CreateVnfRequest"},
	"PATCH /vnflcm/v1/vnf_instances/{vnfInstanceId}": {schema: "VnfInfoModificationRequest", rule: oneVIM, patch: true},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/instantiate": {
		schema: "InstantiateVnfRequest", normalise: normaliseLinks, rule: connectivityRule,
	},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/scale": {schema: "ScaleVnfRequest", normalise: numbers("numberOfSteps")},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/scale_to_level": {
		schema: "ScaleVnfToLevelRequest", normalise: normaliseLevels, rule: scaleToLevelRule,
	},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/change_flavour": {
		schema: "ChangeVnfFlavourRequest", normalise: normaliseLinks, rule: connectivityRule,
	},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/heal":    {schema: "HealVnfRequest", normalise: normaliseVNFCs},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/operate": {schema: "OperateVnfRequest", normalise: numbers("gracefulStopTimeout")},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/change_ext_conn": {
		schema: "ChangeExtVnfConnectivityRequest", normalise: normaliseLinks, rule: connectivityRule,
	},
	"POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/terminate": {
		schema: "TerminateVnfRequest", normalise: numbers("gracefulTerminationTimeout"),
	},
	"POST /vnflcm/v1/vnf_lcm_op_occs/{vnfLcmOpOccId}/cancel": {schema: "CancelMode"},
	"POST /vnflcm/v1/subscriptions": {
		schema: "LccnSubscriptionRequest", normalise: normaliseSubscription, rule: subscriptionRule,
	},
	"POST /vnfpkgm/v1/vnf_packages":             {schema: "CreateVnfPkgInfoRequest"},
	"PATCH /vnfpkgm/v1/vnf_packages/{vnfPkgId}": {schema: "VnfPkgInfoModifications", rule: packageChangeRule, patch: true},
	"POST /vnfpkgm/v1/vnf_packages/{vnfPkgId}/package_content/upload_from_uri": {
		schema: "UploadVnfPackageFromUriRequest", rule: uploadRule,
	},
	"POST /v1.0/vims":        {},
	"PUT /v1.0/vims/{vimId}": {},
}

// normaliseNumber turns a text of digits into the number that is meant; it tells whether it did.
func normaliseNumber(m map[string]any, name string) bool {
	n, ok := wholeNumber(m[name])
	if ok {
		m[name] = n
	}
	return ok
}

// numbers normalises a number beneath the top of a body.
func numbers(name string) func(map[string]any) bool {
	return func(m map[string]any) bool { return normaliseNumber(m, name) }
}

// normaliseList makes a value that stands alone an array of one; it tells whether it did.
func normaliseList[T any](m map[string]any, name string) bool {
	v, ok := m[name].(T)
	if ok {
		m[name] = []any{v}
	}
	return ok
}

func normaliseVNFCs(m map[string]any) bool { return normaliseList[string](m, "vnfcInstanceId") }

func normaliseLevels(m map[string]any) (changed bool) {
	each(m, "scaleInfo", nil, func(o map[string]any, _ []any) *violation {
		changed = normaliseNumber(o, "scaleLevel") || changed
		return nil
	})
	return changed
}

// normaliseSubscription takes the names and shapes of attributes that Tacker's releases have for the standard's.
func normaliseSubscription(m map[string]any) (changed bool) {
	if auth, ok := m["subscriptionAuthentication"]; ok {
		if m["authentication"] == nil {
			m["authentication"] = auth
		}
		delete(m, "subscriptionAuthentication")
		changed = true
	}
	if filter, ok := m["filter"].(map[string]any); ok {
		if of, ok := filter["vnfInstanceSubscriptionFilter"].(map[string]any); ok {
			changed = normaliseList[map[string]any](of, "vnfProductsFromProviders") || changed
		}
	}
	return changed
}

// each calls f for every object of the array m[name], with its path.
func each(m map[string]any, name string, path []any, f func(o map[string]any, path []any) *violation) *violation {
	items, _ := m[name].([]any)
	for i, item := range items {
		if o, ok := item.(map[string]any); ok {
			if v := f(o, append(slices.Clone(path), name, i)); v != nil {
				return v
			}
		}
	}
	return nil
}

// eachAddress calls f for every IpAddressData of the external links, with its path.
func eachAddress(m map[string]any, f func(o map[string]any, path []any) *violation) *violation {
	return each(m, "extVirtualLinks", nil, func(link map[string]any, path []any) *violation {
		return each(link, "extCps", path, func(cp map[string]any, path []any) *violation {
			return each(cp, "cpConfig", path, func(config map[string]any, path []any) *violation {
				return each(config, "cpProtocolData", path, func(data map[string]any, path []any) *violation {
					eth, ok := data["ipOverEthernet"].(map[string]any)
					if !ok {
						return nil
					}
					return each(eth, "ipAddresses", append(path, "ipOverEthernet"), f)
				})
			})
		})
	})
}

func normaliseLinks(m map[string]any) (changed bool) {
	eachAddress(m, func(o map[string]any, _ []any) *violation {
		changed = normaliseNumber(o, "numDynamicAddresses") || changed
		return nil
	})
	return changed
}

// oneVIM is what this manager limits: a VNF is in one VIM.
func oneVIM(m map[string]any) *violation {
	if conns, _ := m["vimConnectionInfo"].([]any); len(conns) > 1 {
		return &violation{path: []any{"vimConnectionInfo"}, value: conns, rule: repr(conns, false) + " is too long"}
	}
	return nil
}

// connectivityRule is what holds of requests with VIM connections and virtual links beside their schema (SOL003 v2.6.1
// §4.4.1.10 ff.), and what this manager limits: one VIM, one configuration of a connection point.
func connectivityRule(m map[string]any) *violation {
	v := oneVIM(m)
	if v == nil {
		v = each(m, "extVirtualLinks", nil, func(link map[string]any, path []any) *violation {
			return each(link, "extCps", path, connectionPointRule)
		})
	}
	if v == nil {
		v = eachAddress(m, addressRule)
	}
	if v == nil {
		v = each(m, "extManagedVirtualLinks", nil, func(link map[string]any, path []any) *violation {
			if link["vnfVirtualLinkDescId"] == nil && link["virtualLinkDescId"] == nil {
				return &violation{path: path, value: link, rule: "'vnfVirtualLinkDescId' is a required property"}
			}
			return nil
		})
	}
	return v
}

func connectionPointRule(cp map[string]any, path []any) *violation {
	configs, ok := cp["cpConfig"].([]any)
	at := append(slices.Clone(path), "cpConfig")
	switch {
	case !ok:
		return &violation{path: path, value: cp, rule: "'cpConfig' is a required property"}
	case len(configs) == 0:
		return &violation{path: at, value: configs, rule: "[] is too short"}
	case len(configs) > 1:
		return &violation{path: at, value: configs, rule: repr(configs, false) + " is too long"}
	}
	return each(cp, "cpConfig", path, func(config map[string]any, path []any) *violation {
		return each(config, "cpProtocolData", path, func(data map[string]any, path []any) *violation {
			eth, ok := data["ipOverEthernet"].(map[string]any)
			if ok && eth["macAddress"] == nil && eth["ipAddresses"] == nil {
				return &violation{path: append(path, "ipOverEthernet"), value: eth,
					rule: repr(eth, false) + " is not valid under any of the given schemas"}
			}
			return nil
		})
	})
}

// addressRule: exactly one way to give addresses, and addresses of the type.
func addressRule(o map[string]any, path []any) *violation {
	ways := 0
	for _, name := range []string{"fixedAddresses", "numDynamicAddresses", "addressRange"} {
		if _, ok := o[name]; ok {
			ways++
		}
	}
	if ways != 1 {
		return &violation{path: path, value: o, rule: repr(o, false) + " must have exactly one of fixedAddresses, numDynamicAddresses and addressRange"}
	}
	kind := "ipv4"
	if o["type"] == "IPV6" {
		kind = "ipv6"
	}
	valid := func(v any) bool {
		text, _ := v.(string)
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4() == (kind == "ipv4") && a.Zone() == ""
	}
	fixed, _ := o["fixedAddresses"].([]any)
	for i, a := range fixed {
		if !valid(a) {
			return &violation{path: append(path, "fixedAddresses", i), value: a, rule: repr(a, false) + " is not a '" + kind + "'"}
		}
	}
	if r, ok := o["addressRange"].(map[string]any); ok {
		for _, name := range []string{"minAddress", "maxAddress"} {
			if !valid(r[name]) {
				return &violation{path: append(path, "addressRange", name), value: r[name], rule: repr(r[name], false) + " is not a '" + kind + "'"}
			}
		}
	}
	return nil
}

// scaleToLevelRule: a level is named, or described by each aspect once (SOL003 v2.6.1 §5.5.2.6).
func scaleToLevelRule(m map[string]any) *violation {
	_, named := m["instantiationLevelId"]
	_, described := m["scaleInfo"]
	if named == described {
		return &violation{rule: repr(m, false) + " must have exactly one of instantiationLevelId and scaleInfo"}
	}
	seen := map[string]bool{}
	return each(m, "scaleInfo", nil, func(o map[string]any, path []any) *violation {
		aspect, _ := o["aspectId"].(string)
		if seen[aspect] {
			return &violation{path: append(path, "aspectId"), value: aspect, rule: repr(aspect, false) + " is there twice"}
		}
		seen[aspect] = true
		return nil
	})
}

func subscriptionRule(m map[string]any) *violation {
	text, _ := m["callbackUri"].(string)
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &violation{path: []any{"callbackUri"}, value: text, rule: repr(text, false) + " is not a 'uri'"}
	}
	return nil
}

func packageChangeRule(m map[string]any) *violation {
	_, state := m["operationalState"]
	_, data := m["userDefinedData"]
	if !state && !data {
		return &violation{rule: repr(m, false) + " is not valid under any of the given schemas"}
	}
	return nil
}

func uploadRule(m map[string]any) *violation {
	if uri, ok := m["addressInformation"].(string); ok && !isURI(uri) {
		return &violation{path: []any{"addressInformation"}, value: uri, rule: repr(uri, false) + " is not a 'uri'"}
	}
	return nil
}
