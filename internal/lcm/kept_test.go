package lcm

import (
	"strings"
	"testing"
)

// What a newer version of a driver has written is left alone; what an older one has written, and nothing, is read.
func TestKept(t *testing.T) {
	type kept struct {
		V    int    `json:"v"`
		Name string `json:"name,omitempty"`
	}
	i := &Instance{ID: "i"}
	if err := i.SaveInfra(kept{V: 2, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	x := &Execution{Op: &OpOcc{ID: "o", Work: Work{"infra:x": i.Infra}}}
	for version, newer := range map[int]bool{1: true, 2: false, 3: false} {
		var ofInstance, ofOp kept
		for what, err := range map[string]error{"instance": i.LoadInfra(version, &ofInstance), "op occ": x.WorkUpTo(version, "infra:x", &ofOp)} {
			if newer != (err != nil) || newer && !strings.Contains(err.Error(), "newer version (2)") {
				t.Errorf("%s, by version %d: %v", what, version, err)
			}
		}
		if want := (kept{2, "a"}); !newer && (ofInstance != want || ofOp != want) {
			t.Errorf("by version %d: %+v, %+v", version, ofInstance, ofOp)
		}
	}
	none := kept{Name: "stays"}
	if err := (&Instance{}).LoadInfra(1, &none); err != nil || none.Name != "stays" {
		t.Errorf("nothing kept: %+v, %v", none, err)
	}
	if err := x.WorkUpTo(1, "infra:y", &none); err != nil || none.Name != "stays" {
		t.Errorf("no work: %+v, %v", none, err)
	}
}
