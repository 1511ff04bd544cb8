package lcm

import (
	"context"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Store is what the domain needs of the database. Every method is one transaction. Errors are classed: not found,
// conflict, precondition, ErrStale.
type Store interface {
	// CreateInstance inserts the instance and its VnfIdentifierCreationNotification. Conflict: the package has been
	// deleted or disabled meanwhile.
	CreateInstance(ctx context.Context, i *Instance) error
	// Instance reads one instance, secrets unsealed.
	Instance(ctx context.Context, s Scope, id string) (*Instance, error)
	// DeleteInstance deletes an instance that is NOT_INSTANTIATED and has no active op occ, and inserts its
	// VnfIdentifierDeletionNotification. ifMatch is the version that it must have, 0 for any.
	DeleteInstance(ctx context.Context, s Scope, id string, ifMatch int64) error

	// Accept inserts the op occ with its START notification and its trigger, if the instance is in the state want, "" for
	// any, and has no active op occ; else conflict. ifMatch is the version that the instance must have, 0 for any; else
	// precondition.
	Accept(ctx context.Context, s Scope, op *OpOcc, want sol003.InstantiationState, ifMatch int64) error

	// RequestCancel records the request to cancel a live op occ that decide lets pass, and has whoever runs or will run it
	// look at it at once. Not found, or what decide returns.
	RequestCancel(ctx context.Context, s Scope, opOccID string, mode sol003.CancelModeType, decide func(*OpOcc) error) error

	// Move has decide change an op occ that nobody works on, and stores it with the notification of the state that it has
	// entered; lines of the journal of steps that were begun and not done are dropped (with Afresh, all), and a live op occ
	// gets a trigger.
	// Not found, or what decide returns.
	Move(ctx context.Context, s Scope, opOccID string, decide func(*OpOcc) (StateEntered, error)) error

	// Claim reads all that node needs to run a live op occ whose fence is given; node becomes the owner with its first
	// Commit. ErrStale when the fence has moved on or the op occ is not live any more.
	Claim(ctx context.Context, opOccID string, fence int64, node string) (*Claimed, error)
	// Commit applies a transition if the fence still holds, else ErrStale and nothing has changed. Nor has it when the stored
	// request to cancel is not the one that the Transition says was known: then *CancelRequestedError.
	Commit(ctx context.Context, t *Transition) error
}

// Claimed is an op occ that a node is to run.
type Claimed struct {
	Op       *OpOcc
	Instance *Instance
	Steps    []StepRecord // by Seq
}

// Transition is one durable change of an op occ: any of its parts may be empty.
type Transition struct {
	Op       *OpOcc                // as it is after the change; its Fence must be the stored one
	Asked    sol003.CancelModeType // the request to cancel that was known, "" for none
	Node     string                // who makes the change, for the journal
	Entered  []StateEntered        // the states that were entered with this change, in order: each with its notification
	Instance *Instance             // as it is after the change; nil: unchanged
	Steps    []StepRecord          // the journal's lines that are new or have changed
}

// CancelRequestedError says that a request to cancel the operation has come in.
type CancelRequestedError struct{ Mode sol003.CancelModeType }

// Error implements error.
func (c *CancelRequestedError) Error() string {
	return "the operation is to be canceled: " + string(c.Mode)
}

// StateEntered is an op occ's entering of a state, with the notification that tells of it.
type StateEntered struct {
	ID           string // the notification's
	Seq          int64
	At           time.Time
	Notification *sol003.VnfLcmOperationOccurrenceNotification
}

// InfraDriver deploys VNFs on one type of VIM.
type InfraDriver interface {
	// Type is the VIM type that the driver serves.
	Type() string
	// Can tells whether the driver can carry the operation out and, with undo, whether it can roll it back.
	Can(operation sol003.LcmOperationType, undo bool) bool
	// Leaving returns the steps that find out which VNFCs an operation (scale in) will take away, and put their ids into
	// the Execution's Plan.Leaves: before the grant is asked for and the VNF is told. They change nothing. None: those of
	// the aspect's VDUs that came last.
	Leaving(x *Execution) ([]Step, error)
	// Steps returns the steps that the operation takes in the VIM, for an Execution whose Op and Instance are set. It
	// has no effects and must return the same names for the same operation on every node and after every restart.
	// Unsupported: the driver cannot do this operation.
	Steps(x *Execution) ([]Step, error)
}

// Graceful is what an InfraDriver implements besides when its steps shut a VNF down gracefully themselves, within [Execution.Grace]:
// the VIM tells the VNF to end, which may take it less. Else the VNF is given that time before the driver's steps begin.
type Graceful interface {
	// ShutsDown tells whether the steps of the operation (TERMINATE, OPERATE) do so.
	ShutsDown(operation sol003.LcmOperationType) bool
}

// Undertake tells whether the Execution is a rollback, for an InfraDriver that is asked for its steps. Unsupported: the driver
// cannot carry the operation out, or not undo it.
func (x *Execution) Undertake(d InfraDriver) (undo bool, err error) {
	undo = x.Op.State == sol003.LcmOperationStateRollingBack
	if d.Can(x.Op.Operation, undo) {
		return undo, nil
	}
	what := string(x.Op.Operation)
	if undo {
		what = "rolling back " + what
	}
	return undo, Errorf(KindUnsupported, "%s is not supported on VIMs of type %s", what, d.Type())
}

// InfraDrivers finds the InfraDriver of a VIM type. Terminal: there is none.
type InfraDrivers interface {
	Driver(vimType string) (InfraDriver, error)
}

// MgmtDriver configures a VNF at the hooks that its VNFD declares (SOL001, tosca.interfaces.nfv.Vnflcm).
type MgmtDriver interface {
	// Steps returns the steps of a hook ("instantiate_start", "terminate_end", …), with the contract of
	// InfraDriver.Steps. None: nothing to do.
	Steps(hook string, x *Execution) ([]Step, error)
}

// Granter asks for permission before an operation uses resources (SOL003 v2.6.1 §9).
type Granter interface {
	// Asks tells whether somebody outside is asked: then the step's intent is recorded before.
	Asks() bool
	// Grant returns the grant, or Wait when the NFVO has not decided. Forbidden: refused.
	Grant(ctx context.Context, x *Execution) (*Grant, Progress, error)
}

// Packages gives the domain access to onboarded packages.
type Packages interface {
	// PackageByVnfd returns the onboarded package that holds the VNFD, with its Descriptor; with recent, possibly as it was
	// a while ago. Not found.
	PackageByVnfd(ctx context.Context, s Scope, vnfdID string, recent bool) (*Package, error)
	// Onboarded returns a package that an instance refers to, as it was onboarded: what never changes after that. Not
	// found; conflict when it is not ONBOARDED.
	Onboarded(ctx context.Context, id string) (*Package, error)
	// Open opens the content of an onboarded package. The caller closes it.
	Open(ctx context.Context, packageID string) (PackageFS, error)
}

// VIMs gives the domain access to registered VIMs.
type VIMs interface {
	// Resolve finds the VIM that an operation is to use, by tacker-compatible rules: vimConnectionInfo's vimId if it
	// names one, else the project's default VIM. Errors (invalid): "VimConnection id is not found: …", "Default VIM is
	// not defined.", "Region not found for the VimConnection: …".
	Resolve(ctx context.Context, s Scope, conns []sol003.VimConnectionInfo) (*VimTarget, error)
}
