package lcm

import (
	"encoding/json"
	"testing"
)

func TestMend(t *testing.T) {
	for _, tt := range []struct {
		mend       Mend
		text, json string
	}{
		{HealOf("a"), "heal vnfcInstanceId a", `{"operation":"HEAL","vnfcInstanceId":["a"]}`},
		{HealOf("a", "b"), "heal vnfcInstanceId a b", `{"operation":"HEAL","vnfcInstanceId":["a","b"]}`},
		{HealOf(), "heal (the whole VNF)", `{"operation":"HEAL"}`},
		{Mend{Operation: "CHANGE_EXT_CONN"}, "change_ext_conn", `{"operation":"CHANGE_EXT_CONN"}`},
		{Mend{First: "resume the stack"}, "resume the stack", `{"first":"resume the stack"}`},
		{Mend{First: "detach it", Operation: "HEAL", VnfcInstanceIDs: []string{"a"}}, "detach it; then heal vnfcInstanceId a", `{"operation":"HEAL","vnfcInstanceId":["a"],"first":"detach it"}`},
		{Mend{}, "", `{}`},
	} {
		raw, err := json.Marshal(tt.mend)
		if got := tt.mend.String(); got != tt.text || string(raw) != tt.json || err != nil {
			t.Errorf("%+v is %q and %s (%v), not %q and %s", tt.mend, got, raw, err, tt.text, tt.json)
		}
	}
}
