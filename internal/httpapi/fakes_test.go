package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const (
	known   = "11111111-1111-4111-8111-111111111111"
	unknown = "99999999-9999-4999-8999-999999999999"
	busy    = "22222222-2222-4222-8222-222222222222"
	opOcc   = "33333333-3333-4333-8333-333333333333"
	vnfdID  = "44444444-4444-4444-8444-444444444444"
)

// fake is all of the Deps.
type fake struct {
	scope   lcm.Scope
	query   lcm.Query
	raw     json.RawMessage
	ifMatch int64
	created sol003.CreateVnfRequest
	inst    sol003.InstantiateVnfRequest
	term    sol003.TerminateVnfRequest
	mods    sol003.VnfPkgInfoModifications
	hasData bool
	upload  []byte
	vim     lcm.VIM
	change  lcm.VIMChange
	closed  int
	err     error // answered by everything when set
	fail    int   // a list fails after that many bodies

	instances, opOccs, packages []lcm.Body
	subscriptions               []lcm.Body
	vims                        []lcm.VIM
	req                         any // that came in last, as decoded
	mode                        sol003.CancelModeType
	vnfd                        fstest.MapFS
	content                     []byte
}

func find(err error, bodies []lcm.Body, id, format string) (lcm.Body, error) {
	if err != nil {
		return lcm.Body{}, err
	}
	for _, b := range bodies {
		if b.ID == id {
			return b, nil
		}
	}
	return lcm.Body{}, lcm.Errorf(lcm.KindNotFound, format, id)
}

func (f *fake) check(id, format string) error {
	switch {
	case f.err != nil:
		return f.err
	case id == known:
		return nil
	case id == busy:
		return lcm.Titled(lcm.KindConflict, "BUSY", "%s is busy", id)
	default:
		return lcm.Errorf(lcm.KindNotFound, format, id)
	}
}

type fakeLCM struct{ *fake }

func (f fakeLCM) Create(_ context.Context, s lcm.Scope, req sol003.CreateVnfRequest) (*lcm.Instance, error) {
	f.scope, f.created = s, req
	return &lcm.Instance{ID: known, VnfdID: req.VnfdId, Name: req.VnfInstanceName, State: "NOT_INSTANTIATED", Version: 1}, f.err
}

func (f fakeLCM) Delete(_ context.Context, _ lcm.Scope, id string, ifMatch int64) error {
	f.ifMatch = ifMatch
	if ifMatch > 1 {
		return lcm.Errorf(lcm.KindPrecondition, "changed")
	}
	return f.check(id, "Can not find requested vnf instance: %s")
}

func (f fakeLCM) Instantiate(_ context.Context, _ lcm.Scope, id string, req sol003.InstantiateVnfRequest, raw json.RawMessage) (string, error) {
	f.inst, f.raw = req, raw
	return opOcc, f.check(id, "Can not find requested vnf: %s")
}

func (f fakeLCM) Terminate(_ context.Context, _ lcm.Scope, id string, req sol003.TerminateVnfRequest, raw json.RawMessage) (string, error) {
	f.term, f.raw = req, raw
	return opOcc, f.check(id, "Can not find requested vnf: %s")
}

func (f fakeLCM) Scale(_ context.Context, _ lcm.Scope, id string, req sol003.ScaleVnfRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) ScaleToLevel(_ context.Context, _ lcm.Scope, id string, req sol003.ScaleVnfToLevelRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) ChangeFlavour(_ context.Context, _ lcm.Scope, id string, req sol003.ChangeVnfFlavourRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) Heal(_ context.Context, _ lcm.Scope, id string, req sol003.HealVnfRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) Operate(_ context.Context, _ lcm.Scope, id string, req sol003.OperateVnfRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) ChangeExtConn(_ context.Context, _ lcm.Scope, id string, req sol003.ChangeExtVnfConnectivityRequest, raw json.RawMessage) (string, error) {
	return f.task(id, req, raw)
}

func (f fakeLCM) Modify(_ context.Context, _ lcm.Scope, id string, raw json.RawMessage, ifMatch int64) (string, error) {
	f.ifMatch = ifMatch
	if ifMatch > 0 && ifMatch != 7 {
		return "", lcm.Errorf(lcm.KindPrecondition, "changed")
	}
	return f.task(id, nil, raw)
}

func (f fakeLCM) task(id string, req any, raw json.RawMessage) (string, error) {
	f.req, f.raw = req, raw
	return opOcc, f.check(id, "Can not find requested vnf: %s")
}

func (f fakeLCM) Cancel(_ context.Context, _ lcm.Scope, id string, mode sol003.CancelModeType) error {
	f.mode = mode
	return f.move(id)
}

func (f fakeLCM) Retry(_ context.Context, _ lcm.Scope, id string) error    { return f.move(id) }
func (f fakeLCM) Rollback(_ context.Context, _ lcm.Scope, id string) error { return f.move(id) }
func (f fakeLCM) Fail(_ context.Context, _ lcm.Scope, id string) error     { return f.move(id) }

