package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	kubelab "github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(harness.Cleanup(), kubelab.Cleanup()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// testTime is how long a test of this package may take in all, on a slow machine.
const testTime = 40 * time.Minute

// lab is a cluster, the clients that drive it, and what they were told.
type lab struct {
	*harness.Cluster
	api    *harness.Client
	before map[string]int // what the cloud held at first, by type
	osEnv  []string       // the OS_… variables of the client
	client string         // its program; "" is openstack
	said   *transcript
}

// transcript is all that the clients of a lab have printed, and what they must not.
type transcript struct {
	mu      sync.Mutex
	text    strings.Builder
	secrets []string
}

// hide adds secrets to those that nothing may show.
func (s *transcript) hide(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secrets...)
}

func (s *transcript) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(text)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newLab(t *testing.T, o harness.Options) *lab {
	t.Helper()
	c := harness.New(t, o)
	l := &lab{Cluster: c, api: c.API(0), before: held(c), said: &transcript{}}
	if o.Keystone {
		l.osEnv = []string{
			"OS_AUTH_TYPE=password", "OS_AUTH_URL=" + c.Sim.AuthURL, "OS_USERNAME=" + harness.User, "OS_PASSWORD=" + harness.Password,
			"OS_PROJECT_NAME=" + harness.Project, "OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default",
		}
	} else {
		l.osEnv = []string{"OS_AUTH_TYPE=none", "OS_ENDPOINT=" + c.Nodes[0].URL}
	}
	return l
}

// held counts what the cloud has, by type, without what only remembers what was.
func held(c *harness.Cluster) map[string]int {
	counts := maps.Clone(c.Sim.Cloud.State().Counts)
	for _, forgotten := range []string{"deleted_stacks", "tokens"} {
		delete(counts, forgotten)
	}
	return counts
}

// checkNothingLeft holds the cloud and the nodes' temporary files against what there was at first.
func (l *lab) checkNothingLeft(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(l.before, held(l.Cluster)); diff != "" {
		t.Errorf("the cloud does not hold what it held at first (- first, + now):\n%s", diff)
	}
	l.checkNoFiles(t)
}

// checkNoFiles checks that the nodes have left no temporary files.
func (l *lab) checkNoFiles(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(l.Temp())
	if err != nil || len(files) > 0 {
		t.Errorf("temporary files are left: %v (error: %v)", files, err)
	}
}

// Secrets that go in and must not come out.
const (
	vmSecret    = "vm-secret-4711"
	proxySecret = "proxy-secret-4712"
	wrongSecret = "wrong-secret-4713"
)

// checkNoSecrets looks for secrets in all that was printed and logged.
func (l *lab) checkNoSecrets(t *testing.T) {
	t.Helper()
	for where, text := range map[string]string{"output of the clients": l.said.String(), "log": l.Logs()} {
		for _, secret := range append([]string{harness.Password, vmSecret, proxySecret, wrongSecret}, l.said.secrets...) {
			if n := strings.Index(text, secret); n >= 0 {
				t.Errorf("the %s holds the secret %s: …%s…", where, secret, text[max(0, n-200):min(len(text), n+len(secret)+50)])
			}
		}
	}
}

// testContext ends with the test, or when the test has taken too long.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sorted is a sorted copy.
func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
