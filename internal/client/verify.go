package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Verify has a VNF instance compared with what its VIM has of it, now (an interface of this manager's own).
func (c *Client) Verify(ctx context.Context, id string) (*Object, error) {
	return c.object(ctx, request{method: http.MethodGet, path: "/vnfm/v1/vnf_instances/" + seg(id) + "/verify"})
}

// Verified reads what was last seen of a VNF instance.
func (c *Client) Verified(ctx context.Context, id string) (*Object, error) {
	return c.object(ctx, request{method: http.MethodGet, path: "/vnfm/v1/verifications/" + seg(id)})
}

// Drifting lists what was last seen of the VNF instances that differ or could not be verified, all pages.
func (c *Client) Drifting(ctx context.Context) ([]*Object, error) {
	values := url.Values{"filter": {"(neq,result,SAME)"}}
	return c.list(ctx, request{method: http.MethodGet, path: "/vnfm/v1/verifications", query: values.Encode()}, "")
}

// Differences returns those of a verification, each with its mend as a text.
func Differences(verification *Object) []*Object {
	list, _ := verification.Values["differences"].([]any)
	out := []*Object{}
	for _, e := range list {
		d, ok := e.(*Object)
		if !ok {
			continue
		}
		shown := NewObject().Set("mend", mendOf(d).text())
		shown.Merge(without(d, "mend"))
		if r, ok := d.Values["resource"].(*Object); ok {
			shown.Set("resource", r.Text("resourceId"))
		}
		out = append(out, shown)
	}
	return out
}

func without(o *Object, key string) *Object {
	out := NewObject()
	for _, k := range o.Keys {
		if k != key {
			out.Set(k, o.Values[k])
		}
	}
	return out
}

// mend is what ends a difference.
type mend struct {
	first, operation string
	vnfcs            []string
}

func mendOf(difference *Object) mend {
	m, ok := difference.Values["mend"].(*Object)
	if !ok {
		return mend{}
	}
	out := mend{first: m.Text("first"), operation: m.Text("operation")}
	list, _ := m.Values["vnfcInstanceId"].([]any)
	for _, e := range list {
		if id, ok := e.(string); ok {
			out.vnfcs = append(out.vnfcs, id)
		}
	}
	return out
}

func (m mend) text() string {
	var out []string
	if m.first != "" {
		out = append(out, m.first)
	}
	if m.operation != "" {
		what := strings.ToLower(m.operation)
		switch {
		case len(m.vnfcs) > 0:
			what += " vnfcInstanceId " + strings.Join(m.vnfcs, " ")
		case m.operation == "HEAL":
			what += " (the whole VNF)"
		}
		out = append(out, what)
	}
	return strings.Join(out, "; then ")
}

// HealArguments returns the arguments of the `vnflcm heal` that mends the differences of a verification, nil when none does.
// Those that are mended by something else do not count.
func HealArguments(verification *Object) []string {
	list, _ := verification.Values["differences"].([]any)
	var vnfcs []string
	heals, whole := false, false
	for _, e := range list {
		d, ok := e.(*Object)
		if !ok {
			continue
		}
		m := mendOf(d)
		if m.operation != "HEAL" {
			continue
		}
		heals, whole = true, whole || len(m.vnfcs) == 0
		vnfcs = append(vnfcs, m.vnfcs...)
	}
	id := verification.Text("vnfInstanceId")
	switch {
	case !heals:
		return nil
	case whole:
		return []string{id}
	}
	slices.Sort(vnfcs)
	return append([]string{id, "--vnfc-instance"}, slices.Compact(vnfcs)...)
}

// DifferenceList is how `vnflcm verify` lists the differences of an instance.
func DifferenceList() ShowSpec {
	return ShowSpec{columns: []column{
		{"kind", "Kind"}, {"part", "Part"}, {"name", "Name"}, {"id", "ID"}, {"resource", "Resource ID"}, {"recorded", "Recorded"}, {"found", "Found"}, {"mend", "Mend"},
	}}
}

// DriftingList is how `vnflcm verify --all` lists instances.
func DriftingList() ShowSpec {
	attrs := []string{"vnfInstanceId", "vnfInstanceName", "vimId", "result", "differenceCount", "differsSince", "verifiedAt", "changedSince", "problem"}
	return ShowSpec{mixed: attrs, columns: []column{
		{"vnfInstanceId", "VNF Instance ID"}, {"vnfInstanceName", "VNF Instance Name"}, {"vimId", "VIM ID"}, {"result", "Result"},
		{"differenceCount", "Differences"}, {"differsSince", "Differs Since"}, {"verifiedAt", "Verified At"}, {"changedSince", "Changed"}, {"problem", "Problem"},
	}}
}
