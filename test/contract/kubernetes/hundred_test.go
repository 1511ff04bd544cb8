package kubernetes_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// three is a CNF of three objects whose pods take a while to be ready.
func three(readyAfter string) string {
	return with(lab.ReadyAfter, readyAfter, workload("Deployment")) + "---\n" + settings +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: vdu1}, ports: [{port: 80}]}\n"
}

// all has every one of many CNFs do the same at once, and waits until they all have done it.
func all(t *testing.T, list []*vnf, task string, body func(v *vnf) any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	begun := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(list))
	for n, v := range list {
		wg.Go(func() { errs[n] = v.does(ctx, task, body(v)) })
	}
	wg.Wait()
	failed := 0
	for n, err := range errs {
		if err != nil {
			if failed++; failed <= 5 {
				t.Errorf("CNF %d: %v", n, err)
			}
		}
	}
	if failed > 0 {
		t.Fatalf("%d of %d have failed", failed, len(list))
	}
	t.Logf("%d CNFs: %s took %s", len(list), task, time.Since(begun).Round(time.Second))
}

// does has an operation done from beginning to end.
func (v *vnf) does(ctx context.Context, task string, body any) error {
	op, err := v.api.Task(ctx, v.id, task, body)
	if err != nil {
		return err
	}
	o, err := v.api.AwaitOpOcc(ctx, op)
	if err != nil {
		return err
	}
	if o.OperationState != sol003.LcmOperationStateCompleted {
		return fmt.Errorf("%s is %s: %+v", o.Operation, o.OperationState, o.Error)
	}
	return nil
}

// asked returns the manager's requests since a mark, of all namespaces or some.
func (w *world) asked(t *testing.T, since lab.Mark, namespaces ...string) []lab.Request {
	t.Helper()
	all, err := w.Requests(since)
	must(t, err)
	return slices.DeleteFunc(all, func(r lab.Request) bool {
		return r.UserAgent != "vnfm" || len(namespaces) > 0 && !slices.Contains(namespaces, r.Namespace)
	})
}

// readAgain is how often an object is read that an API server under load is late to report.
const readAgain = 5 * time.Second

// late counts the requests that are owed to watches that report late, as they do under load: an object is read again then, after so
// long at the soonest.
func late(requests []lab.Request) int {
	read, n := map[string]time.Time{}, 0
	for _, r := range requests {
		if r.Verb == "get" && r.Resource != "" {
			what := r.Namespace + "/" + r.Resource + " " + r.Name
			if last, again := read[what]; again && r.At.Sub(last) >= readAgain {
				n++
			}
			read[what] = r.At
		}
	}
	return n
}

// polled returns what has been read again and again in a while: a list of the same kind, or the same object more than a few times
// and, where watches report late, more often than that takes.
func polled(requests []lab.Request, while time.Duration) []string {
	objects := 3 + int(while/readAgain)
	counts := map[string]int{}
	for _, r := range requests {
		switch r.Verb {
		case "get", "list":
			what := fmt.Sprintf("%s %s/%s %s", r.Verb, r.Namespace, r.Resource, r.Name)
			if r.Resource == "" {
				what = r.Verb + " " + r.URI
			}
			counts[what]++
		}
	}
	var out []string
	for what, n := range counts {
		if most := map[bool]int{true: 1, false: objects}[strings.HasPrefix(what, "list ")]; n > most {
			out = append(out, fmt.Sprintf("%s: %d times", what, n))
		}
	}
	slices.Sort(out)
	return out
}

var watchGauge = regexp.MustCompile(`^apiserver_longrunning_requests\{(.*verb="WATCH".*)\} (\d+)`)

// watches returns how many watches are open at the API server, by resource.
func (w *world) watches(t *testing.T) map[string]int {
	t.Helper()
	raw, err := w.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	out := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := watchGauge.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		resource := regexp.MustCompile(`resource="([^"]*)"`).FindStringSubmatch(m[1])
		n, err := strconv.Atoi(m[2])
		if resource == nil || err != nil {
			t.Fatalf("a metric is not as it is to be: %s", lines.Text())
		}
		out[resource[1]] += n
	}
	must(t, lines.Err())
	return out
}

