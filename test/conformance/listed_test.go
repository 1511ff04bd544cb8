package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The resources of SOL003 v2.6.1 §5.4, and those that others serve to this program: the callback of a subscription and
// the grants of an NFVO (§9.4).
const (
	apiVersions   = "/vnflcm/api_versions"
	apiVersionsV1 = "/vnflcm/v1/api_versions"
	instances     = "/vnflcm/v1/vnf_instances"
	instance      = instances + "/{vnfInstanceId}"
	instantiate   = instance + "/instantiate"
	scale         = instance + "/scale"
	scaleToLevel  = instance + "/scale_to_level"
	changeFlavour = instance + "/change_flavour"
	terminate     = instance + "/terminate"
	heal          = instance + "/heal"
	operate       = instance + "/operate"
	changeExtConn = instance + "/change_ext_conn"
	opOccs        = "/vnflcm/v1/vnf_lcm_op_occs"
	opOcc         = opOccs + "/{vnfLcmOpOccId}"
	retry         = opOcc + "/retry"
	rollback      = opOcc + "/rollback"
	fail          = opOcc + "/fail"
	cancel        = opOcc + "/cancel"
	subscriptions = "/vnflcm/v1/subscriptions"
	subscription  = subscriptions + "/{subscriptionId}"
	callback      = "{callbackUri}"
	grants        = "{nfvo}/grant/v1/grants"
	grant         = grants + "/{grantId}"
)

// served are the resources of this program, as the standard lists them.
var served = []string{
	apiVersions, apiVersionsV1, instances, instance, instantiate, scale, scaleToLevel, changeFlavour, terminate, heal, operate,
	changeExtConn, opOccs, opOcc, retry, rollback, fail, cancel, subscriptions, subscription,
}

// always are the statuses that every supported method has: malformed, not known, not allowed, not acceptable, a URI too
// long, too many requests, not now.
const always = " 400 401 403 406 414 429 503"

// withBody are those of every method with a body besides.
const withBody = always + " 413 415"

// listed says, resource by resource, which methods there are and what they answer (§5.4.2 to §5.4.20, with the common
// statuses of SOL013 v2.6.1 §6.4). Methods of served resources that are not here are answered 405.
var listed = []struct{ route, method, statuses string }{
	{apiVersions, "GET", "200" + always},
	{apiVersionsV1, "GET", "200" + always},
	{instances, "POST", "201 422" + withBody},
	{instances, "GET", "200" + always},
	{instance, "GET", "200 304 404" + always},
	{instance, "PATCH", "202 404 409 412" + withBody},
	{instance, "DELETE", "204 404 409 412" + always},
	{instantiate, "POST", "202 404 409" + withBody},
	{scale, "POST", "202 404 409" + withBody},
	{scaleToLevel, "POST", "202 404 409" + withBody},
	{changeFlavour, "POST", "202 404 409" + withBody},
	{terminate, "POST", "202 404 409" + withBody},
	{heal, "POST", "202 404 409" + withBody},
	{operate, "POST", "202 404 409" + withBody},
	{changeExtConn, "POST", "202 404 409" + withBody},
	{opOccs, "GET", "200" + always},
	{opOcc, "GET", "200 304 404" + always},
	{retry, "POST", "202 404 409" + always},
	{rollback, "POST", "202 404 409" + always},
	{fail, "POST", "200 404 409" + always},
	{cancel, "POST", "202 404 409" + withBody},
	{subscriptions, "POST", "201 303 422" + withBody},
	{subscriptions, "GET", "200" + always},
	{subscription, "GET", "200 304 404" + always},
	{subscription, "DELETE", "204 404 412" + always},

	{callback, "GET", "204"},
	{callback, "POST", "204"},
	{grants, "POST", "201 202 403"},
	{grant, "GET", "200 202 403"},
}

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// duty is one thing to be shown.
type duty struct {
	route, method string
	status        int
}

// String names the duty as the standard's tables would.
func (d duty) String() string { return fmt.Sprintf("%s %s: %d", d.method, d.route, d.status) }

// duties is the whole list.
func duties(t testing.TB) map[duty]bool {
	t.Helper()
	all := map[duty]bool{}
	for _, l := range listed {
		for _, text := range strings.Fields(l.statuses) {
			status, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			all[duty{l.route, l.method, status}] = true
		}
	}
	for _, route := range served {
		for _, method := range methods {
			if !supported(route, method) {
				all[duty{route, method, 405}] = true
			}
		}
	}
	return all
}

// supported tells whether a resource has a method.
func supported(route, method string) bool {
	for _, l := range listed {
		if l.route == route && l.method == method {
			return true
		}
	}
	return false
}

// each calls f for every method that a served resource has.
func each(f func(route, method string)) {
	for _, route := range served {
		for _, method := range methods {
			if supported(route, method) {
				f(route, method)
			}
		}
	}
}

// allowed is what Allow must say of a resource.
func allowed(route string) string {
	var names []string
	for _, m := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		if supported(route, m) {
			names = append(names, m)
		}
	}
	return strings.Join(names, ",")
}

// hasBody tells whether a method of a resource takes a body.
func hasBody(route, method string) bool {
	for _, l := range listed {
		if l.route == route && l.method == method {
			return strings.Contains(l.statuses, "415")
		}
	}
	return false
}
