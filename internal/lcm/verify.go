package lcm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// Verifier is what an InfraDriver implements besides when it can compare what is recorded of a VNF instance with what is
// there. It changes nothing, neither in the VIM nor in the Inspection.
type Verifier interface {
	// Verify returns how the instance's resources in the VIM differ from its record: those of the VNF as a whole first, then
	// in the order of the record. None: there is what is recorded. Retryable: the VIM does not answer; terminal: it refuses.
	Verify(ctx context.Context, in *Inspection) ([]Difference, error)
}

// Inspection is what a Verifier looks at.
type Inspection struct {
	Instance *Instance     // INSTANTIATED, and no operation is at it
	Target   *VimTarget    // the VIM that it lives in
	Flavour  *vnfd.Flavour // that it has
}

// DifferenceKind says how something differs.
type DifferenceKind string

// The kinds of differences.
const (
	DifferenceMissing    DifferenceKind = "MISSING"    // it is recorded, and gone
	DifferenceFailed     DifferenceKind = "FAILED"     // it is there, and broken
	DifferenceState      DifferenceKind = "STATE"      // it is stopped and recorded as STARTED, or the other way round
	DifferenceUnrecorded DifferenceKind = "UNRECORDED" // it is there, and not recorded
	DifferenceChanged    DifferenceKind = "CHANGED"    // it is another one, elsewhere, or not as it was made
	DifferenceBusy       DifferenceKind = "BUSY"       // somebody else is changing it just now
)

// DifferencePart says which part of a VNF differs.
type DifferencePart string

// The parts of a VNF instance: what its record has an id for (SOL003 v2.6.1 §5.5.3.5 to §5.5.3.9), and the whole.
const (
	PartVNF     DifferencePart = "VNF"
	PartVNFC    DifferencePart = "VNFC"
	PartStorage DifferencePart = "STORAGE"
	PartLink    DifferencePart = "LINK"
	PartPort    DifferencePart = "PORT"
)

// Difference is one way in which a VNF instance is not what is recorded of it.
type Difference struct {
	Kind DifferenceKind `json:"kind"`
	Part DifferencePart `json:"part"`
	// ID is the part's in the instance's record: of a VnfcResourceInfo, VirtualStorageResourceInfo,
	// VnfVirtualLinkResourceInfo or VnfLinkPortInfo; "" for what is not recorded and for the whole.
	ID string `json:"id,omitempty"`
	// Name is that of the descriptor that it is made from: a VDU, storage, virtual link or connection point.
	Name string `json:"name,omitempty"`
	// Resource is the resource in the VIM: the recorded one or, when none is recorded, the one that is there.
	Resource *sol003.ResourceHandle `json:"resource,omitempty"`
	Recorded string                 `json:"recorded,omitempty"` // what is recorded, for people
	Found    string                 `json:"found,omitempty"`    // what is there, for people
	Mend     Mend                   `json:"mend"`
}

// key tells differences apart from one look to the next.
func (d *Difference) key() string {
	resource := ""
	if d.Resource != nil {
		resource = d.Resource.ResourceId
	}
	return strings.Join([]string{string(d.Kind), string(d.Part), d.ID, resource}, "\x00")
}

// Mend is what ends a difference.
type Mend struct {
	// Operation is the LCM operation that does it, "" when none does.
	Operation sol003.LcmOperationType `json:"operation,omitempty"`
	// VnfcInstanceIDs are the VNFCs that a HEAL is to name; none: it heals the whole VNF.
	VnfcInstanceIDs []string `json:"vnfcInstanceId,omitempty"`
	// First is what is to be done outside before that, for people.
	First string `json:"first,omitempty"`
}

// HealOf returns the mend that is a HEAL of VNFCs, or of the whole VNF when none is named.
func HealOf(vnfcs ...string) Mend {
	return Mend{Operation: sol003.LcmOperationTypeHeal, VnfcInstanceIDs: vnfcs}
}

// String says it for people: "heal vnfcInstanceId …".
func (m Mend) String() string {
	var out []string
	if m.First != "" {
		out = append(out, m.First)
	}
	if m.Operation != "" {
		what := strings.ToLower(string(m.Operation))
		switch {
		case len(m.VnfcInstanceIDs) > 0:
			what += " vnfcInstanceId " + strings.Join(m.VnfcInstanceIDs, " ")
		case m.Operation == sol003.LcmOperationTypeHeal:
			what += " (the whole VNF)"
		}
		out = append(out, what)
	}
	return strings.Join(out, "; then ")
}

