package openstack

import (
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// operation is something that is asked of an instance, or a rollback of it.
type operation struct {
	name string
	// from makes of the life what the operation begins with; nil: an instance as it is instantiated.
	from func(l *life)
	// ask asks for it and returns the op occ's id.
	ask func(l *life) string
	// undo tells that it may be rolled back.
	undo bool
	// isRollback tells that it is one itself.
	isRollback bool
	// becomes is what the VNF is after it, by what it was.
	becomes func(was shape) shape
	// retried is what it is when what was to be rolled back is retried after all.
	retried func(was shape) shape
}

// shape is what a VNF is to be like.
type shape struct {
	gone    bool   // not instantiated
	members int    // of the group VDU1
	address string // of VDU2 outside
	image   string // of VDU2
	flavour string
	off     bool
}

// The networks outside, and the address that VDU2 has in each.
const (
	firstNet, firstAddress   = "net0", "10.10.0.50"
	secondNet, secondAddress = "net_mgmt", "192.168.120.50"
)

// usual is an instance as it is instantiated.
var usual = shape{members: 2, address: firstAddress, image: firstImage, flavour: "small"}

func links(network, address string, cps ...string) []any {
	var list []any
	for _, cp := range cps {
		ip := map[string]any{"type": "IPV4", "numDynamicAddresses": 1}
		if cp == "VDU2_CP1" {
			ip = map[string]any{"type": "IPV4", "fixedAddresses": []any{address}}
		}
		list = append(list, map[string]any{"cpdId": cp, "cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{
			"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": map[string]any{"ipAddresses": []any{ip}},
		}}}}})
	}
	return []any{map[string]any{"id": "6c3f7f3e-8d1f-4c1d-a1a5-33f1c6d2f0aa", "resourceId": network, "extCps": list}}
}

var script = map[string]any{
	"lcm-operation-user-data": "./UserData/user_data.py", "lcm-operation-user-data-class": "FragileUserData",
}

func instantiate(l *life) string {
	return l.task("instantiate", map[string]any{
		"flavourId": "small", "additionalParams": script,
		"vimConnectionInfo": []any{map[string]any{"id": "here", "vimId": l.vimID, "vimType": "openstack"}},
		"extVirtualLinks":   links(firstNet, firstAddress, "VDU1_CP1", "VDU2_CP1"),
	})
}

func scaleOut(l *life) string {
	return l.task("scale", map[string]any{"type": "SCALE_OUT", "aspectId": "VDU1", "numberOfSteps": 1})
}

func operate(state string) func(l *life) string {
	return func(l *life) string {
		return l.task("operate", map[string]any{"changeStateTo": state, "stopType": "FORCEFUL"})
	}
}

func terminate(body map[string]any) func(l *life) string {
	return func(l *life) string { return l.task("terminate", body) }
}

func healOne(vdu string) func(l *life) string {
	return func(l *life) string { return l.task("heal", map[string]any{"vnfcInstanceId": []any{l.vnfc(vdu)}}) }
}

func same(was shape) shape { return was }
func gone(shape) shape     { return shape{gone: true} }

// failed has an operation fail at a server that cannot be created, and returns its op occ.
func failed(ask func(l *life) string) func(l *life) {
	return func(l *life) {
		id := l.sim.Cloud.AddFault(vimsim.Fault{
			ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail, Reason: "The first failure.",
		})
		l.failed = ask(l)
		l.ends(l.failed, "FAILED_TEMP")
		l.sim.Cloud.RemoveFault(id)
	}
}

func rollback(l *life) string {
	l.recover(l.failed, "rollback")
	return l.failed
}

func instantiated(l *life) { l.does(instantiate(l)) }

var operations = []operation{
	{name: "INSTANTIATE", from: func(*life) {}, ask: instantiate, undo: true, becomes: func(shape) shape { return usual }},
	{name: "SCALE out", ask: scaleOut, undo: true, becomes: func(s shape) shape { s.members++; return s }},
	{name: "SCALE in", ask: func(l *life) string {
		return l.task("scale", map[string]any{"type": "SCALE_IN", "aspectId": "VDU1", "numberOfSteps": 1})
	}, becomes: func(s shape) shape { s.members--; return s }},
	{name: "SCALE_TO_LEVEL", ask: func(l *life) string {
		return l.task("scale_to_level", map[string]any{"scaleInfo": []any{map[string]any{"aspectId": "VDU1", "scaleLevel": 3}}})
	}, undo: true, becomes: func(s shape) shape { s.members = 4; return s }},
	{name: "HEAL one", ask: healOne("VDU1"), becomes: same},
	{name: "HEAL all", ask: func(l *life) string { return l.task("heal", map[string]any{}) }, becomes: same},
	{name: "CHANGE_EXT_CONN", ask: func(l *life) string {
		return l.task("change_ext_conn", map[string]any{"extVirtualLinks": links(secondNet, secondAddress, "VDU2_CP1")})
	}, undo: true, becomes: func(s shape) shape { s.address = secondAddress; return s }},
	{name: "OPERATE stop", ask: operate("STOPPED"), undo: true, becomes: func(s shape) shape { s.off = true; return s }},
	{name: "OPERATE start", from: func(l *life) {
		instantiated(l)
		l.does(operate("STOPPED")(l))
		l.was.off = true
	}, ask: operate("STARTED"), undo: true, becomes: func(s shape) shape { s.off = false; return s }},
	{name: "CHANGE_FLAVOUR", ask: func(l *life) string {
		return l.task("change_flavour", map[string]any{"newFlavourId": "large", "additionalParams": script})
	}, undo: true, becomes: func(s shape) shape { s.members, s.flavour = 3, "large"; return s }},
	{name: "PATCH vnfdId + HEAL", from: func(l *life) {
		instantiated(l)
		l.does(l.modify(map[string]any{"vnfdId": l.house.vnfd.second}))
	}, ask: healOne("VDU2"), becomes: func(s shape) shape { s.image = secondImage; return s }},
	{name: "TERMINATE graceful", ask: terminate(map[string]any{
		"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1,
	}), becomes: gone},
	{name: "TERMINATE forceful", ask: terminate(map[string]any{"terminationType": "FORCEFUL"}), becomes: gone},
	{
		name: "rollback of INSTANTIATE", from: failed(instantiate), ask: rollback, isRollback: true, undo: true,
		becomes: gone, retried: func(shape) shape { return usual },
	},
	{name: "rollback of SCALE", from: func(l *life) {
		instantiated(l)
		failed(scaleOut)(l)
	}, ask: rollback, isRollback: true, undo: true, becomes: same, retried: func(s shape) shape { s.members++; return s }},
}
