package lcm

import (
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// TestGrace: how long a VNF may take to end, by the request of what ends it.
func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		operation sol003.LcmOperationType
		request   string
		want      time.Duration
	}{
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":30}`, 30 * time.Second},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL"}`, 0},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":-1}`, 0},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":9000000000000}`, longestGrace * time.Second},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL","gracefulTerminationTimeout":30}`, 0},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","stopType":"GRACEFUL","gracefulStopTimeout":30}`, 30 * time.Second},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","stopType":"FORCEFUL","gracefulStopTimeout":30}`, 0},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","gracefulStopTimeout":30}`, 0},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STARTED","stopType":"GRACEFUL","gracefulStopTimeout":30}`, 0},
		{sol003.LcmOperationTypeHeal, `{}`, 0},
	} {
		x := &Execution{Op: &OpOcc{Operation: tt.operation, Params: []byte(tt.request)}}
		if got := x.Grace(); got != tt.want {
			t.Errorf("%s %s: %s, not %s", tt.operation, tt.request, got, tt.want)
		}
	}
}
