package infra

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

type driver string

func (d driver) Type() string                               { return string(d) }
func (d driver) Can(sol003.LcmOperationType, bool) bool     { return true }
func (d driver) Leaving(*lcm.Execution) ([]lcm.Step, error) { return nil, nil }
func (d driver) Steps(*lcm.Execution) ([]lcm.Step, error)   { return nil, nil }

func TestRegistry(t *testing.T) {
	r, err := NewRegistry(driver("openstack"), driver("fake"))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := r.Driver("fake"); err != nil || d.Type() != "fake" {
		t.Errorf("Driver(fake) = %v, %v", d, err)
	}
	_, err = r.Driver("vmware")
	want := `there is no infra driver for VIMs of type "vmware"; there are fake, openstack`
	if !lcm.Is(err, lcm.KindTerminal) || err.Error() != want {
		t.Errorf("Driver(vmware): %v", err)
	}
	if diff := cmp.Diff([]string{"fake", "openstack"}, r.Types()); diff != "" {
		t.Error(diff)
	}
	if _, err := NewRegistry(driver("fake"), driver("fake")); err == nil {
		t.Error("two drivers of one type are taken")
	}
}
