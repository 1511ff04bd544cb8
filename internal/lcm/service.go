package lcm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Service takes the requests of the vnflcm API: it checks what can be checked at once and hands the rest over to the
// engine through the store, in one transaction.
type Service struct {
	Store    Store
	Packages Packages
	VIMs     VIMs
	Infra    InfraDrivers
	Now      func() time.Time
	NewID    func() string // UUIDv7 texts, so that ids sort by creation
	Probe    func(point string)
}

// Create makes a VNF instance from an onboarded and enabled package (SOL003 v2.6.1 §5.4.2.3.1). Errors: invalid with
// status 422 when the vnfdId is unknown or its package is disabled.
func (s *Service) Create(ctx context.Context, scope Scope, req sol003.CreateVnfRequest) (*Instance, error) {
	// What was known of the package a moment ago will do: the store looks again when it inserts.
	i, err := s.create(ctx, scope, req, true)
	if Is(err, KindConflict) {
		i, err = s.create(ctx, scope, req, false)
	}
	return i, err
}

func (s *Service) create(ctx context.Context, scope Scope, req sol003.CreateVnfRequest, recent bool) (*Instance, error) {
	p, err := s.Packages.PackageByVnfd(ctx, scope, req.VnfdId, recent)
	switch {
	case Is(err, KindNotFound):
		return nil, &Error{Kind: KindInvalid, Status: 422, Detail: fmt.Sprintf("Can not find requested vnf package vnfd: %s", req.VnfdId), Err: err}
	case err != nil:
		return nil, fmt.Errorf("find the package of VNFD %s: %w", req.VnfdId, err)
	case !recent && p.OperationalState != sol003.PackageOperationalStateTypeEnabled:
		return nil, &Error{Kind: KindInvalid, Status: 422, Detail: fmt.Sprintf("VNF package %s of VNFD %s is DISABLED; enable it first.", p.ID, req.VnfdId)}
	}
	i := &Instance{
		ID: s.NewID(), ProjectID: scope.ProjectID, Name: req.VnfInstanceName, Desc: req.VnfInstanceDescription,
		VnfdID: p.Descriptor.ID, PackageID: p.ID, Provider: p.Descriptor.Provider, ProductName: p.Descriptor.ProductName,
		SoftwareVersion: p.Descriptor.SoftwareVersion, VnfdVersion: p.Descriptor.Version,
		State: sol003.InstantiationStateNotInstantiated, Metadata: req.Metadata, Version: 1, Created: s.Now(),
	}
	if i.Name == "" {
		i.Name = "vnf-" + i.ID
	}
	if err := s.Store.CreateInstance(ctx, i); err != nil {
		return nil, fmt.Errorf("create a VNF instance of VNFD %s: %w", req.VnfdId, err)
	}
	return i, nil
}

// Delete removes a VNF instance (SOL003 v2.6.1 §5.4.3.3.5). ifMatch is the version that it must have, 0 for any.
func (s *Service) Delete(ctx context.Context, scope Scope, id string, ifMatch int64) error {
	if err := s.Store.DeleteInstance(ctx, scope, id, ifMatch); err != nil {
		return fmt.Errorf("delete VNF instance %s: %w", id, err)
	}
	return nil
}

// Instantiate accepts an InstantiateVnfRequest, of which raw is the body as it came, and returns the op occ's id
// (SOL003 v2.6.1 §5.4.4.3.1).
func (s *Service) Instantiate(ctx context.Context, scope Scope, id string, req sol003.InstantiateVnfRequest, raw json.RawMessage) (string, error) {
	i, err := s.instance(ctx, scope, id)
	if err != nil {
		return "", err
	}
	if i.State != sol003.InstantiationStateNotInstantiated {
		return "", stateConflict(i, "instantiate")
	}
	p, err := s.Packages.Onboarded(ctx, i.PackageID)
	if err != nil {
		return "", fmt.Errorf("find package %s of VNF instance %s: %w", i.PackageID, id, err)
	}
	f, ok := p.Descriptor.Flavour(req.FlavourId)
	if !ok {
		return "", Errorf(KindInvalid, "No flavour with id '%s'.", req.FlavourId)
	}
	if _, ok := f.Level(req.InstantiationLevelId); req.InstantiationLevelId != "" && !ok {
		return "", Errorf(KindInvalid, "No instantiation level with id '%s'.", req.InstantiationLevelId)
	}
	target, err := s.VIMs.Resolve(ctx, Scope{ProjectID: i.ProjectID, Admin: scope.Admin, User: scope.User}, req.VimConnectionInfo)
	if err != nil {
		return "", err
	}
	if i.VimID != "" && i.VimID != target.ID {
		return "", Errorf(KindConflict, "Vnf instance %s has resources in VIM %s, left by an operation that has failed. Instantiate it there.", i.ID, i.VimID)
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeInstantiate, Params: raw}, chosen(target), 0)
}

