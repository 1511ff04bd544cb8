package openstack

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// line is what is to come of a fault in some operations.
type line struct {
	ops []string
	outcome
}

// table makes a fault's outcomes of lines, in which an operation may come once.
func table(lines ...line) map[string]outcome {
	out := map[string]outcome{}
	for _, l := range lines {
		for _, op := range l.ops {
			if _, twice := out[op]; twice {
				panic("two outcomes of " + op)
			}
			out[op] = l.outcome
		}
	}
	return out
}

// The operations' names, as they are told in tables.
const (
	inst, out, in, level       = "INSTANTIATE", "SCALE out", "SCALE in", "SCALE_TO_LEVEL"
	heal, respawn, move        = "HEAL one", "HEAL all", "CHANGE_EXT_CONN"
	stop, start, flavour       = "OPERATE stop", "OPERATE start", "CHANGE_FLAVOUR"
	patched                    = "PATCH vnfdId + HEAL"
	graceful, forceful         = "TERMINATE graceful", "TERMINATE forceful"
	backInstantiate, backScale = "rollback of INSTANTIATE", "rollback of SCALE"
)

func ops(names ...string) []string { return names }

// others are all operations but those.
func others(but ...string) []string {
	var names []string
	for _, o := range []string{
		inst, out, in, level, heal, respawn, move, stop, start, flavour, patched, graceful, forceful, backInstantiate, backScale,
	} {
		if !slices.Contains(but, o) {
			names = append(names, o)
		}
	}
	return names
}

func failing(in []string, says ...string) line { return line{in, outcome{kind: fails, says: says}} }
func never(in []string, says ...string) line   { return line{in, outcome{kind: refused, says: says}} }
func calm(in []string, because string) line {
	return line{in, outcome{kind: unhurt, because: because}}
}

// overdue is what is said of what takes longer than the server waits.
var overdue = fmt.Sprintf("%g seconds", hastyStack.Seconds())

// silent is what is said of a VIM that does not answer, be it that a call's time is over or, with a login that others wait for
// too, the step's.
const silent = "no answer in time|Keystone has not answered for"

// lingering has everything take a while, for something to happen in the middle.
var lingering = []vimsim.Fault{
	{ResourceType: "stack", Effect: vimsim.EffectSlow, Delay: vimsim.Duration(time.Second)},
	{ResourceType: server, Effect: vimsim.EffectSlow, Delay: vimsim.Duration(time.Second)},
}

var makesServers = ops(inst, out, level, heal, respawn, flavour, patched)

