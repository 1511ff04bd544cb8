package lcm

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// OpOcc is a lifecycle management operation occurrence (SOL003 v2.6.1 §5.5.2.13) with what its execution needs.
type OpOcc struct {
	ID         string
	InstanceID string
	ProjectID  string
	VimID      string // the registered VIM that it works in
	PackageID  string // the package that a modification is to give the instance, "" for none
	Operation  sol003.LcmOperationType
	State      sol003.LcmOperationState

	Params  json.RawMessage // the request body as it came: sealed at rest, redacted on output
	Auto    bool            // isAutomaticInvocation
	GrantID string

	StartTime        time.Time
	StateEnteredTime time.Time
	Error            *sol003.ProblemDetails
	Changes          *sol003.ResourceChanges
	ChangedInfo      *sol003.VnfInfoModifications
	ChangedExt       []sol003.ExtVirtualLinkInfo

	CancelPending bool
	CancelMode    sol003.CancelModeType

	// The execution.
	Owner string // the node that runs it, "" when nobody has yet
	Fence int64  // grows with every takeover
	Seq   int64  // grows with every state entered: the notification's place
	Step  string // the name of the step that was begun last
	// FailedStep is the step at which it failed last.
	FailedStep string
	Work       Work // sealed at rest
	// Undone says that a rollback has been begun since the operation went forward last.
	Undone bool
	// Afresh, in a Move, drops the whole journal and not only what was begun: each step is to look again at what is there.
	Afresh bool `json:"-"`
}

// Work is what the steps of one operation leave for one another and for the node that takes over: opaque JSON by step
// owner ("infra:openstack", "mgmt:…"), versioned by its owner.
type Work map[string]json.RawMessage

// with returns a copy in which the owner's work is raw: what has been stored keeps its own.
func (w Work) with(owner string, raw json.RawMessage) Work {
	out := maps.Clone(w)
	if out == nil {
		out = Work{}
	}
	out[owner] = raw
	return out
}

// Live states are those in which the engine has work to do.
func Live(s sol003.LcmOperationState) bool {
	return s == sol003.LcmOperationStateStarting || s == sol003.LcmOperationStateProcessing || s == sol003.LcmOperationStateRollingBack
}

// Active tells whether an op occ in the state blocks other operations of its instance (SOL003 v2.6.1 §5.6.2).
func Active(s sol003.LcmOperationState) bool {
	return Live(s) || s == sol003.LcmOperationStateFailedTemp
}

// Representation returns the op occ as the API shows it, without _links, secrets redacted.
func (o *OpOcc) Representation() *sol003.VnfLcmOpOcc {
	r := &sol003.VnfLcmOpOcc{
		Id: o.ID, OperationState: o.State, StateEnteredTime: o.StateEnteredTime, StartTime: o.StartTime,
		VnfInstanceId: o.InstanceID, GrantId: o.GrantID, Operation: o.Operation, IsAutomaticInvocation: o.Auto,
		IsCancelPending: o.CancelPending, CancelMode: o.CancelMode, Error: o.Error, ResourceChanges: o.Changes,
		ChangedInfo: o.ChangedInfo, ChangedExtConnectivity: o.ChangedExt,
	}
	var params map[string]any
	if json.Unmarshal(o.Params, &params) == nil {
		r.OperationParams = RedactMap(params)
	}
	return r
}

// Notification returns the VnfLcmOperationOccurrenceNotification of the state that the op occ is in now (SOL003 v2.6.1
// §5.5.2.17), without what differs by subscription (id, subscriptionId, timeStamp, _links).
func (o *OpOcc) Notification() *sol003.VnfLcmOperationOccurrenceNotification {
	n := &sol003.VnfLcmOperationOccurrenceNotification{
		NotificationType:   sol003.NotificationTypeVnfLcmOperationOccurrence,
		NotificationStatus: sol003.NotificationStatusStart, OperationState: o.State, VnfInstanceId: o.InstanceID,
		Operation: o.Operation, IsAutomaticInvocation: o.Auto, VnfLcmOpOccId: o.ID,
	}
	if Live(o.State) {
		return n
	}
	n.NotificationStatus = sol003.NotificationStatusResult
	n.Error, n.ChangedInfo, n.ChangedExtConnectivity = o.Error, o.ChangedInfo, o.ChangedExt
	if o.Changes != nil {
		n.AffectedVnfcs, n.AffectedVirtualLinks, n.AffectedVirtualStorages =
			o.Changes.AffectedVnfcs, o.Changes.AffectedVirtualLinks, o.Changes.AffectedVirtualStorages
	}
	return n
}

// StepRecord is a step's line in an op occ's journal.
type StepRecord struct {
	Seq     int
	Name    string
	Done    bool
	Tries   int
	BegunAt time.Time
	DoneAt  time.Time
}
