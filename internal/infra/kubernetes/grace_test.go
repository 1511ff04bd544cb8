package kubernetes

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestEndOf: how an operation ends pods, by its request, and that those that do not end in time end then.
func TestEndOf(t *testing.T) {
	own := "as they ask"
	for _, tt := range []struct {
		operation           sol003.LcmOperationType
		request             string
		want, after, longer string // at first, when the time has just passed, and when the nodes have had time to say so
	}{
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL"}`, "0", "0", "0"},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL","gracefulTerminationTimeout":20}`, "0", "0", "0"},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL"}`, own, own, own},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":0}`, own, own, own},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":20}`, "20", "20", "0"},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","stopType":"FORCEFUL"}`, "0", "0", "0"},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","stopType":"GRACEFUL","gracefulStopTimeout":20}`, "20", "20", "0"},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED"}`, own, own, own},
		{sol003.LcmOperationTypeInstantiate, `{}`, own, own, own},
		{sol003.LcmOperationTypeHeal, `{}`, own, own, own},
	} {
		told := time.Now().Truncate(time.Second)
		for waited, want := range map[time.Duration]string{0: tt.want, 20 * time.Second: tt.after, 20*time.Second + confirmed: tt.longer} {
			x := &lcm.Execution{Op: &lcm.OpOcc{Operation: tt.operation, Params: []byte(tt.request)}}
			pod := &unstructured.Unstructured{}
			has := int64(60) // what it asks for
			until := metav1.NewTime(told.Add(time.Duration(has) * time.Second))
			pod.SetDeletionTimestamp(&until)
			pod.SetDeletionGracePeriodSeconds(&has)
			got := own
			if e := endOf(x); e.most != nil {
				got = fmt.Sprint(e.left(toldAt(pod), told.Add(waited)))
			}
			if got != want {
				t.Errorf("%s %s after %s: %s, not %s", tt.operation, tt.request, waited, got, want)
			}
		}
	}
}
