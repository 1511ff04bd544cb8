package vnfd

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestInstanceCount(t *testing.T) {
	f := &read(t, nil, "Definitions/top.yaml").Flavours[0]
	for _, c := range []struct {
		vdu, level string
		want       int
	}{
		{"router", "", 1},
		{"router", "low", 1},
		{"router", "mid", 1 + 2 + 1 + 10},
		{"router", "high", 1 + 3*2 + 1 + 10 + 100},
		{"helper", "high", 2},
		{"lonely", "high", 1},
	} {
		checkCount(t, f, c.vdu, c.level, c.want)
	}
	for _, c := range [][2]string{{"nobody", ""}, {"router", "nowhere"}} {
		if n, err := f.InstanceCount(c[0], c[1]); err == nil {
			t.Errorf("VDU %q at level %q: %d instances, want an error", c[0], c[1], n)
		}
	}
	// A flavour without levels or with an aspect that has lost its deltas.
	bare := Flavour{VDUs: f.VDUs}
	checkCount(t, &bare, "helper", "", 2)
	broken := Flavour{VDUs: f.VDUs, DefaultLevel: "l", Levels: []InstantiationLevel{{ID: "l", ScaleInfo: []ScaleInfo{{"a", 2}}}},
		Aspects: []ScalingAspect{{ID: "a", MaxLevel: 2, StepDeltas: []string{"x"}, VDUs: []VDUDeltas{{"router", []Delta{{"y", 1}, {"z", 2}}}}}}}
	if n, err := broken.InstanceCount("router", ""); err == nil {
		t.Errorf("%d instances from a delta that does not exist", n)
	}
	if g := broken.ScaleGroups("")["a"]; g.Default != 1+2*2 {
		t.Errorf("group %+v", g)
	}
	broken.Aspects[0].StepDeltas = nil
	broken.Aspects[0].VDUs[0].Deltas = []Delta{{"y", 3}}
	checkCount(t, &broken, "router", "", 1+2*3)
	broken.Levels[0].ScaleInfo[0].Aspect = "gone"
	if _, err := broken.InstanceCount("router", ""); err == nil {
		t.Error("an unknown aspect was counted")
	}
}

func TestScaleGroups(t *testing.T) {
	f := &read(t, nil, "Definitions/top.yaml").Flavours[0]
	got, err := json.Marshal(f.ScaleGroups("mid"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"flat":{"vdu":["router"],"num":2,"maxLevel":3,"initialNum":1,"initialLevel":1,"default":3},` +
		`"steps":{"vdu":["router"],"num":100,"maxLevel":3,"initialNum":1,"initialLevel":2,"default":12}}`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if g := f.ScaleGroups("nowhere")["flat"]; g.InitialLevel != 0 || g.Default != 1 {
		t.Errorf("group at an unknown level: %+v", g)
	}
}

// Scaling step by step has to arrive where a level says.
func TestStepsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "deltas")
		a := ScalingAspect{ID: "a", MaxLevel: 8, VDUs: []VDUDeltas{{VDU: "v"}}}
		for i := range n {
			id := fmt.Sprint("d", i)
			a.StepDeltas = append(a.StepDeltas, id)
			a.VDUs[0].Deltas = append(a.VDUs[0].Deltas, Delta{id, rapid.IntRange(0, 100).Draw(t, id)})
		}
		sum, before := 0, 0
		for level := 1; level <= a.MaxLevel; level++ {
			step, err := a.StepDelta("v", level)
			if err != nil {
				t.Fatal(err)
			}
			sum += step
			total, err := a.Added("v", level)
			if err != nil || total != sum || total < before {
				t.Fatalf("level %d: %d (%v), steps make %d", level, total, err, sum)
			}
			if want := a.VDUs[0].Deltas[min(level, n)-1].Instances; step != want {
				t.Fatalf("step %d adds %d, want %d", level, step, want)
			}
			before = total
		}
	})
}
