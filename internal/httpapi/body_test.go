package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestBodies(t *testing.T) {
	link := func(cpConfig string) string {
		return `{"flavourId":"f","extVirtualLinks":[{"id":"l","resourceId":"r","extCps":[{"cpdId":"CP1"` + cpConfig + `}]}]}`
	}
	ip := func(s string) string {
		return link(`,"cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET","ipOverEthernet":{"ipAddresses":[` + s + `]}}]}]`)
	}
	inst, term, create := vi+"/"+known+"/instantiate", vi+"/"+known+"/terminate", vi
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{create, `{"vnfdId":"x"}`, 400, "Invalid input for field/attribute vnfdId. Value: x. 'x' is not a 'uuid'"},
		{create, `{"vnfdId":1}`, 400, "Invalid input for field/attribute vnfdId. Value: 1. 1 is not of type 'string'"},
		{create, `{"vnfdId":null}`, 400, "Invalid input for field/attribute vnfdId. Value: None. None is not of type 'string'"},
		{create, `{"vnfdId":"` + vnfdID + `","vnfInstanceName":"` + strings.Repeat("x", 256) + `"}`, 400, "xxx' is too long"},
		{create, `{"vnfdId":"` + vnfdID + `","metadata":{"a":true,"b":null,"c":1,"d":["x"],"e:f. /g-h_":{}}}`, 201, ""},
		{create, `{"vnfdId":"` + vnfdID + `","metadata":{"a":"` + strings.Repeat("x", 1025) + `"}}`, 400, "is too long"},
		{create, `{"vnfdId":"` + vnfdID + `","metadata":{"":1}}`, 400, "'' does not match any of the regexes: '^[a-zA-Z0-9-_:. /]{1,1024}$'"},
		{create, `{"vnfdId":"` + vnfdID + `","metadata":{"my_password":"` + strings.Repeat("hunter", 200) + `"}}`, 400, "Invalid input for field/attribute my_password. Value: [redacted]. '[redacted]' is too long"},
		{create, `{"vnfdId":"` + vnfdID + `","vnfInstanceName":"a\u0000b"}`, 400, "U+0000"},
		{create, "{\n  \"vnfdId\": oops}", 400, "at line 2, column 13 (offset 14)"},
		{create, `{"vnfdId":"a`, 400, "Malformed request body: unexpected end at line 1, column 13 (offset 12)"},
		{create, `{} {}`, 400, "something follows the JSON value at line 1, column 4 (offset 3)"},
		{create, "{\"a\":\"\xff\"}", 400, "not UTF-8 at line 1, column 7 (offset 6)"},
		{create, `{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, 400, "nested deeper than 100 levels"},
		{create, strings.Repeat("[", 1<<20), 400, "nested deeper than 100 levels"},
		{create, `{"vnfdId":"` + vnfdID + `","a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, 201, ""},
		{create, `"x"`, 400, "'x' is not of type 'object'"},
		{create, `{"a":"` + strings.Repeat("x", 5<<20) + `"}`, 413, "larger than 4194304 bytes"},
		{inst, `{"flavourId":"f","vimConnectionInfo":[{"id":"a","vimType":"t","accessInfo":{"password":"hunter2"}},{"id":"b","vimType":"t"}]}`, 400, "'password': '[redacted]'"},
		{inst, `{"flavourId":"f","vimConnectionInfo":[{"id":"a"}]}`, 400, "Invalid input for field/attribute 0. Value: {'id': 'a'}. 'vimType' is a required property"},
		{inst, `{"flavourId":"f","vimConnectionInfo":[{"id":"a","vimType":"t","accessInfo":{"ssl_ca_cert":"` + strings.Repeat("x", 5000) + `"}}]}`, 202, ""},
		{inst, link(``), 400, "'cpConfig' is a required property"},
		{inst, link(`,"cpConfig":[]`), 400, "Invalid input for field/attribute cpConfig. Value: []. [] is too short"},
		{inst, link(`,"cpConfig":[{},{}]`), 400, "[{}, {}] is too long"},
		{inst, link(`,"cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET","ipOverEthernet":{}}]}]`), 400, "{} is not valid under any of the given schemas"},
		{inst, link(`,"cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET"}]}]`), 202, ""},
		{inst, `{"flavourId":"f","extVirtualLinks":[{"id":"l","resourceId":"r","extCps":[]}]}`, 400, "[] is too short"},
		{inst, ip(`{"type":"IPV4","fixedAddresses":["10.0.0.1"]}`), 202, ""},
		{inst, ip(`{"type":"IPV6","fixedAddresses":["fe80::1"]}`), 202, ""},
		{inst, ip(`{"type":"IPV4","numDynamicAddresses":"2"}`), 202, ""},
		{inst, ip(`{"type":"IPV4","numDynamicAddresses":0}`), 400, "0 is less than the minimum of 1"},
		{inst, ip(`{"type":"IPV4","fixedAddresses":["zz"]}`), 400, "Invalid input for field/attribute 0. Value: zz. 'zz' is not a 'ipv4'"},
		{inst, ip(`{"type":"IPV6","fixedAddresses":["10.0.0.1"]}`), 400, "'10.0.0.1' is not a 'ipv6'"},
		{inst, ip(`{"type":"IPV4"}`), 400, "must have exactly one of"},
		{inst, ip(`{"type":"IPV4","fixedAddresses":["10.0.0.1"],"numDynamicAddresses":1}`), 400, "must have exactly one of"},
		{inst, ip(`{"type":"IPV4","addressRange":{"minAddress":"10.0.0.1","maxAddress":"::1"}}`), 400, "'::1' is not a 'ipv4'"},
		{inst, `{"flavourId":"f","extManagedVirtualLinks":[{"id":"a","resourceId":"r"}]}`, 400, "'vnfVirtualLinkDescId' is a required property"},
		{inst, `{"flavourId":"f","extManagedVirtualLinks":[{"id":"a","resourceId":"r","virtualLinkDescId":"v"}]}`, 202, ""},
		{term, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":-1}`, 400, "-1 is less than the minimum of 0"},
		{term, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":1.5}`, 400, "1.5 is not of type 'integer'"},
		{term, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":99999999999999999999}`, 400, "is not of type 'integer'"},
		{term, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":"x"}`, 400, "'x' is not of type 'integer'"},
		{term, `{"terminationType":"FORCEFUL","gracefulTerminationTimeout":5}`, 202, ""},
		{vm, `{"vim":{"foo":1}}`, 400, "Unrecognized attribute(s) 'foo'"},
		{vm, `{"vim":{"status":"x"}}`, 400, "Attribute 'status' not allowed in POST"},
		{vm, `{"vim":{"type":"openstack"}}`, 400, "Failed to parse request. Required attribute 'auth_url' not specified"},
		{vm, strings.Replace(vimBody, `{"username":"u","password":"p"}`, `{}`, 1), 400, "Invalid input for auth_cred. Reason: '{}' is not a valid dictionary or it is an empty dictionary."},
		{vm, strings.Replace(vimBody, `http://k/v3`, `ftp:x`, 1), 400, "is not a valid URL"},
		{vm, strings.Replace(vimBody, `true`, `"maybe"`, 1), 400, "cannot be converted to boolean"},
		{vm, `[]`, 400, "Malformed request body"},
	} {
		res := ask(t, newFake().handler(Config{}), "POST", c.path, c.body, jsn)
		if c.status < 400 {
			if res.StatusCode != c.status {
				t.Errorf("%.200s: %d %s", c.body, res.StatusCode, content(t, res))
			}
			continue
		}
		got := detail(t, res)
		if res.StatusCode != c.status || !strings.Contains(got, c.want) || len(got) > 1500 || strings.Contains(got, "hunter") {
			t.Errorf("%.200s:\n got %d %s\nwant %d %s", c.body, res.StatusCode, got, c.status, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2.5e3,"x\u0000"]}`, `{"a`, "[[[", "\xff", `{} {}`, " \n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, err := decode(raw)
		if err != nil {
			if !lcm.Is(err, lcm.KindInvalid) || !strings.Contains(err.Error(), "Malformed request body") {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q is taken for JSON", raw)
		}
		for _, s := range []string{
			"InstantiateVnfRequest", "CreateVnfRequest", "VnfInfoModificationRequest", "ScaleVnfToLevelRequest", "LccnSubscriptionRequest",
		} {
			if v := schemas()[s].check(tree, nil); v != nil && v.err() == nil {
				t.Fatal("a violation is no error")
			}
		}
		if m, ok := tree.(map[string]any); ok {
			for _, rules := range bodies {
				if rules.normalise != nil {
					rules.normalise(m)
				}
				if rules.rule != nil {
					_ = rules.rule(m)
				}
			}
		}
	})
}

// The request bodies that users have are accepted.
func TestSampleRequests(t *testing.T) {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set")
		return
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var m map[string]any
		if json.Unmarshal(raw, &m) != nil || m["flavourId"] == nil {
			return nil
		}
		seen++
		if res := ask(t, newFake().handler(Config{}), "POST", vi+"/"+known+"/instantiate", string(raw), jsn); res.StatusCode != 202 {
			t.Errorf("%s: %s", path, content(t, res))
		}
		return nil
	})
	t.Log(seen, "requests", err)
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		header        string
		size          int64
		start, length int64
		whole         bool
		kind          lcm.Kind
	}{
		{"", 10, 0, 10, true, ""},
		{"bytes=0-0", 10, 0, 1, false, ""},
		{"bytes=3-8", 10, 3, 6, false, ""},
		{"bytes=3-", 10, 3, 7, false, ""},
		{"bytes=3-99", 10, 3, 7, false, ""},
		{"bytes=9-9", 10, 9, 1, false, ""},
		{"bytes=-3", 10, 7, 3, false, ""},
		{"bytes=-99", 10, 0, 10, false, ""},
		{"bytes=10-", 10, 0, 0, false, lcm.KindRange},
		{"bytes=10-12", 10, 0, 0, false, lcm.KindRange},
		{"bytes=-0", 10, 0, 0, false, lcm.KindRange},
		{"bytes=5-3", 10, 0, 0, false, lcm.KindRange},
		{"bytes=-", 10, 0, 0, false, lcm.KindRange},
		{"bytes=", 10, 0, 0, false, lcm.KindRange},
		{"bytes=a-b", 10, 0, 0, false, lcm.KindRange},
		{"bytes=+1-2", 10, 0, 0, false, lcm.KindRange},
		{"bytes=1--2", 10, 0, 0, false, lcm.KindRange},
		{"bytes=99999999999999999999-", 10, 0, 0, false, lcm.KindRange},
		{"lines=1-2", 10, 0, 0, false, lcm.KindRange},
		{"bytes=0-1,2-3", 10, 0, 0, false, lcm.KindInvalid},
		{"bytes=0-", 0, 0, 0, false, lcm.KindRange},
		{"bytes=-1", 0, 0, 0, false, lcm.KindRange},
	} {
		start, length, whole, err := parseRange(c.header, c.size)
		if c.kind != "" {
			if !lcm.Is(err, c.kind) {
				t.Errorf("%s of %d: %v", c.header, c.size, err)
			}
			continue
		}
		if err != nil || start != c.start || length != c.length || whole != c.whole {
			t.Errorf("%s of %d: %d %d %v %v", c.header, c.size, start, length, whole, err)
		}
	}
}

func TestVnfdOfManyFiles(t *testing.T) {
	f := newFake()
	f.vnfd["Definitions/types.yaml"] = f.vnfd["Definitions/top.yaml"]
	f.vnfd["TOSCA-Metadata/TOSCA.meta"] = f.vnfd["Definitions/top.yaml"]
	h := f.handler(Config{})
	res := ask(t, h, "GET", pk+"/"+known+"/vnfd", "", "Accept: text/plain")
	if got := detail(t, res); res.StatusCode != 400 || got != "VNFD is implemented as multiple yaml files, Accept header should be 'application/zip'." {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	first := content(t, ask(t, h, "GET", pk+"/"+known+"/vnfd", "", "Accept: text/plain, application/zip"))
	second := content(t, ask(t, h, "GET", pk+"/"+known+"/vnfd", "", "Accept: */*"))
	if first != second || !strings.Contains(first, "TOSCA-Metadata/TOSCA.meta") || f.closed != 3 {
		t.Errorf("two zips differ, or lack a file, or %d of 3 are closed", f.closed)
	}
}

// Over a real connection: an upload that stands still is given up, a refused one is answered though its client sends on.
func TestUploads(t *testing.T) {
	f := newFake()
	srv := httptest.NewServer(f.handler(Config{Stall: 2 * time.Minute, MaxPackage: 8 << 20}))
	defer srv.Close()
	hasty := httptest.NewServer(f.handler(Config{Stall: 200 * time.Millisecond, MaxPackage: 8 << 20}))
	defer hasty.Close()
	send := func(id string, body io.Reader, length int64) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+pk+"/"+id+"/package_content", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/zip")
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			t.Cleanup(func() { _ = res.Body.Close() })
		}
		return res, err
	}
	big := strings.NewReader(strings.Repeat("x", 4<<20))
	if res, err := send(known, big, 4<<20); err != nil || res.StatusCode != 202 || len(f.upload) != 4<<20 {
		t.Errorf("upload: %v, %v, %d", res, err, len(f.upload))
	}
	if res, err := send(known, io.LimitReader(zeros{}, 9<<20), 9<<20); err != nil || res.StatusCode != 413 {
		t.Errorf("too large, told: %v, %v", res, err)
	}
	if res, err := send(known, io.LimitReader(zeros{}, 9<<20), -1); err != nil || res.StatusCode != 413 {
		t.Errorf("too large, not told: %v, %v", res, err)
	}
	if res, err := send(busy, io.LimitReader(zeros{}, 4<<20), 4<<20); err != nil || res.StatusCode != 409 {
		t.Errorf("refused: %v, %v", res, err)
	}
	conn, err := net.Dial("tcp", hasty.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "PUT %s/%s/package_content HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc", pk, known); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(conn) // ends when the server gives up
	if err != nil || strings.Contains(string(raw), " 202 ") {
		t.Errorf("stalled: %s, %v", raw, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
