package nfvo_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/fake"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo/nfvotest"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// onlyVIM is the only VIM there is.
type onlyVIM struct{ *lcm.VimTarget }

func (v onlyVIM) Resolve(context.Context, lcm.Scope, []sol003.VimConnectionInfo) (*lcm.VimTarget, error) {
	return v.VimTarget, nil
}

// manager is a whole VNF manager but for its API.
type manager struct {
	*lcm.Service
	st *store.Store
}

func newManager(t *testing.T, o *nfvotest.NFVO) *manager {
	t.Helper()
	ctx := context.Background()
	st := storetest.Open(t)
	packages := pkgm.New(pkgm.Config{Node: st.NodeID}, st, storetest.Log())
	fetched, err := nfvo.NewPackages(nfvo.PackagesConfig{BaseURL: o.PackagesURL()}, packages, storetest.Log())
	if err != nil {
		t.Fatal(err)
	}
	granter, err := nfvo.NewGranter(nfvo.GrantConfig{BaseURL: o.GrantURL(), Endpoint: "http://vnfm", Retries: 1, RetryWait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	drivers, err := infra.NewRegistry(fake.New(fake.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	vim := onlyVIM{&lcm.VimTarget{VIM: lcm.VIM{ID: uuid.NewString(), Type: lcm.VimFake}}}
	if _, err := st.Pool.Exec(ctx, `INSERT INTO vims (id, project_id, name, type, status, auth_url, body, sealed, created_at)
		VALUES ($1, 'p1', 'v', 'fake', 'REACHABLE', '', '{}', '', now())`, vim.ID); err != nil {
		t.Fatal(err)
	}
	newID := func() string { return uuid.Must(uuid.NewV7()).String() }
	m := &manager{&lcm.Service{Store: st, Packages: fetched, VIMs: vim, Infra: drivers, Now: st.Now, NewID: newID}, st}
	engine := &lcm.Engine{Store: st, Packages: fetched, VIMs: vim, Infra: drivers, Granter: granter, Now: st.Now, NewID: newID, Log: storetest.Log()}
	serving, cancel := context.WithCancel(ctx)
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- st.Serve(serving, store.WorkConfig{
			RunOperation: engine.Run, RunOnboarding: packages.Run, Operations: 4, Onboardings: 1,
			FetchCooldown: 5 * time.Millisecond, FetchPoll: 20 * time.Millisecond, Retention: time.Hour, Watch: 100 * time.Millisecond,
		}, func(ok bool) {
			if ok {
				close(ready)
			}
		})
	}()
	t.Cleanup(func() {
		fetched.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return m
}

// ended waits until the op occ is in the state.
func (m *manager) ended(t *testing.T, id string, state sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		body, err := m.st.OpOccBody(context.Background(), mine, id)
		if err != nil {
			t.Fatal(err)
		}
		op := new(sol003.VnfLcmOpOcc)
		if err := json.Unmarshal(body.JSON, op); err != nil {
			t.Fatal(err)
		}
		switch {
		case op.OperationState == state:
			return op
		case time.Now().After(deadline):
			t.Fatalf("op occ %s is in %s, not in %s: %+v", id, op.OperationState, state, op.Error)
		}
	}
}

func (m *manager) instantiate(t *testing.T, id string) string {
	t.Helper()
	op, err := m.Instantiate(context.Background(), mine, id, sol003.InstantiateVnfRequest{FlavourId: "simple"}, json.RawMessage(`{"flavourId":"simple"}`))
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// TestGrantedLife leads a VNF whose package the NFVO has through its life, under an NFVO in many moods.
func TestGrantedLife(t *testing.T) {
	o := nfvotest.Start(t)
	content := zip(t, vnfd1)
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, vnfd1, content), Zip: content})
	m := newManager(t, o)
	ctx := in(t)
	_, err := m.Create(ctx, mine, sol003.CreateVnfRequest{VnfdId: vnfd2})
	unusable(t, err, "Can not find requested to NFVO, vnf package info: vnfdId=["+vnfd2+"]")
	i, err := m.Create(ctx, mine, sol003.CreateVnfRequest{VnfdId: vnfd1})
	if err != nil {
		t.Fatal(err)
	}
	if i.PackageID != pkg1 {
		t.Errorf("%+v", i)
	}

	o.Behave(nfvotest.Manner{Refuse: "no room"})
	op := m.ended(t, m.instantiate(t, i.ID), sol003.LcmOperationStateRolledBack)
	if op.Error == nil || op.Error.Status != 403 || !strings.Contains(op.Error.Detail, "The NFVO refused the grant: no room") || op.ResourceChanges != nil {
		t.Errorf("refused: %+v", op.Error)
	}
	o.Behave(nfvotest.Manner{Failures: 9})
	op = m.ended(t, m.instantiate(t, i.ID), sol003.LcmOperationStateRolledBack)
	if op.Error == nil || !strings.Contains(op.Error.Detail, "failed requests: 2. The NFVO answered 500") {
		t.Errorf("failing: %+v", op.Error)
	}
	o.Behave(nfvotest.Manner{Change: func(g *sol003.Grant, _ sol003.GrantRequest) { g.AddResources = nil }})
	op = m.ended(t, m.instantiate(t, i.ID), sol003.LcmOperationStateRolledBack)
	if op.Error == nil || !strings.Contains(op.Error.Detail, "grant add resource error: not answered: ") {
		t.Errorf("unlike what was asked for: %+v", op.Error)
	}
	o.Behave(nfvotest.Manner{Looks: 2, Wait: "0"})
	op = m.ended(t, m.instantiate(t, i.ID), sol003.LcmOperationStateCompleted)
	if op.GrantId != "grant-5" || op.Error != nil { // the failing one was asked twice
		t.Errorf("granted later: %+v", op)
	}
	if op, err = m.terminate(t, i.ID); err != nil || op.GrantId != "grant-6" {
		t.Errorf("terminated: %+v, %v", op, err)
	}

	var asked []string
	for _, r := range o.Requests() {
		asked = append(asked, string(r.Operation))
	}
	if want := []string{"INSTANTIATE", "INSTANTIATE", "INSTANTIATE", "INSTANTIATE", "INSTANTIATE", "TERMINATE"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v", asked)
	}
	made, removed := o.Requests()[4].AddResources, o.Requests()[5].RemoveResources
	if len(made) != 1 || len(removed) != 1 || made[0].Id != removed[0].Id || removed[0].Resource == nil {
		t.Errorf("made %+v, removed %+v", made, removed)
	}
}

func (m *manager) terminate(t *testing.T, id string) (*sol003.VnfLcmOpOcc, error) {
	t.Helper()
	req := sol003.TerminateVnfRequest{TerminationType: sol003.TerminateVnfRequestTerminationTypeForceful}
	op, err := m.Terminate(context.Background(), mine, id, req, json.RawMessage(`{"terminationType":"FORCEFUL"}`))
	if err != nil {
		return nil, err
	}
	return m.ended(t, op, sol003.LcmOperationStateCompleted), nil
}
