package store_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// listsOnly serves lists off the store; nothing else is asked for.
func listsOnly(st *store.Store) httpapi.Deps {
	return httpapi.Deps{
		LCM: struct{ httpapi.LCM }{}, Reader: st, Packages: struct{ httpapi.Packages }{}, VIMs: struct{ httpapi.VIMs }{},
		Subscriptions: struct{ httpapi.Subscriptions }{},
	}
}

// Whatever the parser lets pass, PostgreSQL understands: a list with any filter is answered 200 or 400.
func FuzzFilterSQL(f *testing.F) {
	for _, seed := range []string{
		"(eq,id,11111111-1111-4111-8111-111111111111)", "(in,vnfInstanceName,'a,b','it''s')", "(gt,metadata/a~1b,1);(eq,vnfdId,11111111-1111-4111-8111-111111111111)",
		"(eq,metadata/@key,1)", "(nin,metadata/a/@key,1,2)", "(cont,instantiatedVnfInfo/vnfcResourceInfo/id,'')", "(lte,instantiatedVnfInfo/scaleStatus/scaleLevel,1e5)",
		"(gt,startTime,2026-01-01)", "(eq,stateEnteredTime,0001-01-01T00:00:00Z)", "(lt,startTime,9999-12-31T23:59:59.999999999Z)", "(neq,isCancelPending,true)",
		"(gt,metadata/n,1e999)", "(gt,metadata/n,2026-02-30T00:00:00Z)", "(gt,metadata/t,2026-02-03T00:00:00+15:59)", "(eq,metadata/'\\\"$.[*]?@,x)", "(gt,operationParams/a,-0.0e-12)",
		"(eq,error/status,99999999999999999999999999999)", "(gt,vnfPkgId,11111111-1111-4111-8111-111111111111)", "(cont,callbackUri,%)", "(gte,softwareImages/createdAt,2026-01-01)",
	} {
		f.Add(seed)
	}
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: storetest.URL(f), Sealer: storetest.Sealer(f), Log: storetest.Log()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(st.Close)
	odd := `{"id":"x","vnfInstanceName":"it's","metadata":{"n":[1,"1e400","-1",{"a":"2026-02-30T00:00:00Z"}],"t":"0000-00-00T00:00:00Z","a":null,"'\\\"$.[*]?@":"x"},"error":{"status":500},"operationParams":{"a":[[[["9999-12-31T24:00:00Z"]]]]}}`
	for _, sql := range []string{
		`INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, created_at) VALUES ($1, 'p', 'it''s', 'x', $1, 'INSTANTIATED', $2, now())`,
		`INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, operation, operation_state, start_time, state_entered_time, body, sealed, active) VALUES ($1, $1, 'p', 'HEAL', 'FAILED', now(), now(), $2, '', false)`,
		`INSERT INTO vnf_packages (id, project_id, onboarding_state, operational_state, body, created_at) VALUES ($1, 'p', 'CREATED', 'DISABLED', $2, now())`,
	} {
		if _, err := st.Pool.Exec(ctx, sql, uuid.NewString(), odd); err != nil {
			f.Fatal(err)
		}
	}
	h := httpapi.New(httpapi.Config{Log: storetest.Log()}, listsOnly(st))
	f.Fuzz(func(t *testing.T, filter string) {
		for _, list := range []string{"/vnflcm/v1/vnf_instances", "/vnflcm/v1/vnf_lcm_op_occs", "/vnflcm/v1/subscriptions", "/vnfpkgm/v1/vnf_packages"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", list+"?filter="+url.QueryEscape(filter), nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 200 && w.Code != 400 {
				t.Fatalf("%s by %q: %d %s", list, filter, w.Code, w.Body)
			}
		}
	})
}
