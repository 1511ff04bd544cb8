package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vnflcmapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// vnflcmVersion is the version of the VNF LCM API that is served.
const vnflcmVersion = "1.3.0"

// vnflcm implements the VNF LCM interface (SOL003 v2.6.1 §5).
type vnflcm struct{ *server }

var _ vnflcmapi.StrictServerInterface = vnflcm{}

// apiVersions answers an ApiVersionInformation of one version (SOL013 v2.6.1 §9.1), its members in the order in which
// the clients print them.
func apiVersions(prefix, version string) (response, error) {
	return response{&reply{status: http.StatusOK,
		body: []byte(`{"uriPrefix":"` + prefix + `","apiVersions":[{"version":"` + version + `","isDeprecated":false}]}`)}}, nil
}

func (v vnflcm) GetVnflcmApiVersions(context.Context, vnflcmapi.GetVnflcmApiVersionsRequestObject) (vnflcmapi.GetVnflcmApiVersionsResponseObject, error) {
	return apiVersions("/vnflcm", vnflcmVersion)
}

func (v vnflcm) GetVnflcmV1ApiVersions(context.Context, vnflcmapi.GetVnflcmV1ApiVersionsRequestObject) (vnflcmapi.GetVnflcmV1ApiVersionsResponseObject, error) {
	return apiVersions("/vnflcm/v1", vnflcmVersion)
}

func (v vnflcm) CreateVnfInstance(ctx context.Context, req vnflcmapi.CreateVnfInstanceRequestObject) (vnflcmapi.CreateVnfInstanceResponseObject, error) {
	i, err := v.deps.LCM.Create(ctx, callOf(ctx).scope, *req.Body)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(i.Representation())
	if err != nil {
		return nil, fmt.Errorf("write VNF instance %s: %w", i.ID, err)
	}
	return response{&reply{
		status: http.StatusCreated, etag: etag(i.Version, ""), location: v.cfg.EndpointURL + instances.path + "/" + i.ID,
		body: instances.appendRepresentation(nil, v.endpoint, i.ID, raw, selection{}),
	}}, nil
}

func (v vnflcm) ListVnfInstances(ctx context.Context, _ vnflcmapi.ListVnfInstancesRequestObject) (vnflcmapi.ListVnfInstancesResponseObject, error) {
	return v.list(ctx, instances, v.deps.Reader.Instances)
}

func (v vnflcm) GetVnfInstance(ctx context.Context, req vnflcmapi.GetVnfInstanceRequestObject) (vnflcmapi.GetVnfInstanceResponseObject, error) {
	b, err := v.deps.Reader.InstanceBody(ctx, callOf(ctx).scope, req.VnfInstanceId)
	if err != nil {
		return nil, err
	}
	return v.show(instances, b, req.Params.IfNoneMatch, ""), nil
}