// TestHundredAtOnce instantiates, scales and terminates a hundred CNFs at once, each in a namespace of its own, and counts what that
// has cost: requests, by verb, and watches, which are bounded. Nothing is read again and again.
func TestHundredAtOnce(t *testing.T) {
	w := newWorld(t, longWait)
	const many = 100
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": three("1s")})
	vim := w.administrator(t)
	list := make([]*vnf, many)
	for n := range list {
		list[n] = w.create(t, id, vim, w.Namespace(t, "many"))
	}
	before := w.watches(t)
	total, waited, open := 0, 0, 0
	verbs := map[string]int{}
	for _, task := range []struct {
		name string
		body func(v *vnf) any
	}{
		{"instantiate", func(v *vnf) any {
			return v.request("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": v.ns})
		}},
		{"scale", func(*vnf) any { return doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"} }},
		{"terminate", func(*vnf) any { return doc{"terminationType": "FORCEFUL"} }},
	} {
		mark, err := w.Mark()
		must(t, err)
		begun := time.Now()
		all(t, list, task.name, task.body)
		took := time.Since(begun)
		requests := w.asked(t, mark)
		t.Logf("%s: %d requests, %.1f for each", task.name, len(requests), float64(len(requests))/many)
		total += len(requests)
		waited += late(requests)
		for _, r := range requests {
			verbs[r.Verb+" "+r.Resource]++
		}
		if again := polled(requests, took); len(again) > 0 {
			t.Errorf("%s has polled: %s", task.name, strings.Join(again, "; "))
		}
		for resource, n := range w.watches(t) {
			if n > before[resource] {
				t.Logf("%s: %d watches of %s are open", task.name, n-before[resource], resource)
				open = max(open, n-before[resource])
			}
		}
	}
	t.Logf("%d CNFs of 3 objects, instantiated, scaled out and terminated: %d requests, %.1f for each; %d were for what watches report late",
		many, total, float64(total)/many, waited)
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		t.Logf("%6d %s", verbs[verb], verb)
	}
	if per := float64(total-waited) / many; per > 30 {
		t.Errorf("%.1f requests for each CNF", per)
	}
	if open > 70 { // a namespace's own up to 64, those who share, and some of who else is there
		t.Errorf("%d watches of one kind are open", open)
	}
}

// TestWaitingIsFree: CNFs whose pods take five times as long to be ready cost no more requests.
func TestWaitingIsFree(t *testing.T) {
	w := newWorld(t, longWait)
	vim := w.administrator(t)
	var list []*vnf
	groups := map[string][]string{}
	for _, readyAfter := range []string{"3s", "15s"} {
		id := w.ourPackage(t, map[string]string{"Files/a.yaml": three(readyAfter)})
		for range 5 {
			v := w.create(t, id, vim, w.Namespace(t, "waits"))
			groups[readyAfter] = append(groups[readyAfter], v.ns)
			list = append(list, v)
		}
	}
	mark, err := w.Mark()
	must(t, err)
	begun := time.Now()
	all(t, list, "instantiate", func(v *vnf) any {
		return v.request("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": v.ns})
	})
	took := time.Since(begun)
	quick, slow := w.asked(t, mark, groups["3s"]...), w.asked(t, mark, groups["15s"]...)
	t.Logf("ready after 3s: %d requests; after 15s: %d", len(quick), len(slow))
	// Whose watch has told already what another has to read is luck: a request or two.
	if len(quick) == 0 || len(slow)-late(slow) > len(quick)+2*len(groups["15s"]) {
		t.Errorf("a longer wait has cost more: %d requests, and %d", len(quick), len(slow))
	}
	if again := polled(append(quick, slow...), took); len(again) > 0 {
		t.Errorf("it was polled: %s", strings.Join(again, "; "))
	}
	all(t, list, "terminate", func(*vnf) any { return doc{"terminationType": "FORCEFUL"} })
}
