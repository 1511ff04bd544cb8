package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// reply is a response of any operation: headers and a body that is there already.
type reply struct {
	status      int
	location    string
	etag        string
	link        string
	contentType string // application/json when empty
	body        []byte
}

func (p *reply) write(w http.ResponseWriter) error {
	h := w.Header()
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set("Location", p.location)
	set("ETag", p.etag)
	set("Link", p.link)
	if p.contentType == "" {
		p.contentType = "application/json"
	}
	h.Set("Content-Type", p.contentType)
	if p.status != http.StatusNoContent && p.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(p.body)))
	}
	w.WriteHeader(p.status)
	if len(p.body) == 0 {
		return nil
	}
	_, _ = w.Write(p.body) // the caller has gone away; there is nobody to tell
	return nil
}

// jsonReply is a reply of a value that is written as JSON.
func jsonReply(status int, v any) (*reply, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write the response: %w", err)
	}
	return &reply{status: status, body: raw}, nil
}

// writer is what a response is when it writes itself.
type writer interface {
	write(w http.ResponseWriter) error
}

// response is the response of every operation: the strict servers' interfaces differ by the method's name only.
type response struct{ writer }

func (r response) VisitGetVnflcmApiVersionsResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitGetVnflcmV1ApiVersionsResponse(w http.ResponseWriter) error {
	return r.write(w)
}
func (r response) VisitCreateVnfInstanceResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitListVnfInstancesResponse(w http.ResponseWriter) error  { return r.write(w) }
func (r response) VisitGetVnfInstanceResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitDeleteVnfInstanceResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitInstantiateVnfResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitModifyVnfInstanceResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitScaleVnfResponse(w http.ResponseWriter) error          { return r.write(w) }
func (r response) VisitScaleVnfToLevelResponse(w http.ResponseWriter) error   { return r.write(w) }
func (r response) VisitChangeVnfFlavourResponse(w http.ResponseWriter) error  { return r.write(w) }
func (r response) VisitHealVnfResponse(w http.ResponseWriter) error           { return r.write(w) }
func (r response) VisitOperateVnfResponse(w http.ResponseWriter) error        { return r.write(w) }
func (r response) VisitChangeExtVnfConnectivityResponse(w http.ResponseWriter) error {
	return r.write(w)
}
func (r response) VisitCancelOperationResponse(w http.ResponseWriter) error      { return r.write(w) }
func (r response) VisitCreateSubscriptionResponse(w http.ResponseWriter) error   { return r.write(w) }
func (r response) VisitListSubscriptionsResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitGetSubscriptionResponse(w http.ResponseWriter) error      { return r.write(w) }
func (r response) VisitDeleteSubscriptionResponse(w http.ResponseWriter) error   { return r.write(w) }
func (r response) VisitTerminateVnfResponse(w http.ResponseWriter) error         { return r.write(w) }
func (r response) VisitListVnfLcmOpOccsResponse(w http.ResponseWriter) error     { return r.write(w) }
func (r response) VisitGetVnfLcmOpOccResponse(w http.ResponseWriter) error       { return r.write(w) }
func (r response) VisitRetryOperationResponse(w http.ResponseWriter) error       { return r.write(w) }
func (r response) VisitRollbackOperationResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitFailOperationResponse(w http.ResponseWriter) error        { return r.write(w) }
func (r response) VisitCreateVnfPackageResponse(w http.ResponseWriter) error     { return r.write(w) }
func (r response) VisitListVnfPackagesResponse(w http.ResponseWriter) error      { return r.write(w) }
func (r response) VisitGetVnfPackageResponse(w http.ResponseWriter) error        { return r.write(w) }
func (r response) VisitUpdateVnfPackageResponse(w http.ResponseWriter) error     { return r.write(w) }
func (r response) VisitDeleteVnfPackageResponse(w http.ResponseWriter) error     { return r.write(w) }
func (r response) VisitGetVnfdResponse(w http.ResponseWriter) error              { return r.write(w) }
func (r response) VisitGetPackageContentResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitGetArtifactResponse(w http.ResponseWriter) error          { return r.write(w) }
func (r response) VisitUploadPackageContentResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitUploadPackageContentFromUriResponse(w http.ResponseWriter) error {
	return r.write(w)
}
func (r response) VisitGetVnfpkgmApiVersionsResponse(w http.ResponseWriter) error {
	return r.write(w)
}
func (r response) VisitGetVnfpkgmV1ApiVersionsResponse(w http.ResponseWriter) error {
	return r.write(w)
}
func (r response) VisitGetVersionsResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitListExtensionsResponse(w http.ResponseWriter) error { return r.write(w) }
func (r response) VisitRegisterVimResponse(w http.ResponseWriter) error    { return r.write(w) }
func (r response) VisitListVimsResponse(w http.ResponseWriter) error       { return r.write(w) }
func (r response) VisitGetVimResponse(w http.ResponseWriter) error         { return r.write(w) }
func (r response) VisitUpdateVimResponse(w http.ResponseWriter) error      { return r.write(w) }
func (r response) VisitDeleteVimResponse(w http.ResponseWriter) error      { return r.write(w) }

// etag writes a version as an entity tag (RFC 9110 §8.8.3); "" for a version that is not known.
func etag(version int64, variant string) string {
	if version <= 0 {
		return ""
	}
	return `"` + strconv.FormatInt(version, 10) + variant + `"`
}

// matches tells whether a tag is among those of an If-Match or If-None-Match header. Weak tags count only where weak.
func matches(header, tag string, weak bool) bool {
	for given := range strings.SplitSeq(header, ",") {
		given = strings.TrimSpace(given)
		if weak {
			given = strings.TrimPrefix(given, "W/")
		}
		if given == "*" || given == tag {
			return true
		}
	}
	return false
}
