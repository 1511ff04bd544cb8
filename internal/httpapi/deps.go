package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Deps is what the API needs of the rest of the program.
type Deps struct {
	LCM           LCM
	Reader        Reader
	Packages      Packages
	VIMs          VIMs
	Subscriptions Subscriptions

	// Verifier and Verifications, where they are given, compare instances with what is there; else there are no such routes.
	Verifier      Verifier
	Verifications Verifications
}

// LCM accepts lifecycle management requests (SOL003 v2.6.1 §5.4). Errors are classed by lcm.Kind.
type LCM interface {
	// Create makes a VNF instance, NOT_INSTANTIATED (§5.4.2.3.1). Invalid or not found: no such VNFD, or no default VIM.
	Create(ctx context.Context, s lcm.Scope, req sol003.CreateVnfRequest) (*lcm.Instance, error)
	// Delete deletes a VNF instance (§5.4.3.3.5). ifMatch is the version that it must have, 0 for any. Not found,
	// conflict, precondition.
	Delete(ctx context.Context, s lcm.Scope, id string, ifMatch int64) error
	// Instantiate accepts an instantiation (§5.4.4.3.1). raw is the request body as it came, numbers normalised. It
	// returns the op occ's id. Invalid, not found, conflict.
	Instantiate(ctx context.Context, s lcm.Scope, id string, req sol003.InstantiateVnfRequest, raw json.RawMessage) (opOccID string, err error)
	// Terminate accepts a termination (§5.4.8.3.1), as Instantiate does an instantiation.
	Terminate(ctx context.Context, s lcm.Scope, id string, req sol003.TerminateVnfRequest, raw json.RawMessage) (opOccID string, err error)
	// Scale (§5.4.5.3.1), ScaleToLevel (§5.4.6.3.1), ChangeFlavour (§5.4.7.3.1), Heal (§5.4.9.3.1), Operate (§5.4.10.3.1) and
	// ChangeExtConn (§5.4.11.3.1) accept an operation as Instantiate does. Not found with these also: a VNF, or a VIM, that
	// does not support the operation.
	Scale(ctx context.Context, s lcm.Scope, id string, req sol003.ScaleVnfRequest, raw json.RawMessage) (opOccID string, err error)
	ScaleToLevel(ctx context.Context, s lcm.Scope, id string, req sol003.ScaleVnfToLevelRequest, raw json.RawMessage) (opOccID string, err error)
	ChangeFlavour(ctx context.Context, s lcm.Scope, id string, req sol003.ChangeVnfFlavourRequest, raw json.RawMessage) (opOccID string, err error)
	Heal(ctx context.Context, s lcm.Scope, id string, req sol003.HealVnfRequest, raw json.RawMessage) (opOccID string, err error)
	Operate(ctx context.Context, s lcm.Scope, id string, req sol003.OperateVnfRequest, raw json.RawMessage) (opOccID string, err error)
	ChangeExtConn(ctx context.Context, s lcm.Scope, id string, req sol003.ChangeExtVnfConnectivityRequest, raw json.RawMessage) (opOccID string, err error)
	// Modify accepts a merge patch of an instance's information (§5.4.3.3.4), a VnfInfoModificationRequest that is raw.
	// ifMatch is the version that the instance must have, 0 for any. Invalid, not found, conflict, precondition.
	Modify(ctx context.Context, s lcm.Scope, id string, raw json.RawMessage, ifMatch int64) (opOccID string, err error)
	// Cancel asks for a running operation to be canceled (§5.4.17). Not found, conflict.
	Cancel(ctx context.Context, s lcm.Scope, opOccID string, mode sol003.CancelModeType) error
	// Retry has a failed operation go on (§5.4.14), Rollback has it undone (§5.4.15), Fail gives it up (§5.4.16). Not
	// found, conflict.
	Retry(ctx context.Context, s lcm.Scope, opOccID string) error
	Rollback(ctx context.Context, s lcm.Scope, opOccID string) error
	Fail(ctx context.Context, s lcm.Scope, opOccID string) error
}

