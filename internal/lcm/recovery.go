package lcm

import (
	"context"
	"fmt"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Retry has a failed operation go on at the step that failed (SOL003 v2.6.1 §5.4.14). Conflict: it is not in
// FAILED_TEMP.
func (s *Service) Retry(ctx context.Context, scope Scope, opOccID string) error {
	return s.recover(ctx, scope, opOccID, sol003.LcmOperationStateProcessing, func(op *OpOcc) error {
		if op.State != sol003.LcmOperationStateFailedTemp {
			return Errorf(KindConflict, "Cannot proceed with operation_state %s", op.State)
		}
		op.Error = nil
		// After a rollback that failed nothing is known to be as the journal says: all steps look again.
		op.Afresh = op.Undone
		op.Undone = false
		return nil
	})
}

// Rollback has a failed operation undone (SOL003 v2.6.1 §5.4.15). Conflict: it is not in FAILED_TEMP, or of a kind that
// cannot be undone.
func (s *Service) Rollback(ctx context.Context, scope Scope, opOccID string) error {
	return s.recover(ctx, scope, opOccID, sol003.LcmOperationStateRollingBack, func(op *OpOcc) error {
		if op.State != sol003.LcmOperationStateFailedTemp {
			return Titled(KindConflict, "OperationState IS NOT FAILED_TEMP", "OperationState IS NOT FAILED_TEMP")
		}
		if op.Operation != sol003.LcmOperationTypeInstantiate {
			return Titled(KindConflict, "OPERATION IS NOT INSTANTIATE/SCALE", "OPERATION IS NOT INSTANTIATE/SCALE")
		}
		op.Afresh, op.Undone = true, true
		return nil
	})
}

// Fail gives a failed operation up: what it has made stays as it is (SOL003 v2.6.1 §5.4.16). Conflict: it is not in
// FAILED_TEMP.
func (s *Service) Fail(ctx context.Context, scope Scope, opOccID string) error {
	return s.recover(ctx, scope, opOccID, sol003.LcmOperationStateFailed, func(op *OpOcc) error {
		if op.State != sol003.LcmOperationStateFailedTemp {
			return Errorf(KindConflict, "State is not FAILED_TEMP")
		}
		return nil
	})
}

// recover moves an op occ that check lets pass into a state, under the next fence, in one transaction with its
// notification and, if there is work to do in that state, its trigger.
func (s *Service) recover(ctx context.Context, scope Scope, opOccID string, to sol003.LcmOperationState, check func(*OpOcc) error) error {
	err := s.Store.Move(ctx, scope, opOccID, func(op *OpOcc) (StateEntered, error) {
		op.Afresh = false
		if err := check(op); err != nil {
			return StateEntered{}, err
		}
		op.State, op.StateEnteredTime = to, s.Now()
		op.Seq++
		op.Fence++
		return StateEntered{ID: s.NewID(), Seq: op.Seq, At: op.StateEnteredTime, Notification: op.Notification()}, nil
	})
	if err != nil {
		return fmt.Errorf("move op occ %s to %s: %w", opOccID, to, err)
	}
	return nil
}

// rollbackSteps undoes INSTANTIATE: what the VIM holds is removed, the hook that ends a termination is run, and the
// instance consists of nothing again.
func (r *run) rollbackSteps() ([]Step, error) {
	steps, err := r.infra()
	if err != nil {
		return nil, err
	}
	hook, err := r.hook("terminate_end")
	if err != nil {
		return nil, err
	}
	return append(append(steps, hook...), Step{Name: "rolled-back", own: true, Run: r.rolledBack}), nil
}

// rolledBack ends a rollback: what had been added is reported as removed, besides (SOL003 v2.6.1 §5.5.3.13, note).
func (r *run) rolledBack(ctx context.Context, x *Execution) (Progress, error) {
	if c := r.op.Changes; c != nil {
		for _, v := range c.AffectedVnfcs {
			if v.ChangeType == sol003.ChangeTypeAdded {
				v.ChangeType, v.RemovedStorageResourceIds, v.AddedStorageResourceIds = sol003.ChangeTypeRemoved, v.AddedStorageResourceIds, nil
				c.AffectedVnfcs = append(c.AffectedVnfcs, v)
			}
		}
		for _, v := range c.AffectedVirtualLinks {
			if v.ChangeType == sol003.ChangeTypeAdded {
				v.ChangeType = sol003.ChangeTypeRemoved
				c.AffectedVirtualLinks = append(c.AffectedVirtualLinks, v)
			}
		}
		for _, v := range c.AffectedVirtualStorages {
			if v.ChangeType == sol003.ChangeTypeAdded {
				v.ChangeType = sol003.ChangeTypeRemoved
				c.AffectedVirtualStorages = append(c.AffectedVirtualStorages, v)
			}
		}
	}
	clearInstance(x.Instance)
	return r.end(ctx, "rolled-back", sol003.LcmOperationStateRolledBack)
}

// clearInstance makes an instance consist of nothing.
func clearInstance(i *Instance) {
	i.State = sol003.InstantiationStateNotInstantiated
	i.Info, i.VimConnections, i.Infra, i.VimID = nil, nil, nil, ""
}
