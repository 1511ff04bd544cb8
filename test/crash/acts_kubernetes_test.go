package crash

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

const (
	changePackage = "MODIFY_INFO of the package"
	refused       = "INSTANTIATE that is refused"
)

// failedStop is a shape that there is besides.
const failedStop shape = "OPERATE stop failed"

// plane is the lane's cloud as a Kubernetes control plane.
func (l *lane) plane() *plane { return l.vim.(*plane) } //nolint:forcetypeassert // these acts are done on no other

// askCNF asks for an instantiation of manifests.
func askCNF(manifests ...any) func(context.Context, *lane, *subject) (string, error) {
	return asks("instantiate", func(l *lane, _ *subject) any {
		return map[string]any{
			"flavourId":         l.flavour,
			"vimConnectionInfo": []any{map[string]any{"id": "vim-of-the-test", "vimId": l.vimID, "vimType": "kubernetes"}},
			"additionalParams":  map[string]any{"lcm-kubernetes-def-files": manifests, "namespace": l.plane().ns},
		}
	})
}

var makeCNF = askCNF("Files/kubernetes/cnf.yaml")

// hastened is how the points begin of pods that are not gone yet and are told to be quick.
const hastened = "call:DELETE:pods/"

func askTerminate(how string) func(context.Context, *lane, *subject) (string, error) {
	return asks("terminate", func(*lane, *subject) any {
		body := map[string]any{"terminationType": how}
		if how == "GRACEFUL" {
			body["gracefulTerminationTimeout"] = 1
		}
		return body
	})
}

func askLevel(level string) func(context.Context, *lane, *subject) (string, error) {
	return asks("scale_to_level", func(*lane, *subject) any { return sol003.ScaleVnfToLevelRequest{InstantiationLevelId: level} })
}

// nameTaken has somebody else have a StatefulSet of the name that ours is to have: all that comes before is made.
func nameTaken(ctx context.Context, l *lane, _ *subject) error { return l.plane().takeName(ctx) }

// nameFree has the name be free again, and sees that the other's StatefulSet is as it was.
func nameFree(ctx context.Context, l *lane) error { return l.plane().freeName(ctx) }

// estranged has the instance's StatefulSet not be marked as the instance's: what comes before it is scaled, and it is not.
func estranged(ctx context.Context, l *lane, _ *subject) error { return l.plane().mark(ctx, "") }

// reconciled has it marked again.
func reconciled(ctx context.Context, l *lane, s *subject) error { return l.plane().mark(ctx, s.id) }

// The heal of an instance that was given another package makes it what that one says.
func asGiven(ctx context.Context, l *lane, s *subject) error {
	s.content = l.plane().next
	return pick(ctx, l, s)
}

// claimGone sees that the claim of the pod that has left is kept, and takes it away: what comes after is not to depend on what was
// before.
func claimGone(ctx context.Context, l *lane) error { return l.plane().removeClaim(ctx, "data-db-1") }

func two(have int) int { return have - 2 }

func askHeal(_ *lane, s *subject) any {
	return sol003.HealVnfRequest{Cause: "a test", VnfcInstanceId: []string{s.patient}}
}

// cancelStands sees that a request to cancel gracefully stands, and what is under way goes on.
func cancelStands(ctx context.Context, l *lane, s *subject) error {
	o, err := l.api().OpOcc(ctx, s.op)
	if err != nil {
		return err
	}
	if o.OperationState != sol003.LcmOperationStateProcessing || !o.IsCancelPending || o.CancelMode != sol003.CancelModeTypeGraceful {
		return fmt.Errorf("while the cluster is at work the operation is %s, cancel pending: %v %s", o.OperationState, o.IsCancelPending, o.CancelMode)
	}
	return nil
}

// lateComes has the image be there that is waited for.
func lateComes(ctx context.Context, l *lane, s *subject) error {
	if err := cancelStands(ctx, l, s); err != nil {
		return err
	}
	list, err := l.plane().podsOf(ctx, "app=late")
	if err == nil && len(list) == 0 {
		err = errors.New("nothing waits for its image")
	}
	for _, name := range list {
		err = errors.Join(err, l.plane().unblock(ctx, name))
	}
	return err
}

