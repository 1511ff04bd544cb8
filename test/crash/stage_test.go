package crash

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// stage is a kind of VIM, with what is asked of instances there.
type stage struct {
	options   harness.Options // of each cluster
	open      func(ctx context.Context, l *lane) (cloud, error)
	acts      []act // those of a life without failures first, in their order
	essential []string
	samples   map[int]sample // the instances that nodes die for, by the number of nodes
	lanes     map[int]int    // how many clusters run at the same time, by the number of nodes: takeovers are mostly waited for
}

// cloud is the VIM of a lane, as what becomes of it is judged.
type cloud interface {
	// register registers the VIM through the API and returns its id there.
	register(ctx context.Context, api *harness.Client) (string, error)
	// look returns what there is of an instance, which is the only one; of none, when it is nil.
	look(ctx context.Context, s *subject) (*sight, error)
	// agrees compares what the API says of an instance with what there is.
	agrees(l *lane, s *subject, now *sight, info *sol003.VnfInstance) error
	// strangers sees that there is nothing but the instance, and what was there before as it was before.
	strangers(s *subject) error
	close()
}

// sight is what there is in a VIM at one moment.
type sight struct {
	came    map[string]int   // by kind, what has ever come by then that must not come twice
	members []string         // the ids of the servers, or of the pods
	counts  map[string]int   // of things by their kind
	status  string           // of the whole
	things  map[string]thing // those that are looked at one by one, by name

	all       map[string][]*unstructured.Unstructured // of Kubernetes, the objects by their kind
	revisions map[string]int64                        // of Helm, the last revision of each release
}

// thing is something of an instance that is not one of its members.
type thing struct {
	id         string
	generation int64  // how often it was changed
	text       string // what it is to be, without what is another one each time
}

// newcomers counts what has come since an earlier look.
func (now *sight) newcomers(before *sight) map[string]int {
	out := map[string]int{}
	for kind, n := range now.came {
		if n -= before.came[kind]; n > 0 {
			out[kind] = n
		}
	}
	return out
}

// since words what has become of things since an earlier look.
func (now *sight) since(before *sight) map[string]string {
	var out map[string]string
	put := func(name, format string, args ...any) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = fmt.Sprintf(format, args...)
	}
	for name, t := range now.things {
		was, there := before.things[name]
		switch {
		case !there:
			put(name, "has come, generation %d: %s", t.generation, t.text)
		case was.id != t.id:
			put(name, "another one, generation %d: %s", t.generation, t.text)
		default:
			put(name, "the same, changed %d times: %s", t.generation-was.generation, t.text)
		}
	}
	for name := range before.things {
		if _, there := now.things[name]; !there {
			put(name, "has gone")
		}
	}
	return out
}

// sample is a VNF package to run operations of.
type sample struct {
	name, flavour string
	pack          func(name string) ([]byte, error)
	servers       int            // VNFCs of its first level, each one server or pod
	grows         int            // VNFCs that a step of scaling brings
	levels        map[string]int // of aspects, to which it is scaled
	leveled       int            // VNFCs that it has then
	other         string         // another flavour; "": there is none
	others        int            // VNFCs of the first level of that one
	ceases        bool           // it has no servers or pods while it is stopped
	aspect        string         // that is scaled
	vdu           string         // of which a VNFC is healed
	cp            string         // that is moved from network to network
	upload        string         // the package that is onboarded beside it; "": none is
	content       string         // what its package has the VNF be at first, of those that there are
}

// vnfcsIn is how many VNFCs an instance in a shape has; false when that is a matter of time.
func (p sample) vnfcsIn(s shape) (int, bool) {
	switch s {
	case nothing:
		return 0, true
	case whole, stopped, given:
		return p.servers, true
	case larger:
		return p.servers + p.grows, true
	case leveled:
		return p.leveled, true
	case other:
		return p.others, true
	default:
		return 0, false
	}
}

// levelIn is the scale level of an aspect of an instance in a shape.
func (p sample) levelIn(s shape, aspect string) int {
	switch {
	case s == leveled:
		return p.levels[aspect]
	case s == larger && aspect == p.aspect:
		return 1
	}
	return 0
}

// membersIn is how many servers or pods it has then.
func (p sample) membersIn(s shape) (int, bool) {
	n, stable := p.vnfcsIn(s)
	if s == stopped && p.ceases {
		n = 0
	}
	return n, stable
}

// act returns the act of that name.
func (g *stage) act(name string) *act {
	n := slices.IndexFunc(g.acts, func(a act) bool { return a.name == name })
	return &g.acts[n]
}

// way returns the shortest way from one shape to another.
func (g *stage) way(from, to shape) []*act {
	type reached struct {
		in  shape
		way []*act
	}
	seen := map[shape]bool{from: true}
	for queue := []reached{{from, nil}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.in == to {
			return at.way
		}
		for n := range g.acts {
			if a := &g.acts[n]; a.from == at.in && !seen[a.to] {
				seen[a.to] = true
				queue = append(queue, reached{a.to, append(slices.Clone(at.way), a)})
			}
		}
	}
	panic("crash: no act leads from " + string(from) + " to " + string(to))
}