// move lets every op occ that there is be moved.
func (f fakeLCM) move(id string) error {
	_, err := find(f.err, f.opOccs, id, "%s")
	return err
}

type fakeReader struct{ *fake }

func (f fakeReader) InstanceBody(_ context.Context, s lcm.Scope, id string) (lcm.Body, error) {
	f.scope = s
	return find(f.err, f.instances, id, "Can not find requested vnf instance: %s")
}

func (f fakeReader) OpOccBody(_ context.Context, _ lcm.Scope, id string) (lcm.Body, error) {
	b, err := find(f.err, f.opOccs, id, "%s")
	if lcm.Is(err, lcm.KindNotFound) {
		err = lcm.Titled(lcm.KindNotFound, "VnfLcmOpOcc NOT FOUND", "table vnf_lcm_op_occs not Found")
	}
	return b, err
}

func (f fakeReader) PackageBody(_ context.Context, _ lcm.Scope, id string) (lcm.Body, error) {
	return find(f.err, f.packages, id, "Can not find requested vnf package: %s")
}

func (f *fake) list(q lcm.Query, all []lcm.Body) iter.Seq2[lcm.Body, error] {
	f.query = q
	return func(yield func(lcm.Body, error) bool) {
		if f.err != nil {
			yield(lcm.Body{}, f.err)
			return
		}
		started, n := q.After == "", 0
		for _, b := range all {
			if !started {
				started = b.ID == q.After
				continue
			}
			if q.Limit > 0 && n == q.Limit {
				return
			}
			if n++; f.fail > 0 && n > f.fail {
				yield(lcm.Body{}, fmt.Errorf("the database is gone"))
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

func (f fakeReader) Instances(_ context.Context, _ lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return f.list(q, f.instances)
}

func (f fakeReader) OpOccs(_ context.Context, _ lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return f.list(q, f.opOccs)
}

func (f fakeReader) Packages(_ context.Context, _ lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return f.list(q, f.packages)
}

type fakeSubscriptions struct{ *fake }

// Subscribe has one subscription already: the one to http://twice.
func (f fakeSubscriptions) Subscribe(_ context.Context, _ lcm.Scope, req sol003.LccnSubscriptionRequest, raw json.RawMessage) (*lcm.Subscription, error) {
	f.req, f.raw = req, raw
	switch {
	case f.err != nil:
		return nil, f.err
	case req.CallbackUri == "http://twice":
		return nil, &lcm.SubscribedError{ID: known}
	}
	return &lcm.Subscription{ID: known, CallbackURI: req.CallbackUri, Filter: req.Filter, Auth: req.Authentication, Version: 7}, nil
}

func (f fakeReader) SubscriptionBody(_ context.Context, _ lcm.Scope, id string) (lcm.Body, error) {
	return find(f.err, f.subscriptions, id, "Can not find requested vnf lcm subscriptions: %s")
}

func (f fakeReader) Subscriptions(_ context.Context, _ lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return f.list(q, f.subscriptions)
}

func (f fakeSubscriptions) Unsubscribe(_ context.Context, _ lcm.Scope, id string) error {
	return f.check(id, "Can not find requested vnf lcm subscription: %s")
}

type fakePackages struct{ *fake }

const noPackage = "Can not find requested vnf package: %s"

func (f fakePackages) Create(_ context.Context, _ lcm.Scope, data map[string]any) (*lcm.Package, error) {
	return &lcm.Package{ID: known, Version: 1, OnboardingState: "CREATED", OperationalState: "DISABLED", UsageState: "NOT_IN_USE", UserDefinedData: data}, f.err
}

func (f fakePackages) Update(_ context.Context, _ lcm.Scope, id string, m sol003.VnfPkgInfoModifications, has bool) (*sol003.VnfPkgInfoModifications, error) {
	f.mods, f.hasData = m, has
	return &m, f.check(id, noPackage)
}
func (f fakePackages) Delete(_ context.Context, _ lcm.Scope, id string) error {
	return f.check(id, noPackage)
}

func (f fakePackages) Upload(_ context.Context, _ lcm.Scope, id string, body io.Reader) error {
	if err := f.check(id, noPackage); err != nil {
		return err
	}
	var err error
	f.upload, err = io.ReadAll(body)
	return err
}

func (f fakePackages) UploadFromURI(_ context.Context, _ lcm.Scope, id string, _ sol003.UploadVnfPackageFromUriRequest) error {
	return f.check(id, noPackage)
}

type closing struct {
	*bytes.Reader
	f *fake
}

func (c closing) Close() error { c.f.closed++; return nil }

func (f fakePackages) Content(_ context.Context, _ lcm.Scope, id string) (io.ReadSeekCloser, int64, error) {
	return closing{bytes.NewReader(f.content), f.fake}, int64(len(f.content)), f.check(id, noPackage)
}

type fakeFS struct {
	fstest.MapFS
	f *fake
}

func (c fakeFS) Close() error { c.f.closed++; return nil }

func (f fakePackages) Vnfd(_ context.Context, _ lcm.Scope, id string) ([]string, lcm.PackageFS, error) {
	var files []string
	for name := range f.vnfd {
		files = append(files, name)
	}
	return files, fakeFS{f.vnfd, f.fake}, f.check(id, noPackage)
}

func (f fakePackages) Artifact(_ context.Context, _ lcm.Scope, id, path string) (io.ReadSeekCloser, int64, error) {
	if err := f.check(id, noPackage); err != nil {
		return nil, 0, err
	}
	if !strings.HasPrefix(path, "Scripts/") {
		return nil, 0, lcm.Errorf(lcm.KindNotFound, "Not Found Artifact File.")
	}
	return closing{bytes.NewReader([]byte(path)), f.fake}, int64(len(path)), nil
}

type fakeVIMs struct{ *fake }

func (f fakeVIMs) Register(_ context.Context, s lcm.Scope, v lcm.VIM) (*lcm.VIM, error) {
	f.scope, f.vim = s, v
	v.ID, v.Status, v.Created, v.Regions = known, lcm.VimPending, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []string{"RegionOne"}
	return &v, f.err
}
func (f fakeVIMs) List(context.Context, lcm.Scope) ([]lcm.VIM, error) { return f.vims, f.err }

const noVIM = "Specified VIM id %s is invalid. Please verify and pass a valid VIM id"

func (f fakeVIMs) Get(_ context.Context, _ lcm.Scope, id string) (*lcm.VIM, error) {
	return &lcm.VIM{ID: id, Name: "VIM0", Auth: map[string]any{"username": "u", "password": "secret"}}, f.check(id, noVIM)
}

func (f fakeVIMs) Update(_ context.Context, _ lcm.Scope, id string, c lcm.VIMChange) (*lcm.VIM, error) {
	f.change = c
	return &lcm.VIM{ID: id, Name: "VIM0", Updated: time.Unix(1, 0)}, f.check(id, noVIM)
}
func (f fakeVIMs) Delete(_ context.Context, _ lcm.Scope, id string) error {
	return f.check(id, noVIM)
}

func body(id string, v map[string]any) lcm.Body {
	v["id"] = id
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return lcm.Body{ID: id, Version: 7, JSON: raw}
}

func newFake() *fake {
	f := &fake{content: []byte("0123456789"), vnfd: fstest.MapFS{"Definitions/top.yaml": {Data: []byte("a: 1\n")}}}
	f.instances = []lcm.Body{
		body(known, map[string]any{"vnfInstanceName": "n", "instantiationState": "NOT_INSTANTIATED", "metadata": map[string]any{"k": "v"}}),
		body(busy, map[string]any{"instantiationState": "INSTANTIATED", "instantiatedVnfInfo": map[string]any{"flavourId": "f", "vnfState": "STARTED"}}),
	}
	f.opOccs = []lcm.Body{body(opOcc, map[string]any{"operationState": "FAILED_TEMP", "vnfInstanceId": known, "operationParams": map[string]any{"a": 1},
		"error": map[string]any{"status": 500, "detail": "x"}})}
	f.subscriptions = []lcm.Body{body(known, map[string]any{"callbackUri": "http://h/cb", "filter": map[string]any{"operationTypes": []any{"SCALE"}}})}
	f.packages = []lcm.Body{body(known, map[string]any{"onboardingState": "ONBOARDED", "usageState": "IN_USE",
		"checksum":        map[string]any{"algorithm": "sha512", "hash": "00"},
		"softwareImages":  []any{map[string]any{"id": "a", "name": "n", "checksum": map[string]any{"algorithm": "x", "hash": "y"}}, map[string]any{"id": "b", "name": "m"}},
		"userDefinedData": map[string]any{"foo": "bar", "k<": 1}})}
	return f
}

func (f *fake) handler(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return New(cfg, Deps{fakeLCM{f}, fakeReader{f}, fakePackages{f}, fakeVIMs{f}, fakeSubscriptions{f}, fakeVerifier{f}, fakeVerifier{f}})
}

// ask sends a request whose headers are given as "Name: value".
func ask(t testing.TB, h http.Handler, method, target, body string, headers ...string) *http.Response {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, in)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	if res.Header.Get("Content-Type") == "" || !strings.HasPrefix(res.Header.Get("X-Openstack-Request-Id"), "req-") {
		t.Errorf("%s %s: headers %v", method, target, res.Header)
	}
	return res
}

func content(t testing.TB, res *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// detail returns what a problem or a TackerError says.
func detail(t testing.TB, res *http.Response) string {
	t.Helper()
	var p struct {
		Status      int
		Detail      string
		Title       string
		TackerError struct{ Message, Type string }
	}
	raw := content(t, res)
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	if p.TackerError.Message != "" {
		if p.TackerError.Type == "" || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("TackerError %s", raw)
		}
		return p.TackerError.Message
	}
	if p.Status != res.StatusCode || p.Detail == "" || p.Title == "" || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("problem %s with status %d, %v", raw, res.StatusCode, res.Header)
	}
	return p.Detail
}
