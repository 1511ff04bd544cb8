package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const (
	vi   = "/vnflcm/v1/vnf_instances"
	oc   = "/vnflcm/v1/vnf_lcm_op_occs"
	su   = "/vnflcm/v1/subscriptions"
	pk   = "/vnfpkgm/v1/vnf_packages"
	vm   = "/v1.0/vims"
	jsn  = "Content-Type: application/json"
	mrg  = "Content-Type: application/merge-patch+json"
	host = "http://localhost:9890"
)

const vimBody = `{"vim":{"type":"openstack","auth_url":"http://k/v3","auth_cred":{"username":"u","password":"p"},"vim_project":{"name":"nfv"},"name":"VIM0","is_default":true}}`

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		contentType        string // application/json, or that of problems, when empty
		want               string // in the body
		header             string // "Name: value" of the response
	}{
		{"GET", "/", "", nil, 200, "", `{"versions":[{"id":"v1.0","links":[{"href":"http://localhost:9890/v1.0","rel":"self"}],"status":"CURRENT"}]}`, ""},
		{"GET", "/v1.0/extensions", "", nil, 200, "", `{"extensions":[]}`, ""},
		{"GET", "/v1.0/extensions.json", "", nil, 200, "", `{"extensions":[]}`, ""},
		{"GET", "/v1.0", "", nil, 404, "application/json", "TackerError", ""},
		{"GET", "/healthz", "", nil, 200, "", "ok", ""},
		{"GET", "/readyz", "", nil, 200, "", "ok", ""},
		{"GET", "/metrics", "", nil, 404, "", "", ""},
		{"POST", "/healthz", "", nil, 405, "", "", "Allow: GET,HEAD"},
		{"GET", "/nowhere", "", nil, 404, "", "", ""},

		{"GET", "/vnflcm/api_versions", "", []string{"Version: 2.0.0"}, 200, "", `{"uriPrefix":"/vnflcm","apiVersions":[{"version":"1.3.0","isDeprecated":false}]}`, "Version: 1.3.0"},
		{"GET", "/vnflcm/v1/api_versions", "", nil, 200, "", `"uriPrefix":"/vnflcm/v1"`, "Version: 1.3.0"},
		{"POST", "/vnflcm/api_versions", "", nil, 405, "", "", "Allow: GET"},

		{"POST", vi, `{"vnfdId":"` + vnfdID + `","vnfInstanceName":"n","later":1}`, []string{jsn}, 201, "", `"instantiate":{"href":"` + host + vi + "/" + known + `/instantiate"}`, "Location: " + host + vi + "/" + known},
		{"POST", vi, `{"vnfdId":"` + vnfdID + `"}`, nil, 201, "", "", `ETag: "1"`},
		{"POST", vi, `{}`, []string{jsn}, 400, "", "'vnfdId' is a required property", ""},
		{"POST", vi, "", nil, 400, "", "Malformed request body", ""},
		{"POST", vi, `{}`, []string{"Content-Type: application/zip"}, 415, "", "application/zip", ""},
		{"PUT", vi, "", nil, 405, "", "", "Allow: GET,POST"},
		{"GET", vi, "", []string{jsn, "Accept: text/html, application/*;q=0.1"}, 200, "", known, ""},
		{"GET", vi, "", []string{"Accept: application/problem+json"}, 200, "", known, ""},
		{"GET", vi, "", []string{"Accept: ??"}, 200, "", known, ""},
		{"GET", vi, "", []string{"Accept: text/html"}, 406, "", "Accept header text/html is invalid", ""},
		{"GET", vi, "", []string{"Accept: application/json;q=0"}, 406, "", "", ""},
		{"POST", vi, `{"vnfdId":"` + vnfdID + `"}`, []string{jsn, "Accept: application/zip"}, 406, "", "", ""},
		{"GET", vi + "?filter=" + strings.Repeat("x", 32<<10), "", nil, 414, "", "longer than 32768 bytes", ""},
		{"GET", vi + "?vnfInstanceName.eq=a", "", nil, 400, "", "Not supported parameters: vnfInstanceName.eq", ""},
		{"GET", vi + "?filter=(eq,foo,1)", "", nil, 400, "", "invalid attribute name", ""},
		{"GET", vi + "?filter=%zz", "", nil, 400, "", "Malformed query parameter", ""},
		{"GET", vi + "?nextpage_opaque_marker=x", "", nil, 400, "", "not a marker", ""},

		{"GET", vi + "/" + known, "", nil, 200, "", `"_links":{"self"`, `ETag: "7"`},
		{"GET", vi + "/" + known, "", []string{`If-None-Match: "6", W/"7"`}, 304, "", "", `ETag: "7"`},
		{"GET", vi + "/" + known, "", []string{`If-None-Match: "6"`}, 200, "", known, ""},
		{"GET", vi + "/" + unknown, "", nil, 404, "", "Can not find requested vnf instance: " + unknown, ""},
		{"GET", vi + "/no-uuid", "", nil, 404, "", "Can not find requested vnf instance: no-uuid", ""},
		{"DELETE", vi + "/" + known, "", []string{jsn}, 204, "", "", ""},
		{"DELETE", vi + "/" + known, "", []string{`If-Match: "1"`}, 204, "", "", ""},
		{"DELETE", vi + "/" + known, "", []string{`If-Match: "3"`}, 412, "", "", ""},
		{"DELETE", vi + "/" + known, "", []string{`If-Match: "3", "4"`}, 412, "", "", ""},
		{"DELETE", vi + "/" + known, "", []string{`If-Match: W/"7"`}, 412, "", "", ""},
		{"DELETE", vi + "/" + unknown, "", []string{`If-Match: "3", "4"`}, 404, "", "", ""},
		{"DELETE", vi + "/" + busy, "", nil, 409, "", "busy", ""},
		{"DELETE", vi + "/" + unknown, "", nil, 404, "", "", ""},
		{"PATCH", vi + "/" + known, `{"vnfInstanceName":"m","later":1}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"PATCH", vi + "/" + known, `{}`, []string{mrg}, 202, "", "", ""},
		{"PATCH", vi + "/" + known, `{"vnfInstanceName":null,"vnfInstanceDescription":null,"metadata":null,"extensions":{"a":null},"vnfConfigurableProperties":{"a":{"b":null}}}`, []string{mrg}, 202, "", "", ""},
		{"PATCH", vi + "/" + known, `{"vnfdId":null}`, []string{mrg}, 400, "", "Invalid input for field/attribute vnfdId. Value: None. None is not of type 'string'", ""},
		{"PATCH", vi + "/" + known, `{"vimConnectionInfo":null}`, []string{mrg}, 400, "", "None is not of type 'array'", ""},
		{"PATCH", vi + "/" + known, `{"metadata":[]}`, []string{mrg}, 400, "", "[] is not of type 'object'", ""},
		{"PATCH", vi + "/" + known, `[]`, []string{mrg}, 400, "", "[] is not of type 'object'", ""},
		{"PATCH", vi + "/" + known, ``, []string{mrg}, 400, "", "Malformed request body", ""},
		{"PATCH", vi + "/" + known, `{}`, []string{"Content-Type: text/plain"}, 415, "", "merge-patch", ""},
		{"PATCH", vi + "/" + known, `{}`, []string{mrg, `If-Match: "7"`}, 202, "", "", ""},
		{"PATCH", vi + "/" + known, `{}`, []string{mrg, `If-Match: "6"`}, 412, "", "", ""},
		{"PATCH", vi + "/" + known, `{}`, []string{mrg, `If-Match: "6", "7"`}, 202, "", "", ""},
		{"PATCH", vi + "/" + known, `{}`, []string{mrg, `If-Match: *`}, 202, "", "", ""},
		{"PATCH", vi + "/" + busy, `{}`, []string{mrg}, 409, "", "busy", ""},
		{"PATCH", vi + "/" + unknown, `{}`, []string{mrg}, 404, "", "Can not find requested vnf data: " + unknown, ""},
		{"PUT", vi + "/" + known, "{}", nil, 405, "", "", "Allow: DELETE,GET,PATCH"},

		{"POST", vi + "/" + known + "/instantiate", `{"flavourId":"simple"}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + busy + "/instantiate", `{"flavourId":"simple"}`, []string{jsn}, 409, "", `"title":"BUSY"`, ""},
		{"POST", vi + "/" + unknown + "/instantiate", `{"flavourId":"simple"}`, []string{jsn}, 404, "", "Can not find requested vnf: ", ""},
		{"POST", vi + "/" + unknown + "/instantiate", `{}`, []string{jsn}, 400, "", "'flavourId' is a required property", ""},
		{"GET", vi + "/" + known + "/instantiate", "", nil, 405, "", "", "Allow: POST"},
		{"POST", vi + "/" + known + "/terminate", `{"terminationType":"FORCEFUL"}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/terminate", `{"terminationType":"X"}`, []string{jsn}, 400, "", "'X' is not one of ['FORCEFUL', 'GRACEFUL']", ""},
		{"POST", vi + "/" + busy + "/terminate", `{"terminationType":"GRACEFUL"}`, []string{jsn}, 409, "", "", ""},
		{"POST", vi + "/" + unknown + "/terminate", `{"terminationType":"GRACEFUL"}`, []string{jsn}, 404, "", "", ""},
		{"POST", vi + "/" + known + "/heal", `{}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/heal", `{"vnfcInstanceId":[1]}`, []string{jsn}, 400, "", "1 is not of type 'string'", ""},
		{"POST", vi + "/" + known + "/heal", ``, []string{jsn}, 400, "", "Malformed request body", ""},
		{"POST", vi + "/" + busy + "/heal", `{}`, []string{jsn}, 409, "", "", ""},
		{"POST", vi + "/" + unknown + "/heal", `{}`, []string{jsn}, 404, "", "", ""},
		{"DELETE", vi + "/" + known + "/heal", ``, nil, 405, "", "", "Allow: POST"},
		{"POST", vi + "/" + known + "/scale", `{"type":"SCALE_OUT","aspectId":"a"}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/scale", `{}`, []string{jsn}, 400, "", "'type' is a required property", ""},
		{"POST", vi + "/" + known + "/scale", `{"type":"SCALE_UP","aspectId":"a"}`, []string{jsn}, 400, "", "'SCALE_UP' is not one of ['SCALE_OUT', 'SCALE_IN']", ""},
		{"POST", vi + "/" + known + "/scale", `{"type":"SCALE_OUT","aspectId":"a","numberOfSteps":0}`, []string{jsn}, 400, "", "0 is less than the minimum of 1", ""},
		{"POST", vi + "/" + known + "/scale", `{"type":"SCALE_OUT","aspectId":"a","numberOfSteps":"one"}`, []string{jsn}, 400, "", "'one' is not of type 'integer'", ""},
		{"POST", vi + "/" + busy + "/scale", `{"type":"SCALE_OUT","aspectId":"a"}`, []string{jsn}, 409, "", "", ""},
		{"POST", vi + "/" + unknown + "/scale", `{"type":"SCALE_OUT","aspectId":"a"}`, []string{jsn}, 404, "", `"title":"VNF NOT FOUND"`, ""},
		{"GET", vi + "/" + known + "/scale", ``, nil, 405, "", "", "Allow: POST"},
		{"POST", vi + "/" + known + "/scale_to_level", `{"instantiationLevelId":"l"}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/scale_to_level", `{"scaleInfo":[{"aspectId":"a","scaleLevel":1}]}`, []string{jsn}, 202, "", "", ""},
		{"POST", vi + "/" + known + "/scale_to_level", `{"scaleInfo":[{"aspectId":"a","scaleLevel":1},{"aspectId":"a","scaleLevel":2}]}`, []string{jsn}, 400, "", "'a' is there twice", ""},
		{"POST", vi + "/" + known + "/scale_to_level", `{"scaleInfo":[{"aspectId":"a","scaleLevel":-1}]}`, []string{jsn}, 400, "", "-1 is less than the minimum of 0", ""},
		{"POST", vi + "/" + known + "/scale_to_level", `{"scaleInfo":[]}`, []string{jsn}, 400, "", "[] is too short", ""},
		{"POST", vi + "/" + known + "/scale_to_level", `{}`, []string{jsn}, 400, "", "exactly one of instantiationLevelId and scaleInfo", ""},
		{"POST", vi + "/" + known + "/scale_to_level", `{"instantiationLevelId":"l","scaleInfo":[{"aspectId":"a","scaleLevel":1}]}`, []string{jsn}, 400, "", "exactly one of", ""},
		{"POST", vi + "/" + known + "/change_flavour", `{"newFlavourId":"f"}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/change_flavour", `{}`, []string{jsn}, 400, "", "'newFlavourId' is a required property", ""},
		{"POST", vi + "/" + known + "/change_flavour", `{"newFlavourId":"f","extManagedVirtualLinks":[{"id":"a","resourceId":"r"}]}`, []string{jsn}, 400, "", "'vnfVirtualLinkDescId' is a required property", ""},
		{"POST", vi + "/" + busy + "/change_flavour", `{"newFlavourId":"f"}`, []string{jsn}, 409, "", "", ""},
		{"POST", vi + "/" + known + "/operate", `{"changeStateTo":"STOPPED","stopType":"FORCEFUL","gracefulStopTimeout":3}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/operate", `{}`, []string{jsn}, 400, "", "'changeStateTo' is a required property", ""},
		{"POST", vi + "/" + known + "/operate", `{"changeStateTo":"X"}`, []string{jsn}, 400, "", "'X' is not one of ['STARTED', 'STOPPED']", ""},
		{"POST", vi + "/" + busy + "/operate", `{"changeStateTo":"STARTED"}`, []string{jsn}, 409, "", "", ""},
		{"POST", vi + "/" + known + "/change_ext_conn", `{"extVirtualLinks":[{"id":"l","resourceId":"r","extCps":[{"cpdId":"C","cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET"}]}]}]}]}`, []string{jsn}, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", vi + "/" + known + "/change_ext_conn", `{"extVirtualLinks":[]}`, []string{jsn}, 400, "", "[] is too short", ""},
		{"POST", vi + "/" + known + "/change_ext_conn", `{}`, []string{jsn}, 400, "", "'extVirtualLinks' is a required property", ""},
		{"POST", vi + "/" + known + "/change_ext_conn", `{"extVirtualLinks":[{"id":"l","resourceId":"r","extCps":[{"cpdId":"C"}]}]}`, []string{jsn}, 400, "", "'cpConfig' is a required property", ""},
		{"POST", vi + "/" + unknown + "/change_vnfpkg", `{}`, []string{jsn}, 404, "", "", ""},

		{"GET", oc, "", nil, 200, "", opOcc, ""},
		{"GET", oc + "?unknown=1", "", nil, 200, "", opOcc, ""},
		{"GET", oc + "?fields=foo", "", nil, 400, "", "Invalid query parameter 'fields'. Value: foo", ""},
		{"GET", oc + "/" + opOcc, "", nil, 200, "", `"vnfInstance":{"href":"` + host + vi + "/" + known + `"}`, ""},
		{"GET", oc + "/" + unknown, "", nil, 404, "", `"title":"VnfLcmOpOcc NOT FOUND"`, ""},
		{"POST", oc + "/" + opOcc, "", nil, 405, "", "", "Allow: GET"},
		{"POST", oc + "/" + opOcc + "/retry", "", nil, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", oc + "/" + opOcc + "/rollback", "", nil, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", oc + "/" + opOcc + "/fail", "", nil, 200, "", "", ""},
		{"POST", oc + "/" + unknown + "/retry", "", nil, 404, "", "", ""},
		{"POST", oc + "/" + unknown + "/rollback", "", nil, 404, "", "", ""},
		{"POST", oc + "/" + unknown + "/fail", "", nil, 404, "", "", ""},
		{"POST", oc + "/" + opOcc + "/cancel", `{"cancelMode":"GRACEFUL"}`, nil, 202, "", "", "Location: " + host + oc + "/" + opOcc},
		{"POST", oc + "/" + opOcc + "/cancel", ``, nil, 400, "", "Malformed request body", ""},
		{"POST", oc + "/" + opOcc + "/cancel", `{}`, nil, 400, "", "'cancelMode' is a required property", ""},
		{"POST", oc + "/" + opOcc + "/cancel", `{"cancelMode":"x"}`, nil, 400, "", "'x' is not one of ['GRACEFUL', 'FORCEFUL']", ""},
		{"POST", oc + "/" + unknown + "/cancel", `{"cancelMode":"FORCEFUL"}`, nil, 404, "", "", ""},
		{"GET", oc + "/" + opOcc + "/cancel", ``, nil, 405, "", "", "Allow: POST"},

		{"POST", su, `{"callbackUri":"http://h/cb"}`, []string{jsn}, 201, "", `"_links":{"self":{"href":"` + host + su + "/" + known + `"}}`, "Location: " + host + su + "/" + known},
		{"POST", su, `{"callbackUri":"http://h/cb"}`, []string{jsn}, 201, "", "", `ETag: "7"`},
		{"POST", su, `{"callbackUri":"http://twice"}`, []string{jsn}, 303, "", "", "Location: " + host + su + "/" + known},
		{"POST", su, `{}`, []string{jsn}, 400, "", "'callbackUri' is a required property", ""},
		{"POST", su, `{"callbackUri":"zz"}`, []string{jsn}, 400, "", "'zz' is not a 'uri'", ""},
		{"POST", su, `{"callbackUri":"ftp://h/x"}`, []string{jsn}, 400, "", "is not a 'uri'", ""},
		{"POST", su, `{"callbackUri":"http://h","filter":{"notificationTypes":["x"]}}`, []string{jsn}, 400, "", "'x' is not one of ['VnfLcmOperationOccurrenceNotification'", ""},
		{"POST", su, `{"callbackUri":"http://h","filter":{"operationStates":["x"]}}`, []string{jsn}, 400, "", "Invalid input for field/attribute 0", ""},
		{"POST", su, `{"callbackUri":"http://h","authentication":{"authType":[]}}`, []string{jsn}, 400, "", "[] is too short", ""},
		{"POST", su, `{"callbackUri":"http://h","subscriptionAuthentication":{"authType":["X"]}}`, []string{jsn}, 400, "", "'X' is not one of", ""},
		{"GET", su, "", nil, 200, "", `"_links":{"self":{"href":"` + host + su + "/" + known + `"}}`, ""},
		{"GET", su + "?filter=(eq,filter/operationTypes,SCALE)", "", nil, 200, "", known, ""},
		{"GET", su + "?filter=(eq,operationTypes,SCALE);(cont,vnfProductName,x);(eq,callbackUri,y)", "", nil, 200, "", known, ""},
		{"GET", su + "?filter=(eq,operationTypes,SCAL)", "", nil, 400, "", "invalid value", ""},
		{"GET", su + "?fields=criteria&all_fields&exclude_fields=x", "", nil, 200, "", known, ""},
		{"GET", su + "?filter=(eq,foo,1)", "", nil, 400, "", "invalid attribute name", ""},
		{"GET", su + "?nextpage_opaque_marker=x", "", nil, 400, "", "not a marker", ""},
		{"PATCH", su, "", nil, 405, "", "", "Allow: GET,POST"},
		{"GET", su + "/" + known, "", nil, 200, "", `"callbackUri":"http://h/cb"`, `ETag: "7"`},
		{"GET", su + "/" + known, "", []string{`If-None-Match: "7"`}, 304, "", "", `ETag: "7"`},
		{"GET", su + "/" + unknown, "", nil, 404, "", "Can not find requested vnf lcm subscriptions: " + unknown, ""},
		{"DELETE", su + "/" + known, "", nil, 204, "", "", ""},
		{"DELETE", su + "/" + known, "", []string{`If-Match: "7"`}, 204, "", "", ""},
		{"DELETE", su + "/" + known, "", []string{`If-Match: "6"`}, 412, "", "", ""},
		{"DELETE", su + "/" + unknown, "", []string{`If-Match: "6"`}, 404, "", "", ""},
		{"DELETE", su + "/" + unknown, "", nil, 404, "", "Can not find requested vnf lcm subscription: " + unknown, ""},
		{"PUT", su + "/" + known, "", nil, 405, "", "", "Allow: DELETE,GET"},

		{"GET", "/vnfpkgm/api_versions", "", nil, 200, "", `"uriPrefix":"/vnfpkgm"`, ""},
		{"GET", "/vnfpkgm/v1/api_versions", "", nil, 200, "", `"uriPrefix":"/vnfpkgm/v1"`, ""},
		{"POST", pk, `{}`, []string{jsn}, 201, "", `"packageContent":{"href":"` + pk + "/" + known + `/package_content"}`, "Location: " + host + pk + "/" + known},
		{"POST", pk, `{"userDefinedData":{"a":"b","n":1,"t":true,"z":null}}`, []string{jsn}, 201, "", "", ""},
		{"POST", pk, `{"userDefinedData":{"bad*key":"b"}}`, []string{jsn}, 400, "", "'bad*key' does not match any of the regexes", ""},
		{"POST", pk, "", nil, 400, "", "Malformed request body", ""},
		{"POST", pk, "[1]", nil, 400, "", "[1] is not of type 'object'", ""},
		{"GET", pk, "", nil, 200, "", known, ""},
		{"GET", pk, "", []string{"Accept: application/zip"}, 200, "", known, ""},
		{"GET", pk, "", []string{"Accept: image/png"}, 406, "", "", ""},
		{"GET", pk + "?filter=", "", nil, 400, "", "Invalid input for field/attribute filter. Value: . '' is too short", ""},
		{"GET", pk + "/" + known, "", nil, 200, "", `"vnfd":{"href":"` + pk + "/" + known + `/vnfd"}`, `ETag: "7-used"`},
		{"GET", pk + "/" + unknown, "", nil, 404, "", "Can not find requested vnf package: " + unknown, ""},
		{"PATCH", pk + "/" + known, `{"operationalState":"DISABLED"}`, []string{jsn}, 200, "", `{"operationalState":"DISABLED"}`, ""},
		{"PATCH", pk + "/" + known, `{"userDefinedData":{"a":"b"}}`, []string{"Content-Type: application/merge-patch+json"}, 200, "", `{"userDefinedData":{"a":"b"}}`, ""},
		{"PATCH", pk + "/" + known, `{}`, []string{jsn}, 400, "", "{} is not valid under any of the given schemas", ""},
		{"PATCH", pk + "/" + known, `{"operationalState":"X"}`, []string{jsn}, 400, "", "'X' is not one of ['ENABLED', 'DISABLED']", ""},
		{"PATCH", pk + "/" + known, `{"operationalState":"DISABLED"}`, []string{jsn, `If-Match: "6"`}, 412, "", "", ""},
		{"PATCH", pk + "/" + known, `{"operationalState":"DISABLED"}`, []string{jsn, `If-Match: "7-used"`}, 200, "", "", ""},
		{"PATCH", pk + "/" + known, `{}`, []string{"Content-Type: text/plain"}, 415, "", "merge-patch", ""},
		{"DELETE", pk + "/" + known, "", nil, 204, "", "", ""},
		{"DELETE", pk + "/" + busy, "", nil, 409, "", "", ""},
		{"DELETE", pk + "/" + unknown, "", []string{`If-Match: "6"`}, 404, "", "", ""},
		{"PUT", pk + "/" + known, "", nil, 405, "", "", "Allow: DELETE,GET,PATCH"},
		{"PUT", pk + "/" + known + "/package_content", "zip", []string{"Content-Type: application/zip", "Accept: application/zip"}, 202, "", "", ""},
		{"PUT", pk + "/" + known + "/package_content", "zip", nil, 202, "", "", ""},
		{"PUT", pk + "/" + known + "/package_content", "zip", []string{jsn}, 415, "", "application/zip", ""},
		{"PUT", pk + "/" + busy + "/package_content", "zip", nil, 409, "", "", ""},
		{"PUT", pk + "/" + unknown + "/package_content", "zip", nil, 404, "", "", ""},
		{"POST", pk + "/" + known + "/package_content", "", nil, 405, "", "", "Allow: GET,PUT"},
		{"GET", pk + "/" + known + "/package_content", "", nil, 200, "application/zip", "0123456789", "Content-Length: 10"},
		{"GET", pk + "/" + known + "/package_content", "", []string{"Range: bytes=3-8"}, 206, "application/zip", "345678", "Content-Range: bytes 3-8/10"},
		{"GET", pk + "/" + known + "/package_content", "", []string{"Range: bytes=10-"}, 416, "", "[0, 9]", "Content-Range: bytes */10"},
		{"GET", pk + "/" + known + "/package_content", "", []string{"Range: bytes=0-1,3-4"}, 400, "", "several ranges", ""},
		{"GET", pk + "/" + known + "/package_content", "", []string{"Range: bytes=3-8", `If-Range: "x"`}, 200, "application/zip", "0123456789", ""},
		{"GET", pk + "/" + busy + "/package_content", "", nil, 409, "", "", ""},
		{"POST", pk + "/" + known + "/package_content/upload_from_uri", `{"addressInformation":"http://h/p.zip"}`, []string{jsn}, 202, "", "", ""},
		{"POST", pk + "/" + known + "/package_content/upload_from_uri", `{}`, []string{jsn}, 400, "", "'addressInformation' is a required property", ""},
		{"POST", pk + "/" + known + "/package_content/upload_from_uri", `{"addressInformation":"zz"}`, []string{jsn}, 400, "", "Invalid input for field/attribute addressInformation. Value: zz. 'zz' is not a 'uri'", ""},
		{"GET", pk + "/" + known + "/vnfd", "", []string{"Accept: text/plain"}, 200, "text/plain", "a: 1\n", ""},
		{"GET", pk + "/" + known + "/vnfd", "", []string{"Accept: text/plain,application/zip"}, 200, "text/plain", "a: 1\n", ""},
		{"GET", pk + "/" + known + "/vnfd", "", []string{"Accept: application/zip"}, 200, "application/zip", "Definitions/top.yaml", ""},
		{"GET", pk + "/" + known + "/vnfd", "", nil, 200, "application/zip", "Definitions/top.yaml", ""},
		{"GET", pk + "/" + known + "/vnfd", "", []string{"Accept: application/json"}, 406, "", "Accept header application/json is invalid, it should be one of these values: application/zip,text/plain", ""},
		{"GET", pk + "/" + busy + "/vnfd", "", nil, 409, "", "", ""},
		{"GET", pk + "/" + known + "/artifacts/Scripts/install.sh", "", []string{"Accept: application/json"}, 200, "text/x-sh", "Scripts/install.sh", ""},
		{"GET", pk + "/" + known + "/artifacts/Scripts/sub/a%20b%25.bin", "", nil, 200, "application/octet-stream", "Scripts/sub/a b%.bin", ""},
		{"GET", pk + "/" + known + "/artifacts/Scripts%2Finstall.sh", "", nil, 200, "text/x-sh", "Scripts/install.sh", ""},
		{"GET", pk + "/" + known + "/artifacts/Scripts/install.sh", "", []string{"Range: bytes=-2"}, 206, "text/x-sh", "sh", "Content-Range: bytes 16-17/18"},
		{"GET", pk + "/" + known + "/artifacts/top.yaml", "", nil, 404, "", "Not Found Artifact File.", ""},
		{"DELETE", pk + "/" + known + "/artifacts/Scripts/install.sh", "", nil, 405, "", "", "Allow: GET"},
		{"GET", pk + "/" + unknown + "/artifacts/Scripts/install.sh", "", nil, 404, "", "", ""},

		{"POST", vm, vimBody, []string{jsn}, 201, "", `"password":"***"`, ""},
		{"POST", vm + ".json", vimBody, []string{jsn}, 201, "", `"updated_at":null`, ""},
		{"POST", vm + ".json", `{}`, []string{jsn}, 400, "application/json", "Unable to find 'vim' in request body", ""},
		{"POST", vm, ``, nil, 400, "application/json", "Resource body required", ""},
		{"POST", vm, `{`, nil, 400, "application/json", "MalformedRequestBody", ""},
		{"POST", vm, `{"vim":{}}`, []string{"Content-Type: text/plain"}, 415, "application/json", "TackerError", ""},
		{"GET", vm, "", nil, 200, "", `{"vims":[]}`, ""},
		{"GET", vm + ".json?id=X&fields=id", "", nil, 200, "", `{"vims":[]}`, ""},
		{"GET", vm + "/" + known + ".json", "", nil, 200, "", `"password":"***"`, ""},
		{"GET", vm + "/" + known, "", nil, 200, "", `"password":"***"`, "ETag: " + vimTagOf(t)},
		{"GET", vm + "/" + known, "", []string{"If-None-Match: " + vimTagOf(t)}, 304, "", "", ""},
		{"GET", vm + "/" + unknown, "", nil, 404, "application/json", "VimNotFoundException", ""},
		{"PUT", vm + "/" + known + ".json", `{"vim":{"name":"n2","is_default":"True"}}`, []string{jsn}, 200, "", `"vim":{`, ""},
		{"PUT", vm + "/" + known, `{"vim":{"type":"x"}}`, []string{jsn}, 400, "application/json", "Cannot update read-only attribute type", ""},
		{"PUT", vm + "/" + busy, `{"vim":{}}`, []string{jsn}, 409, "application/json", "TackerError", ""},
		{"DELETE", vm + "/" + known + ".json", "", nil, 204, "", "", ""},
		{"DELETE", vm + "/" + busy, "", nil, 409, "application/json", "", ""},
		{"PATCH", vm + "/" + known, "{}", nil, 405, "application/json", "", "Allow: DELETE,GET,PUT"},
	} {
		t.Run(c.method+" "+strings.ReplaceAll(c.path, "/", "∕"), func(t *testing.T) {
			res := ask(t, newFake().handler(Config{}), c.method, c.path, c.body, c.headers...)
			got := content(t, res)
			if res.StatusCode != c.status || !strings.Contains(got, c.want) {
				t.Errorf("got %d %s, want %d …%s…", res.StatusCode, got, c.status, c.want)
			}
			if c.contentType == "" {
				if c.contentType = "application/json"; c.status >= 400 {
					c.contentType = "application/problem+json"
				}
			}
			if ct := res.Header.Get("Content-Type"); ct != c.contentType {
				t.Errorf("Content-Type %q, want %q", ct, c.contentType)
			}
			if (c.status == 202 || c.status == 204 || c.status == 303 || c.status == 304) && got != "" {
				t.Errorf("a body %q with status %d", got, c.status)
			}
			if name, want, ok := strings.Cut(c.header, ": "); ok && res.Header.Get(name) != want {
				t.Errorf("header %s %q, want %q", name, res.Header.Get(name), want)
			}
			if c.status >= 400 && c.contentType == "application/problem+json" {
				var p map[string]any
				if err := json.Unmarshal([]byte(got), &p); err != nil || p["status"] != float64(c.status) || p["title"] == "" || p["detail"] == "" || len(p) != 3 {
					t.Errorf("problem %s", got)
				}
			}
		})
	}
}

func vimTagOf(t *testing.T) string {
	t.Helper()
	tag := ask(t, newFake().handler(Config{}), "GET", vm+"/"+known, "").Header.Get("ETag")
	if len(tag) < 10 {
		t.Fatalf("the ETag of a VIM: %q", tag)
	}
	return tag
}

func TestErrorKinds(t *testing.T) {
	for kind, status := range map[lcm.Kind]int{
		lcm.KindInvalid: 400, lcm.KindNotFound: 404, lcm.KindConflict: 409, lcm.KindPrecondition: 412, lcm.KindForbidden: 403,
		lcm.KindUnauthorized: 401, lcm.KindUnsupported: 400, lcm.KindTooLarge: 413, lcm.KindUnavailable: 503, lcm.KindRetryable: 503,
		lcm.KindTerminal: 500, lcm.KindInternal: 500,
	} {
		f := newFake()
		f.err = lcm.Errorf(kind, "it is %s", kind)
		for _, path := range []string{vi + "/" + known, vi, oc, pk, vi + "?all_records=yes", vm} {
			res := ask(t, f.handler(Config{}), "GET", path, "")
			if got := detail(t, res); res.StatusCode != status || got != "it is "+string(kind) {
				t.Errorf("%s of %s: %d %s", path, kind, res.StatusCode, got)
			}
		}
	}
	f := newFake()
	f.err = errors.New("password=hunter2")
	res := ask(t, f.handler(Config{}), "GET", vi, "")
	if got := detail(t, res); res.StatusCode != 500 || got != generalDetail {
		t.Errorf("an unclassed error shows: %d %s", res.StatusCode, got)
	}
	f.err = &lcm.Error{Kind: lcm.KindConflict, Status: 422, Detail: "x"}
	if res := ask(t, f.handler(Config{}), "GET", vi, ""); res.StatusCode != 422 {
		t.Errorf("own status: %d", res.StatusCode)
	}
}

func TestPassedOn(t *testing.T) {
	f := newFake()
	h := f.handler(Config{Auth: None{ProjectID: "p1"}})
	ask(t, h, "GET", vi+"/"+known, "")
	if f.scope.ProjectID != "p1" || !f.scope.Admin {
		t.Errorf("scope %+v", f.scope)
	}
	ask(t, h, "POST", vi+"/"+known+"/terminate", `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":"10","additionalParams":{"N":1.50,"s":"<"}}`)
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(f.raw, &raw); err != nil || string(raw["gracefulTerminationTimeout"]) != "10" || f.term.GracefulTerminationTimeout != 10 {
		t.Errorf("terminate: %s, %+v, %v", f.raw, f.term, err)
	}
	if !strings.Contains(string(f.raw), "1.50") {
		t.Errorf("a number has changed: %s", f.raw)
	}
	asItCame := "{ \"flavourId\" : \"f\", \"additionalParams\":{\"big\":12345678901234567890} }"
	ask(t, h, "POST", vi+"/"+known+"/instantiate", asItCame)
	if string(f.raw) != asItCame || f.inst.FlavourId != "f" {
		t.Errorf("instantiate: %s", f.raw)
	}
	ask(t, h, "PATCH", pk+"/"+known, `{"operationalState":"ENABLED","userDefinedData":{}}`)
	if !f.hasData || f.mods.OperationalState != "ENABLED" {
		t.Errorf("patch: %v %+v", f.hasData, f.mods)
	}
	ask(t, h, "PATCH", pk+"/"+known, `{"operationalState":"ENABLED"}`)
	if f.hasData {
		t.Error("patch without userDefinedData")
	}
	ask(t, h, "PUT", pk+"/"+known+"/package_content", "zipzip")
	if string(f.upload) != "zipzip" {
		t.Errorf("upload %q", f.upload)
	}
	ask(t, h, "PUT", vm+"/"+known, `{"vim":{"is_default":"True","auth_cred":{"password":"n"}}}`)
	if f.change.Default == nil || !*f.change.Default || f.change.Name != nil || f.change.Auth["password"] != "n" {
		t.Errorf("VIM change %+v", f.change)
	}
	ask(t, h, "POST", vm, strings.Replace(vimBody, `"name":"VIM0"`, `"tenant_id":"t9","name":"VIM0"`, 1))
	want := lcm.VIM{ProjectID: "t9", Name: "VIM0", Type: "openstack", AuthURL: "http://k/v3", Default: true,
		Auth: map[string]any{"username": "u", "password": "p"}, Project: map[string]any{"name": "nfv"}}
	want.Auth, f.vim.Auth = nil, map[string]any(nil)
	want.Project, f.vim.Project = nil, map[string]any(nil)
	if diff := cmp.Diff(want, f.vim); diff != "" {
		t.Error(diff)
	}
	ask(t, h, "GET", pk+"/"+known+"/package_content", "")
	ask(t, h, "GET", pk+"/"+known+"/package_content", "", "Range: bytes=99-")
	ask(t, h, "GET", pk+"/"+known+"/vnfd", "")
	ask(t, h, "GET", pk+"/"+known+"/vnfd", "", "Accept: text/plain")
	if f.closed != 4 {
		t.Errorf("closed %d of 4", f.closed)
	}
}

func TestPanicAndPrefix(t *testing.T) {
	f := newFake()
	f.instances[0].JSON = []byte("{broken")
	h := f.handler(Config{EndpointURL: "https://h/nfv/"})
	if got := content(t, ask(t, h, "GET", vi+"/"+busy, "")); !strings.Contains(got, `"self":{"href":"https://h/nfv`+vi+"/"+busy+`"}`) {
		t.Errorf("prefix: %s", got)
	}
	ask(t, h, "GET", vi+"/"+known, "") // must not panic
	var seen []Observation
	f2 := newFake()
	h = New(Config{Observe: func(o Observation) { seen = append(seen, o) }, Log: slog.New(slog.DiscardHandler), NewID: func() string { return "1" },
		Auth: authFunc(func(*http.Request) (lcm.Scope, error) { panic("oh") })}, Deps{fakeLCM{f2}, fakeReader{f2}, fakePackages{f2}, fakeVIMs{f2}, fakeSubscriptions{f2}, nil, nil})
	res := ask(t, h, "GET", vi+"/"+known, "")
	if got := detail(t, res); res.StatusCode != 500 || got != generalDetail || res.Header.Get("X-Openstack-Request-Id") != "req-1" {
		t.Errorf("panic: %d %s", res.StatusCode, got)
	}
	if len(seen) != 1 || seen[0].Status != 500 || seen[0].Route != vi+"/{vnfInstanceId}" || seen[0].Method != "GET" {
		t.Errorf("observed %+v", seen)
	}
}

type authFunc func(*http.Request) (lcm.Scope, error)

func (f authFunc) Authenticate(r *http.Request) (lcm.Scope, error) { return f(r) }
