package openstack

import "testing"

// TestWorking sees what Heat is at work on, and what it has only listed.
func TestWorking(t *testing.T) {
	for status, want := range map[string][2]bool{
		"INIT_COMPLETE": {false, true}, "CREATE_IN_PROGRESS": {true, false}, "UPDATE_IN_PROGRESS": {true, false},
		"DELETE_IN_PROGRESS": {true, false}, "CREATE_COMPLETE": {}, "UPDATE_COMPLETE": {}, "CHECK_FAILED": {}, "CREATE_FAILED": {},
	} {
		r := &resource{Status: status}
		if got := [2]bool{r.working(), r.unbegun()}; got != want {
			t.Errorf("%s: working, unbegun: %t", status, got)
		}
	}
}
