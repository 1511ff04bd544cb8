package lcm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// instantiated reads the instance that a task is for, which must be INSTANTIATED, and finds the VIM that it lives in, whose
// driver must be able to do the operation. Not found: also when the VNF does not support the task (SOL003 v2.6.1 §5.4.5.3.1).
func (s *Service) instantiated(ctx context.Context, scope Scope, id string, operation sol003.LcmOperationType, conflict func(*Instance) error) (*Instance, choice, error) {
	i, err := s.instance(ctx, scope, id)
	if err != nil {
		return nil, choice{}, err
	}
	if i.State != sol003.InstantiationStateInstantiated {
		return nil, choice{}, conflict(i)
	}
	target, err := s.VIMs.Resolve(ctx, Scope{ProjectID: i.ProjectID, Admin: true}, choice{VimID: i.VimID, Region: regionOf(i)}.connections())
	if err != nil {
		return nil, choice{}, fmt.Errorf("find VIM %s: %w", i.VimID, err)
	}
	driver, err := s.Infra.Driver(target.Type)
	if err != nil {
		return nil, choice{}, fmt.Errorf("VIM %s: %w", target.ID, err)
	}
	if !driver.Can(operation, false) {
		return nil, choice{}, &Error{Kind: KindUnsupported, Status: 404, Detail: fmt.Sprintf(
			"Vnf instance %s is in VIM %s of type %s, and %s is not supported there.", i.ID, target.ID, target.Type, operation)}
	}
	c := chosen(target)
	c.ConnectionID = ""
	return i, c, nil
}

func cannot(action string) func(*Instance) error {
	return func(i *Instance) error { return stateConflict(i, action) }
}

func notActive(*Instance) error {
	return Titled(KindConflict, "VNF IS NOT ACTIVE", "VNF IS NOT ACTIVE")
}

// flavour returns the instance's flavour of its package.
func (s *Service) flavour(ctx context.Context, i *Instance, id string) (*vnfd.Flavour, *Package, error) {
	p, err := s.Packages.Onboarded(ctx, i.PackageID)
	if err != nil {
		return nil, nil, fmt.Errorf("find package %s of VNF instance %s: %w", i.PackageID, i.ID, err)
	}
	f, ok := p.Descriptor.Flavour(id)
	if !ok {
		return nil, p, Errorf(KindInvalid, "No flavour with id '%s'.", id)
	}
	return f, p, nil
}

// Terminate accepts a TerminateVnfRequest, of which raw is the body as it came, and returns the op occ's id (SOL003
// v2.6.1 §5.4.8.3.1).
func (s *Service) Terminate(ctx context.Context, scope Scope, id string, _ sol003.TerminateVnfRequest, raw json.RawMessage) (string, error) {
	i, err := s.instance(ctx, scope, id)
	if err != nil {
		return "", err
	}
	if i.State != sol003.InstantiationStateInstantiated {
		return "", stateConflict(i, "terminate")
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeTerminate, Params: raw}, choice{VimID: i.VimID, Region: regionOf(i)}, 0)
}

// Scale accepts a ScaleVnfRequest (SOL003 v2.6.1 §5.4.5.3.1). Conflict: not instantiated, or a VNF that does not scale.
// Invalid: no such aspect, or beyond its levels.
func (s *Service) Scale(ctx context.Context, scope Scope, id string, req sol003.ScaleVnfRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeScale, notActive)
	if err != nil {
		return "", err
	}
	f, _, err := s.flavour(ctx, i, i.Info.FlavourId)
	if err != nil {
		return "", err
	}
	if len(i.Info.ScaleStatus) == 0 {
		return "", Titled(KindConflict, "NOT SCALE VNF", "NOT SCALE VNF")
	}
	level, known := scaleLevels(i.Info)[req.AspectId]
	aspect, ok := f.Aspect(req.AspectId)
	if !known || !ok {
		return "", Titled(KindInvalid, "aspectId not in ScaleStatus", "aspectId not in ScaleStatus")
	}
	steps := cmp.Or(req.NumberOfSteps, 1)
	switch {
	case req.Type == sol003.ScaleVnfRequestTypeIn && level < steps:
		return "", Titled(KindInvalid, "can not scale_in", "can not scale_in")
	case req.Type == sol003.ScaleVnfRequestTypeOut && steps > aspect.MaxLevel-level:
		return "", Titled(KindInvalid, "can not scale_out", "can not scale_out")
	}
	auto, _ := req.AdditionalParams["is_auto"].(string)
	op := &OpOcc{Operation: sol003.LcmOperationTypeScale, Params: raw, Auto: strings.EqualFold(auto, "true")}
	return s.accept(ctx, scope, i, op, c, 0)
}

