package kubernetes

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

var _ lcm.Graceful = (*Driver)(nil)

// ShutsDown implements lcm.Graceful: Kubernetes tells the containers to end, and gives them time.
func (d *Driver) ShutsDown(operation sol003.LcmOperationType) bool {
	return operation == sol003.LcmOperationTypeTerminate || operation == sol003.LcmOperationTypeOperate
}

// ending is how pods are ended: within so many seconds, 0 for at once, nil for as many as they themselves ask for.
type ending struct{ most *int64 }

// endOf tells how an operation ends the VNF's pods (SOL003 v2.6.1 §5.5.2.8, §5.5.2.10): FORCEFUL at once; GRACEFUL within the
// timeout, which a pod on its own may take to the full and one that a workload has made as far as it asks for as much; without a
// timeout, and in operations that know of none, within the time that the pods ask for.
func endOf(x *lcm.Execution) ending {
	force := false
	switch x.Op.Operation {
	case sol003.LcmOperationTypeTerminate:
		var req sol003.TerminateVnfRequest
		force = x.Params(&req) == nil && req.TerminationType == sol003.TerminateVnfRequestTerminationTypeForceful
	case sol003.LcmOperationTypeOperate:
		var req sol003.OperateVnfRequest
		force = x.Params(&req) == nil && req.StopType == sol003.OperateVnfRequestStopTypeForceful
	default:
	}
	seconds := int64(x.Grace() / time.Second)
	if !force && seconds == 0 {
		return ending{}
	}
	return ending{&seconds}
}

// confirmed is how long a node may take beyond the timeout to say that a pod has ended. After that, the cluster forgets the pod:
// its node may be dead.
const confirmed = 5 * time.Second

// left is the seconds that a pod has which was told to end at some time: none when its time is over.
func (e ending) left(told, now time.Time) int64 {
	if now.Sub(told) >= time.Duration(*e.most)*time.Second+confirmed {
		return 0
	}
	return *e.most
}

// toldAt is when a pod that is going was told to end.
func toldAt(pod *unstructured.Unstructured) time.Time {
	told := pod.GetDeletionTimestamp().Time // with the time that it has
	if has := pod.GetDeletionGracePeriodSeconds(); has != nil {
		told = told.Add(-time.Duration(*has) * time.Second)
	}
	return told
}

// hasten has the pods of objects that are going end in time: theirs is cut. (It counts from when they were deleted, and cannot be
// made longer.) To delete them is up to whom they belong to: until that one is told, it would make them anew. Where we may not, they
// have the time that they ask for.
func (c *cluster) hasten(ctx context.Context, s *infra, w *work, end ending, now time.Time, of func(*object) bool) error {
	if end.most == nil {
		return nil
	}
	denied := func(err error) bool { return isForbidden(err) && !lcm.Is(err, lcm.KindRetryable) }
	by, err := c.podsBy(ctx, s)
	if denied(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := range s.Objects {
		o := &s.Objects[n]
		if !of(o) || o.UID == "" {
			continue
		}
		for _, pod := range by[o.UID] {
			if pod.GetDeletionTimestamp() == nil {
				continue
			}
			has, grace := pod.GetDeletionGracePeriodSeconds(), end.left(toldAt(pod), now)
			key := fmt.Sprintf("pod %s in %d s", pod.GetUID(), grace)
			if has != nil && *has <= grace || w.Asked[key] {
				continue
			}
			target := pods
			target.Name = pod.GetName()
			_, err := c.delete(ctx, &target, s.Namespace, deletion{uid: string(pod.GetUID()), grace: &grace})
			if err != nil && !denied(err) {
				return err
			}
			w.Asked = with(w.Asked, key)
		}
	}
	return nil
}
