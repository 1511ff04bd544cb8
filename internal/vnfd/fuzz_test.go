package vnfd

import (
	"errors"
	"testing"
	"testing/fstest"
)

// FuzzRead checks that no entry file makes Read panic or hang, that refusals
// are complete diagnostics, and that what is read survives JSON and answers
// questions about scaling.
func FuzzRead(f *testing.F) {
	f.Add([]byte("topology_template: {}"))
	base := testPackage(f, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := fstest.MapFS{}
		for name, file := range base {
			m[name] = file
		}
		m["entry.yaml"] = &fstest.MapFile{Data: data}
		d, err := Read(m, "entry.yaml")
		if err != nil {
			var list Diagnostics
			if !errors.As(err, &list) || len(list) == 0 || d != nil {
				t.Fatalf("error %v (%T) with descriptor %v", err, err, d)
			}
			for _, x := range list {
				if x.File == "" || x.Rule == "" || x.Message == "" {
					t.Fatalf("incomplete finding %+v", x)
				}
			}
			return
		}
		roundTrip(t, d)
		for i := range d.Flavours {
			fl := &d.Flavours[i]
			fl.ScaleGroups("")
			for _, v := range fl.VDUs {
				n, err := fl.InstanceCount(v.Name, "")
				if err == nil && n < 0 {
					t.Fatalf("%d instances of %q", n, v.Name)
				}
			}
		}
	})
}