// ignoreGone drops the error that something is not there any more.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// cnfActs are all that there are, those of a life without failures first, in their order. An instance is given another package
// at its end: what the points are called depends on what it consists of.
var cnfActs = []act{
	{name: instantiate, from: nothing, to: whole, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted, ask: makeCNF, kept: none},
	{
		name: scaleOut, from: whole, to: larger, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeOut), kept: all,
	},
	{
		name: scaleIn, from: larger, to: whole, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeIn), kept: two, over: claimGone, like: true,
	},
	{
		name: "SCALE_TO_LEVEL up", from: whole, to: larger, operation: sol003.LcmOperationTypeScaleToLevel, states: toCompleted,
		ask: askLevel("large"), kept: all, like: true,
	},
	{
		name: "SCALE_TO_LEVEL down", from: larger, to: whole, operation: sol003.LcmOperationTypeScaleToLevel, states: toCompleted,
		ask: askLevel("small"), kept: two, over: claimGone, like: true,
	},
	{name: healOne, from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted, prepare: pick, ask: asks("heal", askHeal), kept: less},
	{
		name: "HEAL of the whole", from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted,
		ask: asks("heal", func(*lane, *subject) any { return sol003.HealVnfRequest{Cause: "a test"} }), kept: none, like: true,
	},
	{
		name: "OPERATE stop", from: whole, to: stopped, operation: sol003.LcmOperationTypeOperate, states: toCompleted,
		ask: askOperate(sol003.VnfOperationalStateStopped), kept: none,
	},
	{
		name: "OPERATE start", from: stopped, to: whole, operation: sol003.LcmOperationTypeOperate, states: toCompleted,
		ask: askOperate(sol003.VnfOperationalStateStarted), kept: none, like: true,
	},
	{
		name: terminate, from: whole, to: nothing, operation: sol003.LcmOperationTypeTerminate, states: toCompleted,
		ask: askTerminate("FORCEFUL"), kept: none, chance: hastened,
	},

	// What fails, is canceled, tried again, undone and given up.
	{
		name: refused, from: nothing, to: failedUp, operation: sol003.LcmOperationTypeInstantiate, states: toFailedTemp,
		prepare: nameTaken, ask: makeCNF, over: nameFree, plain: true,
	},
	{
		name: "rollback of INSTANTIATE", from: failedUp, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true, states: toRolledBack,
		prepare: nameTaken, ask: recovers("rollback", nil), over: nameFree,
	},
	{
		name: "INSTANTIATE that waits", from: nothing, to: waiting, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		ask: askCNF("Files/kubernetes/cnf.yaml", "Files/kubernetes/never.yaml"), until: "infra:ready", plain: true,
	},
	{
		name: "cancel of INSTANTIATE", from: waiting, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], ask: cancels(sol003.CancelModeTypeForceful), says: "canceled (FORCEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after"},
	},
	{
		name: "rollback of what was canceled", from: canceled, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), plain: true,
	},
	{
		name: "INSTANTIATE that takes long", from: nothing, to: coming, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		ask: askCNF("Files/kubernetes/cnf.yaml", "Files/kubernetes/late.yaml"), until: "infra:ready", plain: true,
	},
	{
		name: "graceful cancel of INSTANTIATE", from: coming, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], ask: cancels(sol003.CancelModeTypeGraceful), goOn: lateComes, says: "canceled (GRACEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", "INSTANTIATE/infra:ready/after"},
	},
	{
		name: "fail of INSTANTIATE", from: failedUp, to: left, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: []sol003.LcmOperationState{sol003.LcmOperationStateFailed}, ask: recovers("fail", nil),
	},
	{
		name: "INSTANTIATE over what was left", from: left, to: whole, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted,
		ask: makeCNF, like: true,
	},
	{
		name: "TERMINATE gracefully", from: whole, to: nothing, operation: sol003.LcmOperationTypeTerminate, states: toCompleted,
		ask: askTerminate("GRACEFUL"), kept: none, like: true, chance: hastened,
	},
	{
		name: "retry of INSTANTIATE", from: failedUp, to: whole, operation: sol003.LcmOperationTypeInstantiate, again: true, states: again,
		ask: recovers("retry", nil), like: true,
	},
	{
		name: "OPERATE stop that fails", from: whole, to: failedStop, operation: sol003.LcmOperationTypeOperate, states: toFailedTemp,
		prepare: estranged, ask: askOperate(sol003.VnfOperationalStateStopped), plain: true,
	},
	{
		name: "rollback of OPERATE stop", from: failedStop, to: whole, operation: sol003.LcmOperationTypeOperate, again: true, states: toRolledBack,
		prepare: reconciled, ask: recovers("rollback", nil),
	},
	{
		name: "SCALE out that fails", from: whole, to: failedOut, operation: sol003.LcmOperationTypeScale, states: toFailedTemp,
		prepare: estranged, ask: askScale(sol003.ScaleVnfRequestTypeOut), plain: true, kept: all,
	},
	{
		name: "rollback of SCALE out", from: failedOut, to: whole, operation: sol003.LcmOperationTypeScale, again: true, states: toRolledBack,
		prepare: reconciled, ask: recovers("rollback", nil),
	},
	{
		name: "retry of SCALE out", from: failedOut, to: larger, operation: sol003.LcmOperationTypeScale, again: true, states: again,
		prepare: reconciled, ask: recovers("retry", nil), like: true,
	},
	{
		name: changePackage, from: whole, to: given, operation: sol003.LcmOperationTypeModifyInfo, states: again, kept: all, short: true,
		ask: func(ctx context.Context, l *lane, s *subject) (string, error) {
			return l.api().Modify(ctx, s.id, map[string]any{"vnfdId": l.plane().nextID})
		},
	},
	{
		name: "HEAL after that", from: given, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted, kept: none,
		prepare: asGiven, ask: asks("heal", askHeal), like: true, free: "pods", // those of before may be made once more while they are replaced
	},
}
