package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// copied is a sample package under another VNFD id.
func copied(t *testing.T, name string) []byte {
	t.Helper()
	files, err := deploy.Files(name)
	if err != nil {
		t.Fatal(err)
	}
	for p, data := range files {
		files[p] = bytes.ReplaceAll(data, []byte("5c1d9a64-0f0b-4b73-8d0e-3f7b2a8e9b02"), []byte("5c1d9a64-0f0b-4b73-8d0e-3f7b2a8e9bff"))
	}
	csartest.FixHashes(files)
	return csartest.Zip(t, files)
}

// created makes a VNF instance.
func (x *exam) created(on *site) string {
	x.t.Helper()
	return x.createdOf(on, on.vnfdID)
}

func (x *exam) createdOf(on *site, vnfdID string) string {
	x.t.Helper()
	a := x.want(201, "POST", request{on: on, path: instances, body: `{"vnfdId":"` + vnfdID + `"}`})
	return decode[sol003.VnfInstance](x, a).Id
}

// knobs are additionalParams for the instant VIM: what is to go wrong.
func knobs(settings string) string { return `"additionalParams":{"fake":{` + settings + `}}` }

// What the instant VIM is told.
const (
	hangs     = `"hangStep":"wait"`
	failsOnce = `"failStep":"%s","failTimes":1`
)

// toInstantiate is an InstantiateVnfRequest.
func toInstantiate(on *site, more ...string) string {
	flavour := `"flavourId":"simple"`
	parts := append([]string{flavour, `"vimConnectionInfo":[{"id":"v","vimId":"` + on.vimID + `","vimType":"fake"}]`}, more...)
	return "{" + strings.Join(parts, ",") + "}"
}

// started asks for an operation and returns its op occ's id.
func (x *exam) started(on *site, route, id, body string) string {
	x.t.Helper()
	method := "POST"
	if route == instance {
		method = "PATCH"
	}
	return x.opOccOf(x.want(202, method, request{on: on, path: at(route, id), body: body}))
}

// opOccOf is the op occ that an answer's Location names.
func (x *exam) opOccOf(a *answer) string {
	x.t.Helper()
	location := a.text("Location")
	base, id, ok := strings.Cut(location, opOccs+"/")
	if !ok || !strings.HasPrefix(base, "http://") || len(id) != 36 || len(a.body) != 0 {
		x.t.Fatalf("Location %q, body %q", location, a.body)
	}
	return id
}

// shown reads an op occ.
func (x *exam) shown(on *site, opOccID string) sol003.VnfLcmOpOcc {
	x.t.Helper()
	return decode[sol003.VnfLcmOpOcc](x, x.want(200, "GET", request{on: on, path: at(opOcc, opOccID)}))
}

// in waits until an op occ is in a state.
func (x *exam) in(on *site, opOccID string, state sol003.LcmOperationState) sol003.VnfLcmOpOcc {
	x.t.Helper()
	var op sol003.VnfLcmOpOcc
	err := harness.Await(x.ctx, "op occ "+opOccID+" is "+string(state), func(context.Context) (bool, error) {
		op = x.shown(on, opOccID)
		switch op.OperationState {
		case state:
			return true, nil
		case "COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK":
			return false, fmt.Errorf("it is %s: %+v", op.OperationState, op.Error)
		}
		return false, nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.links(op)
	return op
}

// links checks that an op occ has the links of its state.
func (x *exam) links(op sol003.VnfLcmOpOcc) {
	x.t.Helper()
	want := []string{"self", "vnfInstance"}
	if op.GrantId != "" {
		want = append(want, "grant")
	}
	switch op.OperationState {
	case "STARTING", "PROCESSING", "ROLLING_BACK":
		if !op.IsCancelPending {
			want = append(want, "cancel")
		}
	case "FAILED_TEMP":
		want = append(want, "fail", "retry")
		if op.Operation != "TERMINATE" && op.Operation != "HEAL" && op.OperationParams["type"] != "SCALE_IN" {
			want = append(want, "rollback")
		}
	}
	x.sameLinks(op.Id, op.UnderscoreLinks, want)
	if failed := op.OperationState == "FAILED_TEMP" || op.OperationState == "FAILED"; failed != (op.Error != nil) && op.OperationState != "ROLLED_BACK" && op.OperationState != "ROLLING_BACK" {
		x.t.Errorf("op occ %s is %s with error %+v", op.Id, op.OperationState, op.Error)
	}
}

func (x *exam) sameLinks(id string, links map[string]sol003.Link, want []string) {
	x.t.Helper()
	var names []string
	for name, l := range links {
		names = append(names, name)
		if !strings.HasPrefix(l.Href, "http://127.0.0.1:") {
			x.t.Errorf("%s: link %s leads to %s", id, name, l.Href)
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		x.t.Errorf("%s has the links %v, want %v", id, names, want)
	}
}

// read reads a VNF instance and checks the links of its state.
func (x *exam) read(on *site, id string) sol003.VnfInstance {
	x.t.Helper()
	i := decode[sol003.VnfInstance](x, x.want(200, "GET", request{on: on, path: at(instance, id)}))
	want := []string{"self", "instantiate"}
	if i.InstantiationState == sol003.InstantiationStateInstantiated {
		want = []string{"self", "terminate", "changeFlavour", "heal", "operate", "changeExtConn"}
		if i.InstantiatedVnfInfo == nil {
			x.t.Fatalf("%s is INSTANTIATED and has no instantiatedVnfInfo", id)
		}
		if len(i.InstantiatedVnfInfo.ScaleStatus) > 0 {
			want = append(want, "scale", "scaleToLevel")
		}
	}
	x.sameLinks(id, i.UnderscoreLinks, want)
	return i
}

// instantiated makes a VNF that is there.
func (x *exam) instantiated(on *site) string {
	x.t.Helper()
	id := x.created(on)
	x.in(on, x.started(on, instantiate, id, toInstantiate(on)), "COMPLETED")
	return id
}

// instantiatedPlain makes a VNF of one flavour, which does not scale.
func (x *exam) instantiatedPlain(on *site) string {
	x.t.Helper()
	id := x.createdOf(on, on.plainVnfdID)
	body := strings.Replace(toInstantiate(on), `"simple"`, `"default"`, 1)
	x.in(on, x.started(on, instantiate, id, body), "COMPLETED")
	return id
}

// occupied makes a VNF that is there, and on which an operation goes on for ever.
func (x *exam) occupied(on *site) (id, opOccID string) {
	x.t.Helper()
	id = x.instantiated(on)
	opOccID = x.started(on, heal, id, `{`+knobs(hangs)+`}`)
	x.in(on, opOccID, "PROCESSING")
	return id, opOccID
}

// fell makes a VNF whose instantiation has failed at a step, and would not fail again.
func (x *exam) fell(on *site, step string) (id, opOccID string) {
	x.t.Helper()
	id = x.created(on)
	opOccID = x.started(on, instantiate, id, toInstantiate(on, knobs(fmt.Sprintf(failsOnce, step))))
	x.in(on, opOccID, "FAILED_TEMP")
	return id, opOccID
}

func basic(user string) []string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, user+"-secret")
	return []string{"Authorization: " + r.Header.Get("Authorization")}
}

// until waits for what comes to pass by itself.
func (x *exam) until(what string, ready func() bool) {
	x.t.Helper()
	if err := harness.Await(x.ctx, what, func(context.Context) (bool, error) { return ready(), nil }); err != nil {
		x.t.Fatal(err)
	}
}
