package crash

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// stackWaited is the point at which a node has looked at a stack that it waits for.
const stackWaited = "INSTANTIATE/infra:stack-wait/after"

func askInstantiate(ctx context.Context, l *lane, s *subject) (string, error) {
	return l.api().Instantiate(ctx, s.id, l.vimID, deploy.InstantiateRequest(l.sample.name, l.sample.flavour))
}

// serverFails has the next server that is created fail.
func serverFails(_ context.Context, l *lane, _ *subject) error {
	l.Sim.Cloud.AddFault(vimsim.Fault{
		ID: "server", ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail, Times: 1, Reason: "the test's own",
	})
	return nil
}

// serversHang has servers take for ever.
func serversHang(_ context.Context, l *lane, _ *subject) error {
	l.Sim.Cloud.SetLatency(map[string]time.Duration{"OS::Nova::Server": time.Hour})
	return nil
}

func normalAgain(_ context.Context, l *lane) error {
	l.Sim.Cloud.SetLatency(latency)
	return nil
}

// lookHangs has it so that a node which is to die at a look at the stack does so as the request to cancel cuts the look off.
func lookHangs(ctx context.Context, l *lane, point string) error {
	if point != stackWaited {
		return nil
	}
	l.Sim.Cloud.AddFault(vimsim.Fault{ID: "look", ResourceType: "heat", Action: "get", Effect: vimsim.EffectHang, Times: 1})
	return harness.Await(ctx, "a request hangs", func(context.Context) (bool, error) { return len(l.Sim.Cloud.Faults()) == 0, nil })
}

// nextNetwork chooses the other network.
func nextNetwork(_ context.Context, _ *lane, s *subject) error {
	s.network = map[string]string{"": "net_mgmt", "net_mgmt": "net0", "net0": "net_mgmt"}[s.network]
	return nil
}

// moved is the request that puts the sample's connection point onto the chosen network.
func moved(l *lane, s *subject) any {
	return sol003.ChangeExtVnfConnectivityRequest{ExtVirtualLinks: []sol003.ExtVirtualLinkData{{
		Id: "link-to-" + s.network, ResourceId: s.network, ExtCps: []sol003.VnfExtCpData{{
			CpdId: l.sample.cp, CpConfig: []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{LayerProtocol: sol003.LayerProtocolIPOverEthernet}}}},
		}},
	}}}
}

// stackActs are all there are, those of a life without failures first, in their order.
var stackActs = []act{
	{name: instantiate, from: nothing, to: whole, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted, ask: askInstantiate, kept: none},
	{
		name: scaleOut, from: whole, to: larger, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeOut), kept: all,
	},
	{
		name: scaleIn, from: larger, to: whole, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeIn), kept: less,
	},
	{
		name: healOne, from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted, prepare: pick,
		ask: asks("heal", func(_ *lane, s *subject) any {
			return sol003.HealVnfRequest{Cause: "a test", VnfcInstanceId: []string{s.patient}}
		}), kept: less,
	},
	{
		name: "HEAL of the whole", from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted,
		ask: asks("heal", func(*lane, *subject) any { return sol003.HealVnfRequest{Cause: "a test"} }), kept: none,
	},
	{
		name: "CHANGE_EXT_CONN", from: whole, to: whole, operation: sol003.LcmOperationTypeChangeExtConn, states: toCompleted,
		prepare: nextNetwork, ask: asks("change_ext_conn", moved), kept: all,
	},
	{
		name: "OPERATE stop", from: whole, to: stopped, operation: sol003.LcmOperationTypeOperate, states: toCompleted,
		ask: askOperate(sol003.VnfOperationalStateStopped), kept: all,
	},
	{
		name: "OPERATE start", from: stopped, to: whole, operation: sol003.LcmOperationTypeOperate, states: toCompleted,
		ask: askOperate(sol003.VnfOperationalStateStarted), kept: all,
	},
	{
		name: modify, from: whole, to: whole, operation: sol003.LcmOperationTypeModifyInfo, states: again, kept: all, short: true,
		prepare: func(_ context.Context, _ *lane, s *subject) error {
			s.description = fmt.Sprintf("the description of %d op occs", len(s.history))
			return nil
		},
		ask: func(ctx context.Context, l *lane, s *subject) (string, error) {
			return l.api().Modify(ctx, s.id, map[string]any{"vnfInstanceDescription": s.description})
		},
	},
	{
		name: terminate, from: whole, to: nothing, operation: sol003.LcmOperationTypeTerminate, states: toCompleted, kept: none,
		ask: func(ctx context.Context, l *lane, s *subject) (string, error) { return l.api().Terminate(ctx, s.id) },
	},

	// What fails, is canceled, tried again, undone and given up.
	{
		name: "INSTANTIATE that fails", from: nothing, to: failedUp, operation: sol003.LcmOperationTypeInstantiate, states: toFailedTemp,
		prepare: serverFails, ask: askInstantiate, plain: true,
	},
	{
		name: "rollback of INSTANTIATE", from: failedUp, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true, states: toRolledBack,
		ask: recovers("rollback", nil),
	},
	{
		name: "INSTANTIATE that waits", from: nothing, to: waiting, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		prepare: serversHang, ask: askInstantiate, until: "infra:stack-wait", plain: true,
	},
	{
		name: "cancel of INSTANTIATE", from: waiting, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], ask: recovers("cancel", map[string]any{"cancelMode": sol003.CancelModeTypeForceful}),
		over: normalAgain, short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", stackWaited}, armed: lookHangs,
	},
	{
		name: "rollback of what was canceled", from: canceled, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), plain: true,
	},
	{
		name: "fail of INSTANTIATE", from: failedUp, to: left, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: []sol003.LcmOperationState{sol003.LcmOperationStateFailed}, ask: recovers("fail", nil),
	},
	{
		name: "INSTANTIATE over what was left", from: left, to: whole, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted,
		ask: askInstantiate, plain: true,
	},
	{
		name: "retry of INSTANTIATE", from: failedUp, to: whole, operation: sol003.LcmOperationTypeInstantiate, again: true, states: again,
		ask: recovers("retry", nil),
	},
	{
		name: "SCALE out that fails", from: whole, to: failedOut, operation: sol003.LcmOperationTypeScale, states: toFailedTemp,
		prepare: serverFails, ask: askScale(sol003.ScaleVnfRequestTypeOut), plain: true, kept: all,
	},
	{
		name: "rollback of SCALE out", from: failedOut, to: whole, operation: sol003.LcmOperationTypeScale, again: true, states: toRolledBack,
		ask: recovers("rollback", nil), free: "heat update", // whoever takes over ends one that is under way, and asks for another
	},
	{
		name: "retry of SCALE out", from: failedOut, to: larger, operation: sol003.LcmOperationTypeScale, again: true, states: again,
		ask: recovers("retry", nil),
	},
}
