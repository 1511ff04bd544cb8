package openstack

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// TestDeletedAnew has Heat give up the deletion of a stack because something is in use: it is asked again, a few times.
func TestDeletedAnew(t *testing.T) {
	const reason = "Conflict: One or more ports have an IP allocation from this subnet."
	for name, tt := range map[string]struct {
		times    int // that Heat fails, 0: always
		requests int
	}{"in use for a while": {2, 3}, "in use for ever": {0, 1 + mostDeletes}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, vimsim.Config{}, Config{})
			l.clock = infratest.NewClock(time.Now())
			fsys, f := testPackage(t, "cluster", "complex")
			x := l.instantiate(newInstance(), f, fsys, clusterRequest(""))
			if err := l.runner().Run(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			id := l.sim.Cloud.AddFault(vimsim.Fault{
				ResourceType: "OS::Neutron::Port", Name: "vip_CP", Action: "delete", Effect: vimsim.EffectFail, Reason: reason, Times: tt.times,
			})
			err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil))
			if n := l.requests("heat", http.MethodDelete, ""); n != tt.requests {
				t.Errorf("Heat is asked %d times to delete the stack, want %d", n, tt.requests)
			}
			if tt.times == 0 {
				if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), reason) {
					t.Errorf("the error is %v", err)
				}
				l.sim.Cloud.RemoveFault(id)
				err = l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil)) // counts anew
			}
			if err != nil {
				t.Fatal(err)
			}
			if left := l.left(x.Instance.ID); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