// ScaleToLevel accepts a ScaleVnfToLevelRequest (SOL003 v2.6.1 §5.4.6.3.1). Errors as of Scale.
func (s *Service) ScaleToLevel(ctx context.Context, scope Scope, id string, req sol003.ScaleVnfToLevelRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeScaleToLevel, notActive)
	if err != nil {
		return "", err
	}
	f, _, err := s.flavour(ctx, i, i.Info.FlavourId)
	if err != nil {
		return "", err
	}
	if len(i.Info.ScaleStatus) == 0 {
		return "", Titled(KindConflict, "NOT SCALE VNF", "NOT SCALE VNF")
	}
	if req.InstantiationLevelId != "" {
		if _, ok := f.Level(req.InstantiationLevelId); !ok {
			return "", Errorf(KindInvalid, "No instantiation level with id '%s'.", req.InstantiationLevelId)
		}
	}
	known := scaleLevels(i.Info)
	for aspectID, level := range targetLevels(f, &req) {
		aspect, ok := f.Aspect(aspectID)
		if _, scales := known[aspectID]; !ok || !scales {
			return "", Titled(KindInvalid, "aspectId not in ScaleStatus", "scaleInfo: aspect '%s' is not in the VNF's scaleStatus", aspectID)
		}
		if level < 0 || level > aspect.MaxLevel {
			return "", Errorf(KindInvalid, "scaleInfo: scaleLevel %d of aspect '%s' is not between 0 and %d", level, aspectID, aspect.MaxLevel)
		}
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeScaleToLevel, Params: raw}, c, 0)
}

// ChangeFlavour accepts a ChangeVnfFlavourRequest (SOL003 v2.6.1 §5.4.7.3.1). Not found: the VNF has one flavour only.
func (s *Service) ChangeFlavour(ctx context.Context, scope Scope, id string, req sol003.ChangeVnfFlavourRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeChangeFlavour, cannot("change the flavour"))
	if err != nil {
		return "", err
	}
	f, p, err := s.flavour(ctx, i, req.NewFlavourId)
	if p != nil && len(p.Descriptor.Flavours) < 2 {
		return "", &Error{Kind: KindUnsupported, Status: 404, Detail: fmt.Sprintf("The VNFD of vnf instance %s has no other flavour than '%s'.", i.ID, i.Info.FlavourId)}
	}
	if err != nil {
		return "", err
	}
	if _, ok := f.Level(req.InstantiationLevelId); req.InstantiationLevelId != "" && !ok {
		return "", Errorf(KindInvalid, "No instantiation level with id '%s'.", req.InstantiationLevelId)
	}
	if req.NewFlavourId == i.Info.FlavourId {
		return "", Errorf(KindConflict, "Vnf instance %s has flavour '%s' already.", i.ID, req.NewFlavourId)
	}
	if err := s.sameVIM(ctx, scope, i, req.VimConnectionInfo); err != nil {
		return "", err
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeChangeFlavour, Params: raw}, c, 0)
}

// sameVIM refuses connections to another VIM than the one that the instance is in.
func (s *Service) sameVIM(ctx context.Context, scope Scope, i *Instance, conns []sol003.VimConnectionInfo) error {
	if len(conns) == 0 {
		return nil
	}
	target, err := s.VIMs.Resolve(ctx, Scope{ProjectID: i.ProjectID, Admin: scope.Admin, User: scope.User}, conns)
	if err != nil {
		return err
	}
	if target.ID != i.VimID {
		return Errorf(KindInvalid, "vimConnectionInfo names VIM %s, but vnf instance %s is in VIM %s.", target.ID, i.ID, i.VimID)
	}
	return nil
}

// Heal accepts a HealVnfRequest: of the VNFCs that it names (SOL002 v2.6.1 §5.5.2.9), else of the whole VNF (SOL003 v2.6.1
// §5.4.9.3.1).
func (s *Service) Heal(ctx context.Context, scope Scope, id string, req sol003.HealVnfRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeHeal, cannot("heal"))
	if err != nil {
		return "", err
	}
	for _, vnfc := range req.VnfcInstanceId {
		if !slices.ContainsFunc(i.Info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool { return v.Id == vnfc }) {
			return "", Errorf(KindInvalid, "Vnfc id %s not present in vnf instance %s", vnfc, i.ID)
		}
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeHeal, Params: raw}, c, 0)
}

// Operate accepts an OperateVnfRequest: start or stop (SOL003 v2.6.1 §5.4.10.3.1). Conflict: the VNF is in that state.
func (s *Service) Operate(ctx context.Context, scope Scope, id string, req sol003.OperateVnfRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeOperate, cannot("operate"))
	if err != nil {
		return "", err
	}
	if i.Info.VnfState == req.ChangeStateTo && !slices.ContainsFunc(i.Info.VnfcInfo, func(v sol003.VnfcInfo) bool { return v.VnfcState != req.ChangeStateTo }) {
		return "", Errorf(KindConflict, "Vnf instance %s is %s already.", i.ID, req.ChangeStateTo)
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeOperate, Params: raw}, c, 0)
}

