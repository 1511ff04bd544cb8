package vimsim

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"
)

// Fault makes matching actions misbehave.
//
// ResourceType is a Heat resource type (OS::Nova::Server, a template file), or
// "stack" for a stack as a whole, or an API: "keystone", "glance", "heat",
// "nova", "neutron", "cinder"; "*" is every API. OS::Glance::Image with the
// action create acts on an image's upload or import. For a resource type and for
// "stack" the effects fail, hang, slow and quota act inside Heat; http, reset
// and truncate always act on API requests (for "stack": requests under
// /stacks), as do slow and hang of an API.
type Fault struct {
	ID           string `json:"id,omitempty"`
	ResourceType string `json:"resource_type"`
	// Name is a glob over the resource's, its server's or port's, or the
	// top-level stack's name; empty matches all.
	Name string `json:"name,omitempty"`
	// Action is create, update, delete, get or "*" (also when empty); of servers
	// also start and stop, as Nova is asked to.
	Action string `json:"action,omitempty"`
	// Effect is fail, hang, slow, http, reset, truncate or quota.
	Effect string `json:"effect"`
	// Delay of slow; a hang with a delay ends after it.
	Delay Duration `json:"delay,omitempty"`
	// Status is the HTTP status of the effect http; 503 if zero.
	Status int `json:"status,omitempty"`
	// Reason is the text of the failure.
	Reason string `json:"reason,omitempty"`
	// Times is how often the fault fires; zero is always.
	Times int `json:"times,omitempty"`
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
)

var effects = []string{EffectFail, EffectHang, EffectSlow, EffectHTTP, EffectReset, EffectTruncate, EffectQuota}

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
	l.list = slices.DeleteFunc(l.list, func(o *Fault) bool { return o.ID == f.ID })
	l.list = append(l.list, &f)
	return f.ID
}

func (l *faultList) take(accept func(*Fault) bool) *Fault {
	for i, f := range l.list {
		if !accept(f) {
			continue
		}
		hit := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				l.list = slices.Delete(l.list, i, i+1)
			}
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
	case EffectHTTP, EffectReset, EffectTruncate:
		return true
	}
	return slices.Contains(apiNames, f.ResourceType)
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
	return nil
}

// AddFault activates a fault and returns its id.
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
	n := len(c.faults.list)
	c.faults.list = slices.DeleteFunc(c.faults.list, func(f *Fault) bool { return id == "" || f.ID == id })
	return len(c.faults.list) < n
}

// Faults lists the active faults.
func (c *Cloud) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Fault, len(c.faults.list))
	for i, f := range c.faults.list {
		out[i] = *f
	}
	return out
}
