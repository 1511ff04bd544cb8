package openstack

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// TestSignalWithoutAnswer has Heat follow a signal late, whose answer is lost, with or without the process that sent it: none
// is sent twice, and the group grows once.
func TestSignalWithoutAnswer(t *testing.T) {
	for name, crash := range map[string]string{"the answer is lost": "", "the process dies": "scale-VDU1-1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := running(t, Config{})
			before := v.requests("heat", http.MethodPost, "VDU1_scale_out/signal")
			v.sim.Cloud.AddFault(vimsim.Fault{
				ResourceType: "heat", Request: "^POST .*/signal$", Effect: vimsim.EffectLost, Delay: vimsim.Duration(1200 * time.Millisecond), Times: 1,
			})
			v.crash = crash
			v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
			if n := v.requests("heat", http.MethodPost, "VDU1_scale_out/signal") - before; n != 1 {
				t.Errorf("%d signals", n)
			}
			v.same("scaled")
			v.terminateAll()
		})
	}
}

// TestSignalNeverSent has the process die between the record of a signal and the signal: it is sent after a while.
func TestSignalNeverSent(t *testing.T) {
	v := running(t, Config{PollMin: time.Second, PollMax: 20 * time.Second})
	v.clock = infratest.NewClock(time.Now())
	before := v.requests("heat", http.MethodPost, "VDU1_scale_out/signal")
	v.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "heat", Request: "^POST .*/signal$", Effect: vimsim.EffectReset, Times: 1})
	v.crash = "scale-VDU1-1"
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
	if n := v.requests("heat", http.MethodPost, "VDU1_scale_out/signal") - before; n != 2 {
		t.Errorf("%d signals", n)
	}
	v.same("scaled")
}

func TestSignals(t *testing.T) {
	var s signals
	at := time.Now()
	s.mean("a", at)
	if !s.meant("a", at.Round(0)) || s.meant("a", at.Add(1)) || s.meant("b", at) {
		t.Error("what is meant")
	}
	s.mean("b", at.Add(2*forgetAfter))
	if s.meant("a", at) {
		t.Error("it is not forgotten")
	}
	if s.sent("b"); s.meant("b", at.Add(2*forgetAfter)) {
		t.Error("it is still to be sent")
	}
}

func TestUntaken(t *testing.T) {
	c := &cloud{name: "VIM"}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"not called":    {&uncalledError{time.Second, "busy"}, true},
		"no connection": {&net.OpError{Op: "dial", Err: errors.New("no route")}, true},
		"broken":        {&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		"conflict":      {gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusConflict}, true},
		"bad gateway":   {gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusBadGateway}, false},
	} {
		if got := untaken(c.wrap("signal", tt.err)); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// neverBegun is a transport that shows the members of a group that are not known as those that Heat has not come to, until
// they are marked.
type neverBegun struct {
	next http.RoundTripper

	mu     sync.Mutex
	known  []string // nil: all
	marked []string
}

func (n *neverBegun) show(known []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = known
}

func (n *neverBegun) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(req)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || n.known == nil {
		return resp, err
	}
	if req.Method == http.MethodPatch {
		n.marked = append(n.marked, req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:])
		n.known = append(n.known, n.marked...)
	}
	if req.Method == http.MethodPut { // what comes now is begun
		n.known = nil
	}
	if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/resources") {
		return resp, nil
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	var list struct {
		Resources []map[string]any `json:"resources"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, r := range list.Resources {
		if r["parent_resource"] == "VDU1" && !slices.Contains(n.known, r["resource_name"].(string)) {
			r["resource_status"] = "INIT_COMPLETE"
		}
	}
	if raw, err = json.Marshal(list); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(string(raw))), int64(len(raw))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// TestNeverBegun tries again, and rolls back, a scaling whose new member Heat has listed and never come to, since its update was
// cancelled.
func TestNeverBegun(t *testing.T) {
	for name, back := range map[string]bool{"tried again": false, "rolled back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, vimsim.Config{}, Config{PollMin: time.Second, PollMax: 20 * time.Second})
			view := &neverBegun{next: l.driver.cfg.Transport}
			l.driver.cfg.Transport = view
			fsys := os.DirFS("testdata/packages/functional")
			v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/top.yaml"), functionalRequest())
			v.clock = infratest.NewClock(time.Now())
			v.ok(v.instantiate())
			servers := v.servers("VDU1")
			c, err := v.driver.connect(t.Context(), v.target)
			v.ok(err)
			list, err := c.resources(t.Context(), stackName(v.now.ID), v.stackID())
			v.ok(err)
			var known []string
			for _, m := range findGroup(v.stackID(), list, "VDU1").members {
				known = append(known, m.Name)
			}
			v.fail = "inventory"
			if err := v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil); err == nil {
				t.Fatal("it did not fail")
			}
			view.show(known)
			v.steps.names, v.steps.done = nil, map[string]bool{} // the retry begins with the scaling
			if back {
				v.ok(v.rollback())
				if !maps.Equal(servers, v.servers("VDU1")) {
					t.Errorf("the servers were %v and are %v", servers, v.servers("VDU1"))
				}
			} else {
				v.ok(v.retry())
			}
			if len(view.marked) != 1 {
				t.Errorf("marked: %v", view.marked)
			}
			v.same(name)
		})
	}
}
