package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vnfpkgmapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// vnfpkgmVersion is the version of the VNF package management API that is served.
const vnfpkgmVersion = "1.3.0"

// vnfpkgm implements the VNF package management interface (SOL005 v2.6.1 §9, SOL003 v2.6.1 §10).
type vnfpkgm struct{ *server }

var _ vnfpkgmapi.StrictServerInterface = vnfpkgm{}

func (v vnfpkgm) GetVnfpkgmApiVersions(context.Context, vnfpkgmapi.GetVnfpkgmApiVersionsRequestObject) (vnfpkgmapi.GetVnfpkgmApiVersionsResponseObject, error) {
	return apiVersions("/vnfpkgm", vnfpkgmVersion)
}

func (v vnfpkgm) GetVnfpkgmV1ApiVersions(context.Context, vnfpkgmapi.GetVnfpkgmV1ApiVersionsRequestObject) (vnfpkgmapi.GetVnfpkgmV1ApiVersionsResponseObject, error) {
	return apiVersions("/vnfpkgm/v1", vnfpkgmVersion)
}

func (v vnfpkgm) CreateVnfPackage(ctx context.Context, req vnfpkgmapi.CreateVnfPackageRequestObject) (vnfpkgmapi.CreateVnfPackageResponseObject, error) {
	p, err := v.deps.Packages.Create(ctx, callOf(ctx).scope, req.Body.UserDefinedData)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(p.Representation())
	if err != nil {
		return nil, fmt.Errorf("write VNF package %s: %w", p.ID, err)
	}
	return response{&reply{
		status: http.StatusCreated, location: v.cfg.EndpointURL + packages.path + "/" + p.ID,
		etag: etag(p.Version, packageVariant(raw)), body: packages.appendRepresentation(nil, v.endpoint, p.ID, raw, selection{}),
	}}, nil
}

func (v vnfpkgm) ListVnfPackages(ctx context.Context, _ vnfpkgmapi.ListVnfPackagesRequestObject) (vnfpkgmapi.ListVnfPackagesResponseObject, error) {
	return v.list(ctx, packages, v.deps.Reader.Packages)
}

// packageVariant tells a package in use from the same version not in use: using it is no change of it.
func packageVariant(body []byte) string {
	if topText(body, "usageState") == "IN_USE" {
		return "-used"
	}
	return ""
}

func (v vnfpkgm) GetVnfPackage(ctx context.Context, req vnfpkgmapi.GetVnfPackageRequestObject) (vnfpkgmapi.GetVnfPackageResponseObject, error) {
	b, err := v.deps.Reader.PackageBody(ctx, callOf(ctx).scope, req.VnfPkgId)
	if err != nil {
		return nil, err
	}
	return v.show(packages, b, req.Params.IfNoneMatch, packageVariant(b.JSON)), nil
}

// precondition checks If-Match against the package as it is now. What changes it in between is not seen: a package has
// one owner, and the standard does not ask for the check (SOL005 v2.6.1 §9.4.3).
func (v vnfpkgm) precondition(ctx context.Context, id, ifMatch string) error {
	if ifMatch == "" {
		return nil
	}
	b, err := v.deps.Reader.PackageBody(ctx, callOf(ctx).scope, id)
	if err != nil {
		return err
	}
	if !matches(ifMatch, etag(b.Version, packageVariant(b.JSON)), false) {
		return errPrecondition(ifMatch)
	}
	return nil
}

func (v vnfpkgm) UpdateVnfPackage(ctx context.Context, req vnfpkgmapi.UpdateVnfPackageRequestObject) (vnfpkgmapi.UpdateVnfPackageResponseObject, error) {
	c := callOf(ctx)
	if err := v.precondition(ctx, req.VnfPkgId, req.Params.IfMatch); err != nil {
		return nil, err
	}
	given, _ := c.tree.(map[string]any)
	_, hasData := given["userDefinedData"]
	changed, err := v.deps.Packages.Update(ctx, c.scope, req.VnfPkgId, *req.JSONBody, hasData)
	if err != nil {
		return nil, err
	}
	out, err := jsonReply(http.StatusOK, changed)
	return response{out}, err
}

