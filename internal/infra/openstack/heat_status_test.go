package openstack

import "testing"

// TestWorking sees what Heat is at work on: what it has only listed is not there yet.
func TestWorking(t *testing.T) {
	for status, want := range map[string]bool{
		"INIT_COMPLETE": true, "CREATE_IN_PROGRESS": true, "UPDATE_IN_PROGRESS": true, "DELETE_IN_PROGRESS": true,
		"CREATE_COMPLETE": false, "UPDATE_COMPLETE": false, "CHECK_FAILED": false, "CREATE_FAILED": false,
	} {
		if r := (&resource{Status: status}); r.working() != want {
			t.Errorf("%s: working %t", status, !want)
		}
	}
}