var faults = []fault{
	{
		name: "Heat refuses the template",
		is:   []vimsim.Fault{{ResourceType: "heat", Request: writeStack, Effect: vimsim.EffectHTTP, Status: 400, Reason: templateSaid}},
		comes: table(
			failing(ops(inst, heal, respawn, move, flavour, patched, backScale), "stack vnflcm_{id}", templateSaid),
			calm(ops(out, in, level), "a scaling policy is signalled, without a template"),
			calm(ops(stop, start), "Nova alone is asked"),
			calm(ops(graceful, forceful, backInstantiate), "a deletion has no template"),
		),
	},
	{
		name: "a quota is reached",
		is:   []vimsim.Fault{{ResourceType: server, Action: "create", Effect: vimsim.EffectQuota}},
		comes: table(
			failing(makesServers, "Quota exceeded", server, "vnflcm_{id}"),
			calm(others(makesServers...), "no server is made"),
		),
	},
	{
		name: "what Heat does never ends", lasts: true,
		is: []vimsim.Fault{
			{ResourceType: "stack", Effect: vimsim.EffectHang}, {ResourceType: server, Action: "create", Effect: vimsim.EffectHang},
			{ResourceType: server, Action: "delete", Effect: vimsim.EffectHang},
			{ResourceType: server, Action: "stop", Effect: vimsim.EffectHang},
			{ResourceType: server, Action: "start", Effect: vimsim.EffectHang},
		},
		comes: table(
			failing(ops(stop, start), overdue, "server"),
			failing(others(stop, start), overdue, "stack"),
		),
	},
	{
		name: "one of several servers cannot be made",
		is: []vimsim.Fault{{
			ResourceType: server, Action: "create", Effect: vimsim.EffectFail, Reason: "No valid host was found.", Times: 1,
		}},
		comes: table(
			failing(makesServers, "No valid host was found.", server, "vnflcm_{id}"),
			calm(others(makesServers...), "no server is made"),
		),
	},
	{
		name: "servers go into ERROR", begin: breakOne,
		is: []vimsim.Fault{
			{ResourceType: server, Action: "create", Effect: vimsim.EffectFail, Reason: "The hypervisor is out of order."},
			{ResourceType: server, Action: "stop", Effect: vimsim.EffectFail, Reason: "The hypervisor is out of order."},
			{ResourceType: server, Action: "start", Effect: vimsim.EffectFail, Reason: "The hypervisor is out of order."},
		},
		lasts: true, // a server that is asked for a moment ago may show what it was before
		comes: table(
			failing(makesServers, "The hypervisor is out of order.", server, "vnflcm_{id}"),
			failing(ops(stop, start), "The hypervisor is out of order.", "server", "ERROR"),
			calm(others(append(makesServers, stop, start)...), "no server is made, or asked for anything"),
		),
	},
	{
		name: "an address is in use", begin: takeAddresses,
		comes: table(
			failing(ops(inst, respawn, move), "already allocated", "VDU2_CP1", "vnflcm_{id}"),
			calm(others(inst, respawn, move), "no port with a fixed address is made"),
		),
	},
	{
		name: "a volume type exists already",
		is: []vimsim.Fault{{
			ResourceType: "OS::Cinder::VolumeType", Action: "create", Effect: vimsim.EffectFail,
			Reason: "Conflict: Volume Type fragile-kind already exists. (HTTP 409)",
		}},
		comes: table(
			failing(ops(inst, respawn), "fragile-kind already exists", "OS::Cinder::VolumeType", "vnflcm_{id}"),
			calm(others(inst, respawn), "no volume type is made"),
		),
	},
	{
		name: "a network is missing", begin: rename,
		comes: table(
			failing(ops(inst, out, in, level, heal, respawn, move, flavour, patched, backScale), "Unable to find network", "vnflcm_{id}"),
			calm(ops(stop, start, graceful, forceful, backInstantiate), "no network is looked for"),
		),
	},
	{
		name: "Glance takes no image", lasts: true,
		is: []vimsim.Fault{{
			ResourceType: "glance", Request: `^(POST|PUT) .*/images(/.*)?$`, Effect: vimsim.EffectHTTP, Status: 503,
			Reason: "The store is read-only.",
		}},
		comes: table(
			failing(ops(inst, respawn, patched), "image", "The store is read-only."),
			calm(others(inst, respawn, patched), "no image is made"),
		),
	},
	{
		name:  "the upload of an image breaks",
		is:    []vimsim.Fault{{ResourceType: "glance", Request: "^PUT .*/file$", Effect: vimsim.EffectReset, Times: 2}},
		comes: table(calm(others(), "it is begun anew")),
	},
	{
		name: "tokens expire in the middle", begin: expireTokens,
		is:    []vimsim.Fault{{ResourceType: server, Effect: vimsim.EffectSlow, Delay: halfASecond}},
		comes: table(calm(others(), "we log in again")),
	},
	{
		name:  "connections are reset for a while",
		is:    []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectReset, Times: 4}},
		comes: table(calm(others(), "it passes")),
	},
	{
		name: "connections are reset for ever", lasts: true,
		is: []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectReset}},
		comes: table(
			never(ops(in), "connection"),
			failing(others(in), "connection"),
		),
	},
	{
		name: "the cloud goes away in the middle", lasts: true,
		begin: inTheMiddle(func(l *life) { l.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "*", Effect: vimsim.EffectReset}) }),
		is:    lingering,
		comes: table(failing(others(), "connection")),
	},
	{
		name: "the cloud falls silent in the middle", lasts: true,
		begin: inTheMiddle(func(l *life) {
			l.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "*", Effect: vimsim.EffectLate, Delay: minutes})
		}),
		is:    lingering,
		comes: table(failing(others(), "no answer in time")),
	},
	{
		name: "answers are late by minutes", lasts: true,
		is: []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectLate, Delay: minutes}},
		comes: table(
			never(ops(in), silent),
			failing(others(in), silent),
		),
	},
	{
		name: "answers to changes are late by minutes, for a while", lasts: true,
		is:    []vimsim.Fault{{ResourceType: "heat", Request: changeStack, Effect: vimsim.EffectLate, Delay: minutes, Times: 2}},
		comes: table(calm(others(), "what was done is found")),
	},
	{
		name:  "answers are cut off for a while",
		is:    []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectTruncate, Times: 4}},
		comes: table(calm(others(), "it passes")),
	},
	{
		name:  "answers to changes are cut off for a while",
		is:    []vimsim.Fault{{ResourceType: "heat", Request: changeStack, Effect: vimsim.EffectTruncate, Times: 2}},
		comes: table(calm(others(), "what was done is found")),
	},
	{
		name: "answers are cut off for ever", lasts: true,
		is: []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectTruncate}},
		comes: table(
			never(ops(in), "cut off"),
			failing(others(in), "cut off"),
		),
	},
	{
		name: "503 with Retry-After",
		is: []vimsim.Fault{{
			ResourceType: "*", Effect: vimsim.EffectHTTP, Status: 503, RetryAfter: "1", Reason: "Overloaded.", Times: 4,
		}},
		comes: table(calm(others(), "it passes")),
	},
	{
		name: "a proxy answers for ever", lasts: true,
		is: []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectHTTP, Status: 502, Page: proxyPage}},
		comes: table(
			never(ops(in), "502 Bad Gateway"),
			failing(others(in), "502 Bad Gateway"),
		),
	},
	{
		name: "a proxy answers as if it were OpenStack", lasts: true,
		is: []vimsim.Fault{{ResourceType: "*", Effect: vimsim.EffectHTTP, Status: 200, Page: portalPage}},
		comes: table(
			never(ops(in), "not JSON"),
			failing(ops(inst), "log in", "Welcome to the guests' network"),
			failing(others(in, inst), "not JSON"),
		),
	},
	{
		name: "another action runs for a while",
		is: []vimsim.Fault{{
			ResourceType: "heat", Request: changeStack, Effect: vimsim.EffectHTTP, Status: 409,
			Reason: "Stack already has an action (UPDATE) in progress.", Times: 3,
		}},
		comes: table(calm(others(), "it passes")),
	},
	{
		name: "another action runs for ever", lasts: true,
		is: []vimsim.Fault{{
			ResourceType: "heat", Request: changeStack, Effect: vimsim.EffectHTTP, Status: 409,
			Reason: "Stack already has an action (UPDATE) in progress.",
		}},
		comes: table(
			calm(ops(stop, start), "Nova alone is asked"),
			failing(others(stop, start), "already has an action (UPDATE) in progress", "vnflcm_{id}"),
		),
	},
	{
		name: "Keystone goes away in the middle", lasts: true,
		begin: inTheMiddle(func(l *life) {
			l.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "keystone", Effect: vimsim.EffectReset})
			l.sim.Cloud.ExpireTokens()
		}),
		is:    lingering,
		comes: table(failing(others(), "log in", "connection")),
	},
	{
		name: "Keystone is down", lasts: true, begin: func(l *life) func() { l.sim.Cloud.ExpireTokens(); return func() {} },
		is: []vimsim.Fault{{ResourceType: "keystone", Effect: vimsim.EffectReset}},
		comes: table(
			never(ops(in), "log in", "connection"),
			failing(others(in), "log in", "connection"),
		),
	},
}