// Reader reads stored representations. The bodies have no _links; a body may only be used until the next one of the
// same list is asked for. A list ends with its first error.
type Reader interface {
	// InstanceBody reads a VnfInstance. Not found.
	InstanceBody(ctx context.Context, s lcm.Scope, id string) (lcm.Body, error)
	// Instances lists VnfInstances.
	Instances(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
	// OpOccBody reads a VnfLcmOpOcc. Not found.
	OpOccBody(ctx context.Context, s lcm.Scope, id string) (lcm.Body, error)
	// OpOccs lists VnfLcmOpOccs.
	OpOccs(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
	// SubscriptionBody reads an LccnSubscription. Not found.
	SubscriptionBody(ctx context.Context, s lcm.Scope, id string) (lcm.Body, error)
	// Subscriptions lists LccnSubscriptions.
	Subscriptions(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
	// PackageBody reads a VnfPkgInfo, its usageState as it is now. Not found.
	PackageBody(ctx context.Context, s lcm.Scope, id string) (lcm.Body, error)
	// Packages lists VnfPkgInfos.
	Packages(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
}

// Subscriptions manages subscriptions to notifications of lifecycle changes (SOL003 v2.6.1 §5.4.18-19).
type Subscriptions interface {
	// Subscribe tries the callback and makes a subscription. raw is the request body, normalised. *lcm.SubscribedError: there is
	// one with the same callback and filter. Invalid: the callback may not be called, does not answer as it should, or cannot
	// be authenticated to.
	Subscribe(ctx context.Context, s lcm.Scope, req sol003.LccnSubscriptionRequest, raw json.RawMessage) (*lcm.Subscription, error)
	// Unsubscribe ends a subscription, with all that is to be delivered to it. Not found.
	Unsubscribe(ctx context.Context, s lcm.Scope, id string) error
}

// Packages manages VNF packages (SOL005 v2.6.1 §9.4).
type Packages interface {
	// Create makes a package resource, CREATED.
	Create(ctx context.Context, s lcm.Scope, userDefinedData map[string]any) (*lcm.Package, error)
	// Update changes a package and returns what changed; hasUserData tells a userDefinedData that was given from none.
	Update(ctx context.Context, s lcm.Scope, id string, mods sol003.VnfPkgInfoModifications, hasUserData bool) (*sol003.VnfPkgInfoModifications, error)
	// Delete deletes a package. Not found, conflict.
	Delete(ctx context.Context, s lcm.Scope, id string) error
	// Upload stores the zip that body streams and has it onboarded. Not found, conflict, too large.
	Upload(ctx context.Context, s lcm.Scope, id string, body io.Reader) error
	// UploadFromURI has a zip downloaded and onboarded. Not found, conflict, invalid.
	UploadFromURI(ctx context.Context, s lcm.Scope, id string, req sol003.UploadVnfPackageFromUriRequest) error
	// Content opens the zip of an onboarded package and tells its size in bytes. The caller closes it.
	Content(ctx context.Context, s lcm.Scope, id string) (io.ReadSeekCloser, int64, error)
	// Vnfd opens the files of which the VNFD of an onboarded package consists: the paths of its YAML files and of
	// TOSCA.meta, if there is one, to be read from the PackageFS, which the caller closes.
	Vnfd(ctx context.Context, s lcm.Scope, id string) (files []string, content lcm.PackageFS, err error)
	// Artifact opens one of a package's additional artifacts and tells its size in bytes. The caller closes it.
	Artifact(ctx context.Context, s lcm.Scope, id, path string) (io.ReadSeekCloser, int64, error)
}

// VIMs manages registered VIMs. What it returns may hold secrets; the API masks them.
type VIMs interface {
	// Register checks and stores a VIM; ID, Status, Regions and Created are filled in. Conflict, invalid, unavailable.
	Register(ctx context.Context, s lcm.Scope, v lcm.VIM) (*lcm.VIM, error)
	// List lists the VIMs that the scope may see.
	List(ctx context.Context, s lcm.Scope) ([]lcm.VIM, error)
	// Get reads a VIM. Not found.
	Get(ctx context.Context, s lcm.Scope, id string) (*lcm.VIM, error)
	// Update changes a VIM. Not found, conflict, invalid, unavailable.
	Update(ctx context.Context, s lcm.Scope, id string, c lcm.VIMChange) (*lcm.VIM, error)
	// Delete removes a VIM. Not found; conflict while it is in use.
	Delete(ctx context.Context, s lcm.Scope, id string) error
}
