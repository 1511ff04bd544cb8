package crash

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// released is what the release of a CNF of a chart is called.
const released = "cnf"

// askChart asks for an instantiation of the package's chart.
func askChart(values ...any) func(context.Context, *lane, *subject) (string, error) {
	return asks("instantiate", func(l *lane, _ *subject) any {
		return map[string]any{
			"flavourId":         l.flavour,
			"vimConnectionInfo": []any{map[string]any{"id": "vim-of-the-test", "vimId": l.vimID, "vimType": "kubernetes"}},
			"additionalParams": map[string]any{
				"use_helm": "true", "namespace": l.plane().ns, "helm_replica_values": map[string]any{l.aspect: "replicas"},
				"using_helm_install_param": []any{map[string]any{
					"exthelmchart": "false", "helmchartfile_path": chartPath, "helmreleasename": released, "helmparameter": append([]any{}, values...),
				}},
			},
		}
	})
}

// waitsForHook waits until helm waits for the chart's hook.
func waitsForHook(ctx context.Context, l *lane, _ *subject) error {
	return harness.Await(ctx, "the hook waits for its image", func(ctx context.Context) (bool, error) {
		list, err := l.plane().hooks(ctx)
		return len(list) > 0, err
	})
}

// hookEnds has the image be there for which the hook waits, and once more if the hook is run anew, until the operation has ended.
func hookEnds(ctx context.Context, l *lane, s *subject) error {
	if err := cancelStands(ctx, l, s); err != nil {
		return err
	}
	return harness.Await(ctx, "the operation has ended after its hook", func(ctx context.Context) (bool, error) {
		list, err := l.plane().hooks(ctx)
		for _, name := range list {
			err = errors.Join(err, l.plane().unblock(ctx, name))
		}
		if err != nil {
			return false, err
		}
		return l.ended(ctx, s.op)
	})
}

// hooks returns the pods of the chart's hook.
func (p *plane) hooks(ctx context.Context) ([]string, error) {
	return p.podsOf(ctx, "job-name=hook")
}

// podsOf returns the names of the pods with a label that are not on their way out.
func (p *plane) podsOf(ctx context.Context, label string) ([]string, error) {
	list, err := p.objects.Resource(pods).Namespace(p.ns).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	var out []string
	for n := range list.Items {
		if u := &list.Items[n]; u.GetDeletionTimestamp() == nil {
			out = append(out, u.GetName())
		}
	}
	return out, nil
}

// unblock has a pod's image be there. That the pod is gone meanwhile is no error.
func (p *plane) unblock(ctx context.Context, pod string) error {
	_, err := p.objects.Resource(pods).Namespace(p.ns).Patch(ctx, pod, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"vnfm.lab/pull":null}}}`), metav1.PatchOptions{FieldManager: fieldManager})
	return ignoreGone(err)
}

// chartActs are what is asked of a CNF of a chart, those of a life without failures first. Nodes die around what helm does, and
// where a step has just been recorded or not: all other points are those of the CNFs of manifests.
var chartActs = []act{
	{
		name: instantiate, from: nothing, to: whole, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted, ask: askChart(), kept: none,
		points: []string{
			"INSTANTIATE/accept/after", "INSTANTIATE/infra:manifests/after", "INSTANTIATE/infra:apply/before", "INSTANTIATE/infra:apply/after",
			"INSTANTIATE/infra:apply/recorded", "INSTANTIATE/infra:ready/after", "INSTANTIATE/finish/recorded",
		},
	},
	{
		name: scaleOut, from: whole, to: larger, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeOut), kept: all,
		points: []string{"SCALE/infra:scale/before", "SCALE/infra:scale/after", "SCALE/infra:scale/recorded", "SCALE/infra:scale-wait/after"},
	},
	{
		name: scaleIn, from: larger, to: whole, operation: sol003.LcmOperationTypeScale, states: toCompleted,
		ask: askScale(sol003.ScaleVnfRequestTypeIn), kept: two, over: claimGone, points: []string{"SCALE/infra:scale/after", "SCALE/infra:scale/recorded"},
	},
	{
		name: healOne, from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted, prepare: pick, ask: asks("heal", askHeal),
		kept: less, points: []string{"HEAL/infra:pods-delete/before", "HEAL/infra:pods-delete/after", "HEAL/infra:pods-delete/recorded"},
	},
	{
		name: "HEAL of the whole", from: whole, to: whole, operation: sol003.LcmOperationTypeHeal, states: toCompleted,
		ask: asks("heal", func(*lane, *subject) any { return sol003.HealVnfRequest{Cause: "a test"} }), kept: none,
		points: []string{
			"HEAL/infra:respawn-check/after", "HEAL/infra:respawn-delete/before", "HEAL/infra:respawn-delete/after", "HEAL/infra:respawn-delete/recorded",
			"HEAL/infra:apply/after", "HEAL/infra:apply/recorded",
		},
	},
	{
		name: terminate, from: whole, to: nothing, operation: sol003.LcmOperationTypeTerminate, states: toCompleted,
		ask: askTerminate("FORCEFUL"), kept: none,
		points: []string{"TERMINATE/accept/after", "TERMINATE/infra:delete/before", "TERMINATE/infra:delete/after", "TERMINATE/infra:delete/recorded"},
	},

	// What is canceled while helm waits for a hook.
	{
		name: "INSTANTIATE that waits", from: nothing, to: waiting, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		ask: askChart("hook=true"), until: "infra:apply", plain: true,
	},
	{
		name: "cancel of INSTANTIATE", from: waiting, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], prepare: waitsForHook, ask: cancels(sol003.CancelModeTypeForceful), says: "canceled (FORCEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after", "INSTANTIATE/infra:apply/after"},
	},
	{
		name: "rollback of what was canceled", from: canceled, to: nothing, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toRolledBack, ask: recovers("rollback", nil), plain: true,
	},
	{
		name: "INSTANTIATE that takes long", from: nothing, to: coming, operation: sol003.LcmOperationTypeInstantiate, states: toCompleted[:2],
		ask: askChart("hook=true"), until: "infra:apply", plain: true,
	},
	{
		name: "graceful cancel of INSTANTIATE", from: coming, to: canceled, operation: sol003.LcmOperationTypeInstantiate, again: true,
		states: toFailedTemp[2:], prepare: waitsForHook, ask: cancels(sol003.CancelModeTypeGraceful), goOn: hookEnds, says: "canceled (GRACEFUL)",
		short: true, points: []string{"CANCEL/accept/before", "CANCEL/accept/after"},
	},
}