func (v vnfpkgm) DeleteVnfPackage(ctx context.Context, req vnfpkgmapi.DeleteVnfPackageRequestObject) (vnfpkgmapi.DeleteVnfPackageResponseObject, error) {
	if err := v.precondition(ctx, req.VnfPkgId, req.Params.IfMatch); err != nil {
		return nil, err
	}
	if err := v.deps.Packages.Delete(ctx, callOf(ctx).scope, req.VnfPkgId); err != nil {
		return nil, err
	}
	return response{&reply{status: http.StatusNoContent}}, nil
}

// maxDrained is how much of a refused upload is read on, so that a client that sends before it reads sees the answer.
const maxDrained = 64 << 20

func (v vnfpkgm) UploadPackageContent(ctx context.Context, req vnfpkgmapi.UploadPackageContentRequestObject) (vnfpkgmapi.UploadPackageContentResponseObject, error) {
	c := callOf(ctx)
	body := &patientReader{r: req.Body, set: c.control.SetReadDeadline, stall: v.cfg.Stall}
	if err := v.deps.Packages.Upload(ctx, c.scope, req.VnfPkgId, body); err != nil {
		if !lcm.Is(err, lcm.KindTooLarge) && c.req.Header.Get("Expect") == "" {
			_, _ = io.CopyN(io.Discard, body, maxDrained) // best effort
		}
		return nil, err
	}
	return response{&reply{status: http.StatusAccepted}}, nil
}

func (v vnfpkgm) UploadPackageContentFromUri(ctx context.Context, req vnfpkgmapi.UploadPackageContentFromUriRequestObject) (vnfpkgmapi.UploadPackageContentFromUriResponseObject, error) {
	if err := v.deps.Packages.UploadFromURI(ctx, callOf(ctx).scope, req.VnfPkgId, *req.Body); err != nil {
		return nil, err
	}
	return response{&reply{status: http.StatusAccepted}}, nil
}

func (v vnfpkgm) GetPackageContent(ctx context.Context, req vnfpkgmapi.GetPackageContentRequestObject) (vnfpkgmapi.GetPackageContentResponseObject, error) {
	content, size, err := v.deps.Packages.Content(ctx, callOf(ctx).scope, req.VnfPkgId)
	if err != nil {
		return nil, err
	}
	return v.download(ctx, content, size, "application/zip", req.Params.Range)
}

func (v vnfpkgm) GetArtifact(ctx context.Context, req vnfpkgmapi.GetArtifactRequestObject) (vnfpkgmapi.GetArtifactResponseObject, error) {
	content, size, err := v.deps.Packages.Artifact(ctx, callOf(ctx).scope, req.VnfPkgId, req.ArtifactPath)
	if err != nil {
		return nil, err
	}
	return v.download(ctx, content, size, artifactType(req.ArtifactPath), req.Params.Range)
}

func (v vnfpkgm) GetVnfd(ctx context.Context, req vnfpkgmapi.GetVnfdRequestObject) (vnfpkgmapi.GetVnfdResponseObject, error) {
	wanted, err := vnfdTypes(req.Params.Accept)
	if err != nil {
		return nil, err
	}
	files, content, err := v.deps.Packages.Vnfd(ctx, callOf(ctx).scope, req.VnfPkgId)
	if err != nil {
		return nil, err
	}
	return v.vnfd(ctx, wanted, files, content)
}

// leastUpload is how much of an upload must come in while it is said to stand still otherwise.
const leastUpload = 16 << 10

// patientReader reads for as long as something comes that is more than a trickle.
type patientReader struct {
	r     io.Reader
	set   func(time.Time) error
	stall time.Duration
	begun bool
	got   int // since the deadline was put off
}

func (p *patientReader) Read(b []byte) (int, error) {
	if !p.begun || p.got >= leastUpload {
		p.begun, p.got = true, 0
		extend(p.set, p.stall)
	}
	n, err := p.r.Read(b)
	p.got += n
	if errors.Is(err, io.EOF) {
		// All is there: the deadline must not end what the request goes on to do. After any other error it must stay,
		// since net/http reads on for a while.
		_ = p.set(time.Time{})
	}
	return n, err
}
