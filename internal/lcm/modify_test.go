package lcm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// TestMerge: the examples of RFC 7396 that are of objects.
func TestMerge(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if diff := cmp.Diff(object(t, c.want), merge(object(t, c.target), object(t, c.patch))); diff != "" {
			t.Errorf("%s by %s: %s", c.target, c.patch, diff)
		}
	}
}

func object(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModification(t *testing.T) {
	instance := func() *Instance {
		return &Instance{
			Name: "n", Desc: "d", Metadata: map[string]any{"a": "1", "m": map[string]any{"x": "1"}}, VnfdID: "v1", PackageID: "p1",
			VimConnections: []sol003.VimConnectionInfo{{Id: "c1", VimId: "vim", VimType: "openstack", AccessInfo: map[string]any{"username": "u", "password": "s"}}},
		}
	}
	apply := func(t *testing.T, patch string, to *Package) (*Instance, *sol003.VnfInfoModifications) {
		t.Helper()
		m, err := parseModification(json.RawMessage(patch))
		if err != nil {
			t.Fatal(err)
		}
		i := instance()
		return i, m.apply(i, to)
	}
	i, changed := apply(t, `{"vnfInstanceName":"new"}`, nil)
	if i.Name != "new" || i.Desc != "d" || i.Metadata["a"] != "1" || changed.VnfInstanceName != "new" || changed.Metadata != nil {
		t.Errorf("a name: %+v %+v", i, changed)
	}
	if i, _ = apply(t, `{"vnfInstanceDescription":null,"metadata":{"a":null,"m":{"y":"2"}}}`, nil); i.Desc != "" || !cmp.Equal(i.Metadata, map[string]any{"m": map[string]any{"x": "1", "y": "2"}}) {
		t.Errorf("null: %+v", i)
	}
	if i, _ = apply(t, `{"metadata":null}`, nil); i.Metadata != nil {
		t.Errorf("no metadata: %v", i.Metadata)
	}
	i, changed = apply(t, `{"vimConnectionInfo":[{"id":"c1","accessInfo":{"password":"new"}},{"id":"c2","vimType":"openstack"}]}`, nil)
	if len(i.VimConnections) != 2 || i.VimConnections[0].AccessInfo["password"] != "new" || i.VimConnections[0].AccessInfo["username"] != "u" || i.VimConnections[0].VimId != "vim" {
		t.Errorf("connections %+v", i.VimConnections)
	}
	if len(changed.VimConnectionInfo) != 2 {
		t.Errorf("changed %+v", changed)
	}
	i, changed = apply(t, `{"vnfdId":"v2"}`, &Package{ID: "p2", Descriptor: &vnfd.Descriptor{ID: "v2", Provider: "P", ProductName: "N", SoftwareVersion: "2", Version: "2.0"}})
	if i.PackageID != "p2" || i.VnfdID != "v2" || i.SoftwareVersion != "2" || changed.VnfdId != "v2" || changed.VnfPkgId != "p2" {
		t.Errorf("a package: %+v %+v", i, changed)
	}
	if _, err := parseModification(json.RawMessage(`[]`)); !Is(err, KindInvalid) {
		t.Errorf("an array: %v", err)
	}
}
