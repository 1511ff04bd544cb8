package openstack

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// TestUploadsTakeTurns has more steps with images to hand over than may do so at the same time: the rest waits without a
// worker, and the VIM's other steps go on.
func TestUploadsTakeTurns(t *testing.T) {
	staff := crew.New(4 * mostUploads)
	d := New(Config{Crew: staff}, slog.New(slog.DiscardHandler))
	staff.Answered("vim")
	steps := d.shared([]lcm.Step{{Name: imagesStep}, {Name: "other"}})
	execution := func(remote bool) *lcm.Execution {
		return &lcm.Execution{
			Op: &lcm.OpOcc{Operation: sol003.LcmOperationTypeInstantiate}, Instance: newInstance(), Target: wired(), Now: time.Now,
			Flavour: &vnfd.Flavour{SoftwareImages: []vnfd.SoftwareImage{{ID: "n", File: "f", Remote: remote}}},
		}
	}
	var leave func()
	for range mostUploads {
		if leave, _ = steps[0].Turn(t.Context(), execution(false)); leave == nil {
			t.Fatal("no turn")
		}
	}
	late := execution(false)
	if l, wait := steps[0].Turn(t.Context(), late); l != nil || wait.After() == 0 || !strings.Contains(wait.Note, "images") {
		t.Errorf("one too many: %+v", wait)
	}
	var others []func()
	for l, _ := steps[1].Turn(t.Context(), execution(false)); l != nil; l, _ = steps[1].Turn(t.Context(), execution(false)) {
		others = append(others, l)
	}
	if len(others) != 2*mostUploads { // of the three quarters that the only VIM may have
		t.Errorf("%d other steps have a turn", len(others))
	}
	for _, l := range others {
		l()
	}
	for name, turn := range map[string]func() (func(), lcm.Progress){
		"another step":       func() (func(), lcm.Progress) { return steps[1].Turn(t.Context(), execution(false)) },
		"Glance downloads":   func() (func(), lcm.Progress) { return steps[0].Turn(t.Context(), execution(true)) },
		"one has come about": func() (func(), lcm.Progress) { leave(); return steps[0].Turn(t.Context(), late) },
	} {
		if l, wait := turn(); l == nil {
			t.Errorf("%s: %+v", name, wait)
		}
	}
}
