package crash

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestCrashOfCharts does with a CNF of a Helm chart what [TestCrashOfCNFs] does with one of manifests, with one node: helm ends with it.
func TestCrashOfCharts(t *testing.T) {
	helm, err := lab.Helm(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	control := lab.Start(t)
	zip := cnfPackage(t, firstContent, firstID)
	next := cnfPackage(t, nextContent, nextID)
	everyPoint(t, &stage{
		options: harness.Options{OpenStack: &harness.OpenStack{}, Env: []string{
			"VNFM_KUBERNETES_READY_TIMEOUT=10m", "VNFM_KUBERNETES_DELETE_TIMEOUT=10m",
			"VNFM_KUBERNETES_POLL_MIN=50ms", "VNFM_KUBERNETES_POLL_MAX=300ms",
			"VNFM_KUBERNETES_HELM_BINARY=" + helm, "VNFM_KUBERNETES_HELM_TIMEOUT=10m",
		}},
		open: func(ctx context.Context, _ *lane) (cloud, error) {
			p, err := openPlane(ctx, control, next)
			if err != nil {
				return nil, err
			}
			p.charted = true
			return p, nil
		},
		acts: chartActs,
		samples: map[int]sample{1: {
			name: "chart", flavour: "default", pack: func(string) ([]byte, error) { return zip, nil },
			servers: 2, grows: 2, aspect: "size", vdu: "DB", content: firstContent,
		}},
		lanes: map[int]int{1: 3},
		essential: []string{
			"INSTANTIATE/infra:apply/recorded", "SCALE/infra:scale/recorded", "HEAL/infra:pods-delete/recorded", "HEAL/infra:respawn-delete/recorded",
			"TERMINATE/infra:delete/recorded", "CANCEL/accept/after",
		},
	})
}

// chartPath is where the chart is in the package.
const chartPath = "Files/charts/cnf.tgz"

// releases is the kind, among those that are looked at, of the Secrets in which helm keeps the revisions of releases.
const releases = "releases"

// ofHelm tells whether an object is such a Secret, or a pod of a hook: of these there may be others after a death.
func ofHelm(u *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(u)
	return u.GetKind() == "Secret" && u.GetLabels()["owner"] == "helm" || owner != nil && owner.Kind == "Job"
}

// release notes what is seen of a release by one of its revisions: the status of the last one.
func (now *sight) release(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	number, err := strconv.ParseInt(labels["version"], 10, 64)
	if err != nil {
		return
	}
	if now.revisions == nil {
		now.revisions = map[string]int64{}
	}
	if name := labels["name"]; number > now.revisions[name] {
		now.revisions[name] = number
		now.things["release "+name] = thing{text: labels["status"]}
	}
}