func (v vnflcm) DeleteVnfInstance(ctx context.Context, req vnflcmapi.DeleteVnfInstanceRequestObject) (vnflcmapi.DeleteVnfInstanceResponseObject, error) {
	scope := callOf(ctx).scope
	version, err := v.wantedVersion(ctx, scope, req.VnfInstanceId, req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := v.deps.LCM.Delete(ctx, scope, req.VnfInstanceId, version); err != nil {
		return nil, err
	}
	return response{&reply{status: http.StatusNoContent}}, nil
}

// errPrecondition says that If-Match does not hold.
func errPrecondition(tags string) error {
	return lcm.Errorf(lcm.KindPrecondition, "The resource is not of a version that If-Match names: %s", clip(tags))
}

// wantedVersion returns the version that an If-Match header wants an instance to have, 0 for any (RFC 9110 §13.1.1).
func (v vnflcm) wantedVersion(ctx context.Context, scope lcm.Scope, id, ifMatch string) (int64, error) {
	tags := strings.TrimSpace(ifMatch)
	if tags == "" || tags == "*" {
		return 0, nil
	}
	// The one tag that the client has seen: compared by whoever deletes.
	if number, err := strconv.ParseInt(strings.Trim(tags, `"`), 10, 64); err == nil && number > 0 && tags == etag(number, "") {
		return number, nil
	}
	b, err := v.deps.Reader.InstanceBody(ctx, scope, id)
	if err != nil {
		return 0, err
	}
	if !matches(tags, etag(b.Version, ""), false) {
		return 0, errPrecondition(tags)
	}
	return b.Version, nil
}

// accepted answers an operation that has been accepted.
func (v vnflcm) accepted(opOccID string, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	return response{&reply{status: http.StatusAccepted, location: v.cfg.EndpointURL + opOccs.path + "/" + opOccID}}, nil
}

func (v vnflcm) InstantiateVnf(ctx context.Context, req vnflcmapi.InstantiateVnfRequestObject) (vnflcmapi.InstantiateVnfResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.Instantiate(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) ModifyVnfInstance(ctx context.Context, req vnflcmapi.ModifyVnfInstanceRequestObject) (vnflcmapi.ModifyVnfInstanceResponseObject, error) {
	c := callOf(ctx)
	version, err := v.wantedVersion(ctx, c.scope, req.VnfInstanceId, req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	opOccID, err := v.deps.LCM.Modify(ctx, c.scope, req.VnfInstanceId, c.raw, version)
	if lcm.Is(err, lcm.KindNotFound) {
		err = lcm.Errorf(lcm.KindNotFound, "Can not find requested vnf data: %s", req.VnfInstanceId)
	}
	return v.accepted(opOccID, err)
}

func (v vnflcm) ScaleVnf(ctx context.Context, req vnflcmapi.ScaleVnfRequestObject) (vnflcmapi.ScaleVnfResponseObject, error) {
	c := callOf(ctx)
	opOccID, err := v.deps.LCM.Scale(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw)
	if lcm.Is(err, lcm.KindNotFound) {
		err = lcm.Titled(lcm.KindNotFound, "VNF NOT FOUND", "Can not find requested vnf: %s", req.VnfInstanceId)
	}
	return v.accepted(opOccID, err)
}

func (v vnflcm) ScaleVnfToLevel(ctx context.Context, req vnflcmapi.ScaleVnfToLevelRequestObject) (vnflcmapi.ScaleVnfToLevelResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.ScaleToLevel(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) ChangeVnfFlavour(ctx context.Context, req vnflcmapi.ChangeVnfFlavourRequestObject) (vnflcmapi.ChangeVnfFlavourResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.ChangeFlavour(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) HealVnf(ctx context.Context, req vnflcmapi.HealVnfRequestObject) (vnflcmapi.HealVnfResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.Heal(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) OperateVnf(ctx context.Context, req vnflcmapi.OperateVnfRequestObject) (vnflcmapi.OperateVnfResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.Operate(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) ChangeExtVnfConnectivity(ctx context.Context, req vnflcmapi.ChangeExtVnfConnectivityRequestObject) (vnflcmapi.ChangeExtVnfConnectivityResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.ChangeExtConn(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) TerminateVnf(ctx context.Context, req vnflcmapi.TerminateVnfRequestObject) (vnflcmapi.TerminateVnfResponseObject, error) {
	c := callOf(ctx)
	return v.accepted(v.deps.LCM.Terminate(ctx, c.scope, req.VnfInstanceId, *req.Body, c.raw))
}

func (v vnflcm) ListVnfLcmOpOccs(ctx context.Context, _ vnflcmapi.ListVnfLcmOpOccsRequestObject) (vnflcmapi.ListVnfLcmOpOccsResponseObject, error) {
	return v.list(ctx, opOccs, v.deps.Reader.OpOccs)
}

func (v vnflcm) GetVnfLcmOpOcc(ctx context.Context, req vnflcmapi.GetVnfLcmOpOccRequestObject) (vnflcmapi.GetVnfLcmOpOccResponseObject, error) {
	b, err := v.deps.Reader.OpOccBody(ctx, callOf(ctx).scope, req.VnfLcmOpOccId)
	if err != nil {
		return nil, err
	}
	return v.show(opOccs, b, req.Params.IfNoneMatch, ""), nil
}

func (v vnflcm) RetryOperation(ctx context.Context, req vnflcmapi.RetryOperationRequestObject) (vnflcmapi.RetryOperationResponseObject, error) {
	return v.accepted(req.VnfLcmOpOccId, v.deps.LCM.Retry(ctx, callOf(ctx).scope, req.VnfLcmOpOccId))
}

func (v vnflcm) RollbackOperation(ctx context.Context, req vnflcmapi.RollbackOperationRequestObject) (vnflcmapi.RollbackOperationResponseObject, error) {
	return v.accepted(req.VnfLcmOpOccId, v.deps.LCM.Rollback(ctx, callOf(ctx).scope, req.VnfLcmOpOccId))
}

func (v vnflcm) CancelOperation(ctx context.Context, req vnflcmapi.CancelOperationRequestObject) (vnflcmapi.CancelOperationResponseObject, error) {
	return v.accepted(req.VnfLcmOpOccId, v.deps.LCM.Cancel(ctx, callOf(ctx).scope, req.VnfLcmOpOccId, req.Body.CancelMode))
}

func (v vnflcm) FailOperation(ctx context.Context, req vnflcmapi.FailOperationRequestObject) (vnflcmapi.FailOperationResponseObject, error) {
	scope := callOf(ctx).scope
	if err := v.deps.LCM.Fail(ctx, scope, req.VnfLcmOpOccId); err != nil {
		return nil, err
	}
	b, err := v.deps.Reader.OpOccBody(ctx, scope, req.VnfLcmOpOccId)
	if err != nil {
		return nil, err
	}
	return v.show(opOccs, b, "", ""), nil
}
