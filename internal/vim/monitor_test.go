package vim

import (
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestRefusals has one VIM refuse its credentials for long, and another one be deleted.
func TestRefusals(t *testing.T) {
	var r refusals
	now := time.Now()
	v, gone := lcm.VIM{ID: "v", Version: 1}, lcm.VIM{ID: "gone", Version: 1}
	r.note(gone, true, now, time.Minute)
	for n := range 10 {
		r.note(v, true, now, time.Minute)
		if !r.wait(v, now.Add(4*time.Minute-1)) || r.wait(v, now.Add(5*time.Minute)) {
			t.Errorf("refusal %d: %+v", n, r.vims)
		}
		now = now.Add(5 * time.Minute)
	}
	r.keep([]lcm.VIM{v})
	if _, ok := r.vims["v"]; !ok || len(r.vims) != 1 {
		t.Errorf("%+v", r.vims)
	}
	r.note(v, false, now, time.Minute)
	if len(r.vims) != 0 {
		t.Errorf("%+v", r.vims)
	}
}
