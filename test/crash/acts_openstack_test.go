package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

const (
	// stackWaited is the point at which a node has looked at a stack that it waits for, groupScaled the step in which a group of
	// the sample's aspect is scaled.
	stackWaited = "INSTANTIATE/infra:stack-wait/after"
	groupScaled = "SCALE/infra:scale-ASPECT-1"
)

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

// serverHangs has one server take until [comes].
func serverHangs(_ context.Context, l *lane, _ *subject) error {
	l.Sim.Cloud.AddFault(vimsim.Fault{ID: "slow", ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectHang, Times: 1})
	return nil
}

// hanging waits until the VIM is at the server that hangs.
func hanging(ctx context.Context, l *lane, _ *subject) error {
	return harness.Await(ctx, "a server hangs", func(context.Context) (bool, error) { return len(l.Sim.Cloud.Faults()) == 0, nil })
}

// comes sees that the request to cancel stands and what is under way goes on, and has the server that hangs come.
func comes(ctx context.Context, l *lane, s *subject) error {
	o, err := l.api().OpOcc(ctx, s.op)
	if err != nil {
		return err
	}
	if o.OperationState != sol003.LcmOperationStateProcessing || !o.IsCancelPending || o.CancelMode != sol003.CancelModeTypeGraceful {
		return fmt.Errorf("while the VIM is at work the operation is %s, cancel pending: %v %s", o.OperationState, o.IsCancelPending, o.CancelMode)
	}
	if !l.Sim.Cloud.RemoveFault("slow") {
		return errors.New("no server hangs")
	}
	return nil
}

// askLevels asks for the levels of the sample's aspects.
func askLevels(ctx context.Context, l *lane, s *subject) (string, error) {
	var req sol003.ScaleVnfToLevelRequest
	for _, aspect := range slices.Sorted(maps.Keys(l.levels)) {
		req.ScaleInfo = append(req.ScaleInfo, sol003.ScaleInfo{AspectId: aspect, ScaleLevel: l.levels[aspect]})
	}
	return l.api().Task(ctx, s.id, "scale_to_level", req)
}

func cancels(mode sol003.CancelModeType) func(context.Context, *lane, *subject) (string, error) {
	return recovers("cancel", map[string]any{"cancelMode": mode})
}

// askFlavour asks for another flavour, in the networks in which the VNF is.
func askFlavour(of func(p sample) string) func(context.Context, *lane, *subject) (string, error) {
	return asks("change_flavour", func(l *lane, _ *subject) any {
		body := map[string]any{"newFlavourId": of(l.sample)}
		if req := deploy.InstantiateRequest(l.sample.name, of(l.sample)); req != nil {
			body["additionalParams"] = req["additionalParams"]
		}
		return body
	})
}

func another(p sample) string { return p.other }
func first(p sample) string   { return p.flavour }

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
		name: "SCALE_TO_LEVEL up", from: whole, to: leveled, operation: sol003.LcmOperationTypeScaleToLevel, states: toCompleted,
		ask: askLevels, spares: true,
	},
	{
		name: "SCALE_TO_LEVEL down", from: leveled, to: whole, operation: sol003.LcmOperationTypeScaleToLevel, states: toCompleted,
		ask: askLevel("instantiation_level_1"), spares: true, like: true,
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
		name: "CHANGE_FLAVOUR", from: whole, to: other, operation: sol003.LcmOperationTypeChangeFlavour, states: toCompleted,
		ask: askFlavour(another), spares: true,
	},
	{
		name: "CHANGE_FLAVOUR back", from: other, to: whole, operation: sol003.LcmOperationTypeChangeFlavour, states: toCompleted,
		ask: askFlavour(first), spares: true, plain: true,
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
		states: toFailedTemp[2:], ask: cancels(sol003.CancelModeTypeForceful), says: "canceled (FORCEFUL)",
		over: normalAgain, short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", stackWaited}, armed: lookHangs,
	},
	{
		name: "rollback of what was canceled", from: canceled, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), plain: true,
	},
	{
		name: "INSTANTIATE that takes long", from: nothing, to: coming, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		prepare: serverHangs, ask: askInstantiate, until: "infra:stack-wait", plain: true,
	},
	{
		name: "graceful cancel of INSTANTIATE", from: coming, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], prepare: hanging, ask: cancels(sol003.CancelModeTypeGraceful), goOn: comes, says: "canceled (GRACEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", stackWaited},
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
	{
		name: "SCALE out that takes long", from: whole, to: growing, operation: sol003.LcmOperationTypeScale, states: toCompleted[:2],
		prepare: serverHangs, ask: askScale(sol003.ScaleVnfRequestTypeOut), until: "infra:scale-", plain: true,
	},
	{
		name: "graceful cancel of SCALE out", from: growing, to: cutShort, operation: sol003.LcmOperationTypeScale, again: true,
		states: toFailedTemp[2:], prepare: hanging, ask: cancels(sol003.CancelModeTypeGraceful), goOn: comes, says: "canceled (GRACEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", groupScaled + "/after", groupScaled + "/recorded"},
	},
	{
		name: "rollback of SCALE out that was canceled", from: cutShort, to: whole, operation: sol003.LcmOperationTypeScale, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), free: "heat update", spares: true, restores: true,
		points: []string{"ROLLING_BACK/accept/after", "ROLLBACK-SCALE/infra:rollback-ASPECT/recorded"},
	},
	{
		name: "CHANGE_FLAVOUR that fails", from: other, to: failedAlt, operation: sol003.LcmOperationTypeChangeFlavour, states: toFailedTemp,
		prepare: serverFails, ask: askFlavour(first), plain: true,
	},
	{
		name: "rollback of CHANGE_FLAVOUR", from: failedAlt, to: other, operation: sol003.LcmOperationTypeChangeFlavour, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), restores: true, like: true,
	},
}