// Verification is what came of one look at a VNF instance.
type Verification struct {
	InstanceID  string
	VimID       string
	Version     int64 // of the instance that was looked at
	At          time.Time
	Since       time.Time // when it was first seen to differ, without having been seen not to since; zero while it does not
	Differences []Difference
}

// Verifications keeps what was last seen of each instance.
type Verifications interface {
	// Settled tells that no op occ is active on the instance. Conflict: one is, and which.
	Settled(ctx context.Context, instanceID string) error
	// RecordVerification keeps a verification in place of the last one, sets its Since, and returns the differences of the
	// last one. Conflict: the instance has changed since it was read, or an op occ is active on it.
	RecordVerification(ctx context.Context, v *Verification) (before []Difference, err error)
	// RecordUnverified keeps that the instance, in that version, could not be verified; what was last seen of it stays.
	RecordUnverified(ctx context.Context, instanceID string, at time.Time, reason string) error
	// Differing returns how many instances of each VIM were last seen to differ.
	Differing(ctx context.Context) (map[string]int, error)
	// VerifyTurn makes the caller the one who verifies all instances, until the Turn is ended. nil: somebody else is.
	VerifyTurn(ctx context.Context) (VerifyTurn, error)
}

// Due says which instances are to be verified: those that are INSTANTIATED in a VIM, have no active op occ, and were not looked
// at since Before.
type Due struct {
	Before time.Time
	// Changed has those, too, that have never been looked at or have changed since. All instances are read for them.
	Changed bool
}

// VerifyTurn is one node's turn to verify all instances. An error ends it.
type VerifyTurn interface {
	// VIMs returns the ids of the VIMs that have instances that are due.
	VIMs(ctx context.Context, due Due) ([]string, error)
	// Due returns the ids of instances of a VIM that are due: at most limit, in the order of ids, after the one given.
	Due(ctx context.Context, due Due, vimID, after string, limit int) ([]string, error)
	// End lets others have the turn.
	End()
}

// Inspector compares what is recorded of VNF instances with what is there.
type Inspector struct {
	Instances interface {
		Instance(ctx context.Context, s Scope, id string) (*Instance, error)
	}
	Packages Packages
	VIMs     VIMs
	Infra    InfraDrivers
	Records  Verifications
	Timeout  time.Duration // of one instance's verification; 0 means no limit
	Parallel int           // looks that are asked for (Verify) at a time, further ones wait; 0 means no limit
	Now      func() time.Time
	Log      *slog.Logger
	// Observe, if set, is told of each instance that was looked at: whether it was "same", "differs", or "failed" to be verified.
	Observe func(outcome string)
	// ObserveDiffering, if set, is told by Watch how many instances of each VIM differ.
	ObserveDiffering func(byVim map[string]int)

	flights flights
	begun   sync.Once
	asked   chan struct{} // a slot for each look that is asked for; nil means no limit
}

// Verify looks at a VNF instance, and keeps what it sees. Not found. Conflict: it is not INSTANTIATED, or an operation is under
// way or has failed and is not ended (FAILED_TEMP): what it consists of is not settled. Unsupported, with status 404: its
// VIM's driver cannot verify. Terminal, with status 502, and retryable: the VIM refuses, or does not answer. Those who ask for
// the same instance at the same time share one look and its result, which is not to be changed.
func (n *Inspector) Verify(ctx context.Context, scope Scope, id string) (*Verification, error) {
	if _, err := n.Instances.Instance(ctx, scope, id); err != nil {
		return nil, err
	}
	n.begun.Do(func() {
		if n.Parallel > 0 {
			n.asked = make(chan struct{}, n.Parallel)
		}
	})
	return n.flights.share(ctx, id, func(ctx context.Context) (*Verification, error) {
		if n.asked != nil {
			select {
			case n.asked <- struct{}{}:
				defer func() { <-n.asked }()
			case <-ctx.Done():
				return nil, fmt.Errorf("wait to verify VNF instance %s: %w", id, ctx.Err())
			}
		}
		return n.verify(ctx, id)
	})
}