// ChangeExtConn accepts a ChangeExtVnfConnectivityRequest (SOL003 v2.6.1 §5.4.11.3.1). Invalid: a connection point that the VNF
// does not have.
func (s *Service) ChangeExtConn(ctx context.Context, scope Scope, id string, req sol003.ChangeExtVnfConnectivityRequest, raw json.RawMessage) (string, error) {
	i, c, err := s.instantiated(ctx, scope, id, sol003.LcmOperationTypeChangeExtConn, func(*Instance) error {
		return Titled(KindConflict, "VNF IS NOT INSTANTIATED", "VNF is not instantiated")
	})
	if err != nil {
		return "", err
	}
	f, _, err := s.flavour(ctx, i, i.Info.FlavourId)
	if err != nil {
		return "", err
	}
	for _, ext := range req.ExtVirtualLinks {
		for _, cp := range ext.ExtCps {
			if !slices.ContainsFunc(f.CPs, func(known vnfd.CP) bool { return known.Name == cp.CpdId }) {
				return "", Errorf(KindInvalid, "extVirtualLinks: flavour '%s' has no connection point '%s'", f.ID, cp.CpdId)
			}
		}
	}
	if err := s.sameVIM(ctx, scope, i, req.VimConnectionInfo); err != nil {
		return "", err
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeChangeExtConn, Params: raw}, c, 0)
}

// Modify accepts a VnfInfoModificationRequest, a merge patch of which raw is the body as it came (SOL003 v2.6.1
// §5.4.3.3.4). ifMatch is the version that the instance must have, 0 for any. Invalid: a package that is not there, or has
// not the flavour that the instance has.
func (s *Service) Modify(ctx context.Context, scope Scope, id string, raw json.RawMessage, ifMatch int64) (string, error) {
	m, err := parseModification(raw)
	if err != nil {
		return "", err
	}
	i, err := s.instance(ctx, scope, id)
	if err != nil {
		return "", err
	}
	if _, given := m.patch["vimConnectionInfo"]; given && i.State != sol003.InstantiationStateInstantiated {
		return "", Errorf(KindInvalid, "vimConnectionInfo: vnf instance %s is %s; it has VIM connections once it is instantiated.", i.ID, i.State)
	}
	c := choice{VimID: i.VimID, Region: regionOf(i)}
	if i.State != sol003.InstantiationStateInstantiated {
		c = choice{}
	}
	if c.PackageID, err = s.modifiedPackage(ctx, scope, i, m); err != nil {
		return "", err
	}
	if err := s.staysWhere(ctx, scope, i, m); err != nil {
		return "", err
	}
	return s.accept(ctx, scope, i, &OpOcc{Operation: sol003.LcmOperationTypeModifyInfo, Params: raw}, c, ifMatch)
}

// staysWhere refuses a modification by which the instance's connections would lead to another VIM or region than the one that
// it lives in: what it consists of would be lost.
func (s *Service) staysWhere(ctx context.Context, scope Scope, i *Instance, m modification) error {
	if _, given := m.patch["vimConnectionInfo"]; !given {
		return nil
	}
	after := i.Clone()
	m.apply(after, nil)
	for _, conn := range after.VimConnections {
		if err := s.sameVIM(ctx, scope, i, []sol003.VimConnectionInfo{conn}); err != nil {
			return err
		}
	}
	if was, is := regionOf(i), regionOf(after); was != is {
		return Errorf(KindInvalid, "vimConnectionInfo: vnf instance %s is in region '%s' of its VIM; it cannot be moved to '%s'.", i.ID, was, is)
	}
	return nil
}

// modifiedPackage finds the package that a modification names by vnfdId or, without one, by vnfPkgId; "" when it names none or
// the one that the instance has.
func (s *Service) modifiedPackage(ctx context.Context, scope Scope, i *Instance, m modification) (string, error) {
	vnfdID, byVnfd := m.text("vnfdId")
	pkgID, byID := m.text("vnfPkgId")
	var p *Package
	var err error
	switch {
	case byVnfd && vnfdID != i.VnfdID:
		if p, err = s.Packages.PackageByVnfd(ctx, scope, vnfdID, false); Is(err, KindNotFound) {
			return "", Errorf(KindInvalid, "Can not find requested vnf package vnfd: %s", vnfdID)
		}
	case !byVnfd && byID && pkgID != i.PackageID:
		if p, err = s.Packages.Onboarded(ctx, pkgID); err == nil && p.ProjectID != i.ProjectID && !scope.Admin || Is(err, KindNotFound) {
			return "", Errorf(KindInvalid, "Can not find requested vnf package: %s", pkgID)
		}
	default:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if i.Info != nil {
		if _, ok := p.Descriptor.Flavour(i.Info.FlavourId); !ok {
			return "", Errorf(KindInvalid, "VNF package %s has no flavour '%s', which vnf instance %s has.", p.ID, i.Info.FlavourId, i.ID)
		}
	}
	return p.ID, nil
}
