package vimsim

import (
	"context"
	"net/http"
	"time"
)

// maxJournal is how many requests are remembered; older ones are forgotten.
const maxJournal = 100_000

// Entry is one changing request that an API received.
type Entry struct {
	// Seq counts from 1 and never repeats, not even over a reset.
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	// Name is the top-level stack's or the image's name if the request has one.
	Name string `json:"name,omitempty"`
	// Status is what was answered; zero while it runs or if cut.
	Status int `json:"status"`
}

type journal struct{ list []*Entry }

func contextWithRoot(r *http.Request, root string) context.Context {
	return context.WithValue(r.Context(), rootKey{}, root)
}

func (c *Cloud) record(service string, r *http.Request, names []string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	e := &Entry{Seq: c.seq, Time: c.clk.Now(), Service: service, Method: r.Method, Path: r.URL.Path}
	for _, n := range names {
		if n == "" {
			continue
		}
		if e.Name = n; service != "heat" {
			continue
		}
		if s := c.heat.byID[n]; s != nil {
			e.Name = s.root().name
		}
		break
	}
	c.journal.list = append(c.journal.list, e)
	if len(c.journal.list) > maxJournal {
		c.journal.list = append([]*Entry(nil), c.journal.list[maxJournal/10:]...)
	}
	return e
}

func (c *Cloud) recordStatus(e *Entry, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code == 0 {
		code = http.StatusOK
	}
	e.Status = code
}

// Journal lists the changing requests received, oldest first.
func (c *Cloud) Journal() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Entry, len(c.journal.list))
	for i, e := range c.journal.list {
		out[i] = *e
	}
	return out
}