// verify is Verify on nobody's behalf.
func (n *Inspector) verify(ctx context.Context, id string) (*Verification, error) {
	i, err := n.Instances.Instance(ctx, Scope{Admin: true}, id)
	if err != nil {
		return nil, err
	}
	if i.State != sol003.InstantiationStateInstantiated || i.Info == nil {
		return nil, stateConflict(i, "verify")
	}
	if err := n.Records.Settled(ctx, id); err != nil {
		return nil, err
	}
	verifier, in, err := n.prepare(ctx, i)
	if err != nil {
		return nil, err
	}
	v := &Verification{InstanceID: i.ID, VimID: in.Target.ID, Version: i.Version, At: n.Now()}
	if v.Differences, err = n.look(ctx, verifier, in); err != nil {
		n.observe("failed")
		return nil, err
	}
	before, err := n.Records.RecordVerification(ctx, v)
	if err != nil {
		return nil, err
	}
	n.compare(ctx, v, before)
	return v, nil
}

// prepare finds who verifies the instance, and what it takes.
func (n *Inspector) prepare(ctx context.Context, i *Instance) (Verifier, *Inspection, error) {
	target, err := n.VIMs.Resolve(ctx, Scope{ProjectID: i.ProjectID, Admin: true}, choice{VimID: i.VimID, Region: regionOf(i)}.connections())
	if err != nil {
		return nil, nil, fmt.Errorf("find VIM %s: %w", i.VimID, err)
	}
	driver, err := n.Infra.Driver(target.Type)
	if err != nil {
		return nil, nil, fmt.Errorf("VIM %s: %w", target.ID, err)
	}
	verifier, ok := driver.(Verifier)
	if !ok {
		return nil, nil, &Error{Kind: KindUnsupported, Status: 404, Detail: fmt.Sprintf(
			"Vnf instance %s is in VIM %s of type %s, and what is there cannot be compared with what is recorded.", i.ID, target.ID, target.Type)}
	}
	p, err := n.Packages.Onboarded(ctx, i.PackageID)
	if err != nil {
		return nil, nil, fmt.Errorf("find package %s of VNF instance %s: %w", i.PackageID, i.ID, err)
	}
	f, ok := p.Descriptor.Flavour(i.Info.FlavourId)
	if !ok {
		return nil, nil, Errorf(KindInternal, "VNF package %s has no flavour '%s', which vnf instance %s has", p.ID, i.Info.FlavourId, i.ID)
	}
	return verifier, &Inspection{Instance: i, Target: target, Flavour: f}, nil
}

// look has the driver compare. What a VIM refuses is no fault of this server.
func (n *Inspector) look(ctx context.Context, verifier Verifier, in *Inspection) ([]Difference, error) {
	limited := ctx
	if n.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, n.Timeout)
		defer cancel()
	}
	found, err := verifier.Verify(limited, in)
	var classed *Error
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() == nil && limited.Err() != nil:
		return nil, &Error{Kind: KindRetryable, Err: err, Detail: fmt.Sprintf(
			"VIM %s has not told within %s what there is of vnf instance %s.", in.Target.ID, n.Timeout, in.Instance.ID)}
	case errors.As(err, &classed) && classed.Kind == KindTerminal && classed.Status == 0:
		refused := *classed
		refused.Status = 502
		return nil, &refused
	}
	return nil, err
}

// compare logs what is new and what is over.
func (n *Inspector) compare(ctx context.Context, v *Verification, before []Difference) {
	known, now := map[string]bool{}, map[string]bool{}
	for k := range before {
		known[before[k].key()] = true
	}
	attrs := func(d *Difference) []any {
		out := []any{"vnfInstance", v.InstanceID, "vim", v.VimID, "difference", d.Kind, "part", d.Part, "id", d.ID, "name", d.Name}
		if d.Resource != nil {
			out = append(out, "resource", d.Resource.ResourceId)
		}
		return out
	}
	for k := range v.Differences {
		d := &v.Differences[k]
		now[d.key()] = true
		if !known[d.key()] {
			n.Log.WarnContext(ctx, "a VNF instance is not what is recorded of it",
				append(attrs(d), "recorded", d.Recorded, "found", d.Found, "mend", d.Mend.String())...)
		}
	}
	for k := range before {
		if d := &before[k]; !now[d.key()] {
			n.Log.InfoContext(ctx, "a difference between a VNF instance and its record is over", attrs(d)...)
		}
	}
	if len(v.Differences) > 0 {
		n.observe("differs")
	} else {
		n.observe("same")
	}
}

func (n *Inspector) observe(outcome string) {
	if n.Observe != nil {
		n.Observe(outcome)
	}
}
