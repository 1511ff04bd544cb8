package lcm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

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
		if err := s.undoable(op); err != nil {
			return err
		}
		op.Afresh, op.Undone = true, true
		return nil
	})
}

// undoable tells why an operation cannot be undone; nil when it can.
func (s *Service) undoable(op *OpOcc) error {
	switch op.Operation {
	case sol003.LcmOperationTypeModifyInfo: // nothing is done before all is
		return nil
	case sol003.LcmOperationTypeScale:
		var req sol003.ScaleVnfRequest
		if json.Unmarshal(op.Params, &req) == nil && req.Type == sol003.ScaleVnfRequestTypeIn {
			return Titled(KindConflict, "SCALE_IN CAN NOT ROLLBACK", "SCALE_IN CAN NOT ROLLBACK")
		}
	case sol003.LcmOperationTypeScaleToLevel:
		var plan Plan
		if json.Unmarshal(op.Work[planOwner], &plan) == nil && leaves(&plan) {
			return Titled(KindConflict, "SCALE_IN CAN NOT ROLLBACK", "SCALE_IN CAN NOT ROLLBACK")
		}
	default:
	}
	var c choice
	if err := json.Unmarshal(op.Work[choiceOwner], &c); err != nil {
		return fmt.Errorf("read what was settled for op occ %s: %w", op.ID, err)
	}
	if op.Operation == sol003.LcmOperationTypeTerminate { // what is gone does not come back, whatever the VIM
		return Titled(KindConflict, "OPERATION IS NOT INSTANTIATE/SCALE", "%s cannot be rolled back; retry it, or give it up with fail.", op.Operation)
	}
	if c.VimType == "" { // accepted by a version that did not note it
		c.VimType = VimOpenStack
	}
	driver, err := s.Infra.Driver(c.VimType)
	if err != nil {
		return err
	}
	if !driver.Can(op.Operation, true) {
		return Titled(KindConflict, "OPERATION IS NOT INSTANTIATE/SCALE", "%s cannot be rolled back on VIMs of type %s; retry it, or give it up with fail.", op.Operation, c.VimType)
	}
	return nil
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
	s.probe(string(to) + "/accept/before")
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
	s.probe(string(to) + "/accept/after")
	return nil
}

// Cancel asks for a live operation to be canceled (SOL003 v2.6.1 §5.4.17): before its next step with GRACEFUL, at once with
// FORCEFUL. Conflict: it is not in STARTING, PROCESSING or ROLLING_BACK, or is being canceled already.
func (s *Service) Cancel(ctx context.Context, scope Scope, opOccID string, mode sol003.CancelModeType) error {
	s.probe("CANCEL/accept/before")
	err := s.Store.RequestCancel(ctx, scope, opOccID, mode, func(op *OpOcc) error {
		if !Live(op.State) {
			return Errorf(KindConflict, "Cancel operation in state %s is not allowed", op.State)
		}
		if op.CancelPending && (op.CancelMode == mode || op.CancelMode == sol003.CancelModeTypeForceful) {
			return Errorf(KindConflict, "The operation is being canceled already (%s).", op.CancelMode)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cancel op occ %s: %w", opOccID, err)
	}
	s.probe("CANCEL/accept/after")
	return nil
}

// rollbackSteps undoes an operation: the VIM is brought back to what it held before, with the hook that goes with what is
// taken away, and the instance is what it was.
func (r *run) rollbackSteps() ([]Step, error) {
	var steps []Step
	if r.op.Operation != sol003.LcmOperationTypeModifyInfo {
		before, after := "", ""
		switch r.op.Operation {
		case sol003.LcmOperationTypeInstantiate:
			after = "terminate_end"
		case sol003.LcmOperationTypeScale, sol003.LcmOperationTypeScaleToLevel:
			// The VNF has been told of the new members only by the hook that failed, or one after it.
			if strings.HasPrefix(r.op.FailedStep, "hook:scale_end:") || r.op.FailedStep == "finish" {
				before = "scale_start"
				r.x.Plan.Leaves = r.x.Plan.Adds
			}
		default:
		}
		hook, err := r.hook(before, nil)
		if err != nil {
			return nil, err
		}
		infra, err := r.infra()
		if err != nil {
			return nil, err
		}
		steps = append(hook, infra...)
		if hook, err = r.hook(after, nil); err != nil {
			return nil, err
		}
		steps = append(steps, hook...)
	}
	return append(steps, Step{Name: "rolled-back", own: true, last: true, Run: r.rolledBack}), nil
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
			switch v.ChangeType {
			case sol003.ChangeTypeAdded:
				v.ChangeType = sol003.ChangeTypeRemoved
			case sol003.ChangeTypeLinkPortAdded:
				v.ChangeType = sol003.ChangeTypeLinkPortRemoved
			default:
				continue
			}
			c.AffectedVirtualLinks = append(c.AffectedVirtualLinks, v)
		}
		for _, v := range c.AffectedVirtualStorages {
			if v.ChangeType == sol003.ChangeTypeAdded {
				v.ChangeType = sol003.ChangeTypeRemoved
				c.AffectedVirtualStorages = append(c.AffectedVirtualStorages, v)
			}
		}
	}
	now := x.Instance
	x.Instance = x.Before.Clone()
	x.Instance.Infra = now.Infra
	if sameLayout(now.Info, x.Before.Info) { // the driver has looked what the resources are now
		x.Instance.Info = now.Info
	}
	if r.op.Operation == sol003.LcmOperationTypeInstantiate {
		clearInstance(x.Instance)
	}
	return r.end(ctx, "rolled-back", sol003.LcmOperationStateRolledBack)
}

// clearInstance makes an instance consist of nothing.
func clearInstance(i *Instance) {
	i.State = sol003.InstantiationStateNotInstantiated
	i.Info, i.Request, i.VimConnections, i.Infra, i.VimID = nil, nil, nil, nil, ""
}
