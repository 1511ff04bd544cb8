package vimsim

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// TestRequestFaults narrows faults to some requests, and has others than the service answer.
func TestRequestFaults(t *testing.T) {
	l := boot(t, Config{})
	cloud := l.srv.Cloud
	stacks := "/orchestration/v1/" + l.project + "/stacks"
	get := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Auth-Token", l.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	id := cloud.AddFault(Fault{
		ResourceType: "heat", Request: "^GET .*/stacks$", Effect: EffectHTTP, Status: 502, Page: "<b>no</b>", RetryAfter: "7", Skip: 1,
	})
	if res := get(stacks); res.StatusCode != 200 {
		t.Errorf("the first one is not skipped: %s", res.Status)
	}
	if res := get(stacks + "/none"); res.StatusCode != 404 {
		t.Errorf("another request is hit: %s", res.Status)
	}
	res := get(stacks)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 502 || string(body) != "<b>no</b>" || res.Header.Get("Retry-After") != "7" ||
		res.Header.Get("Content-Type") != "text/html" {
		t.Errorf("%s %v %q %v", res.Status, res.Header, body, err)
	}
	cloud.RemoveFault(id)
	for _, f := range []Fault{
		{ResourceType: "heat", Effect: EffectHTTP, Request: "("}, {ResourceType: "heat", Effect: EffectHTTP, Name: "["},
		{Effect: EffectHTTP},
	} {
		if CheckFault(f) == nil {
			t.Errorf("%+v is found right", f)
		}
	}
}

// TestLate answers what has been done at once only later.
func TestLate(t *testing.T) {
	clock := &stepClock{now: time.Now()}
	l := boot(t, Config{Clock: clock})
	l.srv.Cloud.AddFault(Fault{
		ResourceType: "heat", Request: "^POST .*/stacks$", Effect: EffectLate, Delay: Duration(time.Minute), Times: 1,
	})
	answered := make(chan int)
	go func() {
		res, _, err := l.try("POST", "/orchestration/v1/"+l.project+"/stacks", with(text("resources: {}\n"), "stack_name", "late"))
		if err != nil {
			answered <- 0
			return
		}
		answered <- res.StatusCode
	}()
	l.until("made", func() bool { return l.srv.Cloud.State().Counts["stacks"] == 1 && clock.waiting() })
	clock.advance(2 * time.Minute)
	if code := <-answered; code != 201 {
		t.Errorf("%d", code)
	}
}

// TestLost does later what has not been answered.
func TestLost(t *testing.T) {
	clock := &stepClock{now: time.Now()}
	l := boot(t, Config{Clock: clock})
	l.srv.Cloud.AddFault(Fault{
		ResourceType: "heat", Request: "^POST .*/stacks$", Effect: EffectLost, Delay: Duration(time.Minute), Times: 1,
	})
	res, _, err := l.try("POST", "/orchestration/v1/"+l.project+"/stacks", with(text("resources: {}\n"), "stack_name", "lost"))
	if err == nil {
		t.Fatalf("answered: %d", res.StatusCode)
	}
	l.until("awaited", clock.waiting)
	if n := l.srv.Cloud.State().Counts["stacks"]; n != 0 {
		t.Errorf("%d stacks already", n)
	}
	clock.advance(2 * time.Minute)
	l.until("made", func() bool { return l.srv.Cloud.State().Counts["stacks"] == 1 })
}

// TestHangs has things hang until the fault is taken away, also one that has fired as often as it was to.
func TestHangs(t *testing.T) {
	l := boot(t, Config{})
	fault := l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Heat::TestResource", Action: "create", Effect: EffectHang, Times: 1})
	id := l.create("h", text("resources: {r: {type: OS::Heat::TestResource, properties: {value: 1}}}\n"))
	l.until("under way", func() bool { return len(l.srv.Cloud.Faults()) == 0 })
	if s := str(l.show("h", id), "stack_status"); s != "CREATE_IN_PROGRESS" {
		t.Errorf("it is %s", s)
	}
	if !l.srv.Cloud.RemoveFault(fault) {
		t.Error("there is no fault")
	}
	l.await("h", id, "CREATE_COMPLETE")
	if l.srv.Cloud.RemoveFault(fault) {
		t.Error("there is a fault still")
	}
}
