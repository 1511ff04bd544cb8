package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestFilters checks the operators of SOL013 v2.6.1 §5.2 on bodies and on columns.
func TestFilters(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	names := map[string]string{}
	for n, name := range []string{"alpha", "Beta", "it's (a) 'test', %_\\"} {
		i, err := b.svc.Create(ctx, scope, sol003.CreateVnfRequest{VnfdId: b.pkg.Descriptor.ID, VnfInstanceName: name,
			Metadata: map[string]any{"n": n, "tags": []any{map[string]any{"k": "x" + fmt.Sprint(n)}, map[string]any{"k": "same"}}}})
		if err != nil {
			t.Fatal(err)
		}
		names[i.ID] = name
	}
	some := slices.Sorted(func(yield func(string) bool) {
		for id := range names {
			if !yield(id) {
				return
			}
		}
	})
	c := func(op, path string, values ...string) lcm.Condition {
		return lcm.Condition{Op: op, Path: strings.Split(path, "/"), Values: values}
	}
	odd := "it's (a) 'test', %_\\"
	for _, tt := range []struct {
		filter []lcm.Condition
		want   []string
	}{
		{nil, []string{"alpha", "Beta", odd}},
		{[]lcm.Condition{c("eq", "vnfInstanceName", "ALPHA")}, []string{"alpha"}},
		{[]lcm.Condition{c("eq", "vnfInstanceName", odd)}, []string{odd}},
		{[]lcm.Condition{c("neq", "vnfInstanceName", "alpha")}, []string{"Beta", odd}},
		{[]lcm.Condition{c("in", "vnfInstanceName", "beta", "alpha")}, []string{"alpha", "Beta"}},
		{[]lcm.Condition{c("nin", "vnfInstanceName", "beta", "alpha")}, []string{odd}},
		{[]lcm.Condition{c("cont", "vnfInstanceName", "%_\\")}, []string{odd}},
		{[]lcm.Condition{c("ncont", "vnfInstanceName", "a")}, nil},
		{[]lcm.Condition{c("gt", "metadata/n", "0")}, []string{"Beta", odd}},
		{[]lcm.Condition{c("gte", "metadata/n", "10")}, nil},
		{[]lcm.Condition{c("lt", "metadata/n", "1"), c("eq", "metadata/tags/k", "same")}, []string{"alpha"}},
		{[]lcm.Condition{c("eq", "metadata/tags/k", "x1")}, []string{"Beta"}},
		{[]lcm.Condition{c("eq", "absent/attribute", "x")}, nil},
		{[]lcm.Condition{c("neq", "absent/attribute", "x")}, nil},
		{[]lcm.Condition{c("eq", "id", some[0])}, []string{names[some[0]]}},
		{[]lcm.Condition{c("eq", "id", "no-uuid'); DROP TABLE vims; --")}, nil},
		{[]lcm.Condition{c("eq", "instantiationState", "not_instantiated")}, []string{"alpha", "Beta", odd}},
		{[]lcm.Condition{c("eq", "vnfdId", b.pkg.Descriptor.ID), c("eq", "vnfPkgId", b.pkg.ID)}, []string{"alpha", "Beta", odd}},
		{[]lcm.Condition{c("bad operator", "id", "x")}, nil},
	} {
		var got []string
		for body, err := range b.st.Instances(ctx, scope, lcm.Query{Filter: tt.filter}) {
			if err != nil {
				t.Fatalf("%v: %v", tt.filter, err)
			}
			got = append(got, names[body.ID])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.filter, got, tt.want)
		}
	}
	// Pages: after an id, in the order of creation; another project sees nothing.
	var page []string
	for body, err := range b.st.Instances(ctx, scope, lcm.Query{After: some[0], Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, body.ID)
	}
	if !slices.Equal(page, some[1:2]) {
		t.Errorf("page %v, want %v", page, some[1:2])
	}
	for range b.st.Instances(ctx, lcm.Scope{ProjectID: "other"}, lcm.Query{}) {
		t.Error("another project's instance is listed")
	}
	if _, err := b.st.InstanceBody(ctx, lcm.Scope{ProjectID: "other"}, some[0]); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("another project's instance: %v", err)
	}
	if _, err := b.st.InstanceBody(ctx, lcm.Scope{ProjectID: "other", Admin: true}, some[0]); err != nil {
		t.Errorf("the administrator: %v", err)
	}
	for _, id := range []string{"x", uuid.NewString(), ""} {
		if _, err := b.st.InstanceBody(ctx, scope, id); !lcm.Is(err, lcm.KindNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
