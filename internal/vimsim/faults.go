package vimsim

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Fault makes matching actions misbehave.
//
// ResourceType is a Heat resource type (OS::Nova::Server, a template file), or
// "stack" for a stack as a whole, or an API: "keystone", "glance", "heat",
// "nova", "neutron", "cinder"; "*" is every API. OS::Glance::Image with the
// action create acts on an image's upload or import. For a resource type and for
// "stack" the effects fail, hang, slow and quota act inside Heat; http, reset,
// truncate, late and lost always act on API requests (for "stack": requests under
// /stacks), as do slow and hang of an API. What is slow is done after the delay,
// what is late is done at once and answered after it; what is lost is not
// answered, the connection being reset at once, and is done after the delay.
type Fault struct {
	ID           string `json:"id,omitempty"`
	ResourceType string `json:"resource_type"`
	// Name is a glob over the resource's, its server's or port's, or the
	// top-level stack's name; empty matches all.
	Name string `json:"name,omitempty"`
	// Action is create, update, delete, get or "*" (also when empty); of servers
	// also start and stop, as Nova is asked to.
	Action string `json:"action,omitempty"`
	// Request narrows a fault of API requests to those whose method and path match
	// this regular expression: "^PUT .*/stacks/[^/]+/[^/]+$" are updates of stacks.
	Request string `json:"request,omitempty"`
	// Effect is fail, hang, slow, late, lost, http, reset, truncate or quota.
	Effect string `json:"effect"`
	// Delay of slow, late and lost; a hang with a delay ends after it, one without when
	// the fault is removed.
	Delay Duration `json:"delay,omitempty"`
	// Status is the HTTP status of the effect http; 503 if zero.
	Status int `json:"status,omitempty"`
	// Reason is the text of the failure.
	Reason string `json:"reason,omitempty"`
	// Page is the body of the effect http as it is, HTML, instead of one in the
	// service's shape: something in between answers.
	Page string `json:"page,omitempty"`
	// RetryAfter is the header of that name of the effect http; "" sends none.
	RetryAfter string `json:"retry_after,omitempty"`
	// Skip is how many matches pass unharmed before the fault fires.
	Skip int `json:"skip,omitempty"`
	// Times is how often the fault fires; zero is always.
	Times int `json:"times,omitempty"`

	request *regexp.Regexp // Request, compiled
	gone    chan struct{}  // closed when the fault is removed
	spent   bool           // it has fired as often as it was to
}

// Duration is a time.Duration that is written in JSON as text, such as "1.5s".
type Duration time.Duration

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads the text form, or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch t := v.(type) {
	case float64:
		*d = Duration(t * float64(time.Second))
		return nil
	case string:
		x, err := time.ParseDuration(t)
		if err != nil {
			return fmt.Errorf("read duration: %w", err)
		}
		*d = Duration(x)
		return nil
	}
	return fmt.Errorf("read duration: %s is neither text nor a number", b)
}

// Effects of a Fault.
const (
	EffectFail     = "fail"
	EffectHang     = "hang"
	EffectSlow     = "slow"
	EffectHTTP     = "http"
	EffectReset    = "reset"
	EffectTruncate = "truncate"
	EffectQuota    = "quota"
	EffectLate     = "late"
	EffectLost     = "lost"
)

var effects = []string{EffectFail, EffectHang, EffectSlow, EffectHTTP, EffectReset, EffectTruncate, EffectQuota, EffectLate, EffectLost}

var apiNames = []string{"keystone", "glance", "heat", "nova", "neutron", "cinder", "*"}

type faultList struct {
	next int
	list []*Fault
}

func (l *faultList) add(f Fault) string {
	l.next++
	if f.ID == "" {
		f.ID = fmt.Sprintf("fault-%d", l.next)
	}
	if f.Request != "" {
		f.request = regexp.MustCompile(f.Request) // CheckFault has seen it
	}
	l.remove(f.ID)
	f.gone = make(chan struct{})
	l.list = append(l.list, &f)
	return f.ID
}

// remove ends the fault of that id, or all when it is empty, and lets go on what hangs
// by it. It reports whether there was one.
func (l *faultList) remove(id string) bool {
	n := len(l.list)
	l.list = slices.DeleteFunc(l.list, func(f *Fault) bool {
		if id != "" && f.ID != id {
			return false
		}
		close(f.gone)
		return true
	})
	return len(l.list) < n
}

func (l *faultList) take(accept func(*Fault) bool) *Fault {
	for _, f := range l.list {
		if f.spent || !accept(f) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		hit := *f
		if f.Times > 0 {
			f.Times--
			f.spent = f.Times == 0
		}
		return &hit
	}
	return nil
}

func (f *Fault) matches(action string, names []string) bool {
	if f.Action != "" && f.Action != "*" && f.Action != action {
		return false
	}
	if f.Name == "" || f.Name == "*" {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		ok, err := path.Match(f.Name, n)
		return n != "" && err == nil && ok
	})
}

func (f *Fault) onRequest() bool {
	switch f.Effect {
	case EffectHTTP, EffectReset, EffectTruncate, EffectLate, EffectLost:
		return true
	}
	return slices.Contains(apiNames, f.ResourceType)
}

// asks tells whether the fault is of requests like this one.
func (f *Fault) asks(method, path string) bool {
	return f.request == nil || f.request.MatchString(method+" "+path)
}

// engineFault finds a fault for an action inside Heat; callers hold mu.
func (c *Cloud) engineFault(typ, action string, names ...string) *Fault {
	if len(c.faults.list) == 0 {
		return nil
	}
	return c.faults.take(func(f *Fault) bool {
		return !f.onRequest() && f.ResourceType == typ && f.matches(action, names)
	})
}

// CheckFault says what is wrong with a fault, or nil.
func CheckFault(f Fault) error {
	if !slices.Contains(effects, f.Effect) {
		return fmt.Errorf("effect %q is none of %v", f.Effect, effects)
	}
	if f.ResourceType == "" {
		return fmt.Errorf("resource_type is missing")
	}
	if _, err := path.Match(f.Name, ""); err != nil {
		return fmt.Errorf("name %q: %w", f.Name, err)
	}
	if _, err := regexp.Compile(f.Request); err != nil {
		return fmt.Errorf("request %q: %w", f.Request, err)
	}
	return nil
}

// AddFault activates a fault, which [CheckFault] must find right, and returns its id.
func (c *Cloud) AddFault(f Fault) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults.add(f)
}

// RemoveFault ends a fault; it reports whether there was one. An empty id
// removes all.
func (c *Cloud) RemoveFault(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults.remove(id)
}

// Faults lists the active faults.
func (c *Cloud) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []Fault{}
	for _, f := range c.faults.list {
		if !f.spent {
			out = append(out, *f)
		}
	}
	return out
}