// instance reads the instance that an operation is asked for.
func (s *Service) instance(ctx context.Context, scope Scope, id string) (*Instance, error) {
	i, err := s.Store.Instance(ctx, scope, id)
	if Is(err, KindNotFound) {
		return nil, Errorf(KindNotFound, "Can not find requested vnf: %s", id)
	}
	return i, err
}

// choice is what was settled when the operation was accepted: later changes of defaults do not touch it. It is the
// domain's own work in an op occ.
type choice struct {
	VimID        string `json:"vimId,omitempty"`
	VimType      string `json:"vimType,omitempty"`
	Region       string `json:"region,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	PackageID    string `json:"packageId,omitempty"` // that a modification is to give the instance
}

func chosen(t *VimTarget) choice {
	return choice{VimID: t.ID, VimType: t.Type, Region: t.Region, ConnectionID: t.ConnectionID}
}

// connections is the choice as a request would name it.
func (c choice) connections() []sol003.VimConnectionInfo {
	conn := sol003.VimConnectionInfo{Id: c.ConnectionID, VimId: c.VimID}
	if c.Region != "" {
		conn.AccessInfo = map[string]any{"region": c.Region}
	}
	return []sol003.VimConnectionInfo{conn}
}

const choiceOwner = "lcm"

// accept inserts the op occ of an operation on the instance, which must still be in the state that it was read in. op has the
// operation and its parameters.
func (s *Service) accept(ctx context.Context, scope Scope, i *Instance, op *OpOcc, c choice, ifMatch int64) (string, error) {
	work, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("accept %s of VNF instance %s: %w", op.Operation, i.ID, err)
	}
	now := s.Now()
	op.ID, op.InstanceID, op.ProjectID, op.VimID, op.PackageID = s.NewID(), i.ID, i.ProjectID, c.VimID, c.PackageID
	op.State, op.StartTime, op.StateEnteredTime = sol003.LcmOperationStateStarting, now, now
	if op.Operation == sol003.LcmOperationTypeModifyInfo { // needs no grant (SOL003 v2.6.1 §5.6.2.3)
		op.State = sol003.LcmOperationStateProcessing
	}
	op.Fence, op.Seq, op.Work = 1, 1, Work{choiceOwner: work}
	s.probe(string(op.Operation) + "/accept/before")
	// What was checked must still hold: the instance is the one that was read.
	err = s.Store.Accept(ctx, scope, op, i.State, cmp.Or(ifMatch, i.Version))
	if ifMatch == 0 && Is(err, KindPrecondition) {
		return "", Errorf(KindConflict, "Vnf instance %s has just been changed by another operation. Look at it again before you start %s.", i.ID, op.Operation)
	}
	if err != nil {
		return "", err
	}
	s.probe(string(op.Operation) + "/accept/after")
	return op.ID, nil
}

func (s *Service) probe(point string) {
	if s.Probe != nil {
		s.Probe(point)
	}
}

func stateConflict(i *Instance, action string) error {
	return Errorf(KindConflict, "Vnf instance %s in instantiation_state %s. Cannot %s while the vnf instance is in this state.", i.ID, i.State, action)
}

// regionOf returns the region that the instance's VIM connection names, "" when none.
func regionOf(i *Instance) string {
	for _, c := range i.VimConnections {
		if r, ok := c.AccessInfo["region"].(string); ok && (c.VimId == "" || c.VimId == i.VimID) {
			return r
		}
	}
	return ""
}
