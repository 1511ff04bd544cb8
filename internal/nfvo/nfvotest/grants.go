package nfvotest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Manner is how the NFVO answers grant requests from now on. The zero value grants everything at once.
type Manner struct {
	Failures int    // so many requests, looks included, are answered 500 first
	Looks    int    // 202 to the request and to so many looks, then the grant: an asynchronous NFVO
	Wait     string // the Retry-After of 202 and of 500, "" for none
	Refuse   string // when not empty, 403 with this detail: to the request, or with Looks to the last look
	Hang     bool   // no answer until the client goes away
	Status   int    // when not 0, this status with Body, to requests and to looks
	Body     string
	Location string                                       // of what is answered 202, in place of the true one
	Header   http.Header                                  // what answers have besides
	Change   func(*sol003.Grant, sol003.GrantRequest)     // changes the grant before it is answered
	Observe  func(r *http.Request, q sol003.GrantRequest) // is told of each request before it is answered
}

// pending is a grant that is looked at.
type pending struct {
	grant *sol003.Grant
	looks int
}

// Behave sets how grant requests are answered from now on.
func (n *NFVO) Behave(m Manner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.manner, n.failures = m, m.Failures
}

// Requests are the grant requests that came, in order, those that were answered badly included.
func (n *NFVO) Requests() []sol003.GrantRequest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests)
}

// Looks tells how often grants were looked at.
func (n *NFVO) Looks() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.looks
}

// Grant is what a good NFVO answers: everything that is asked for, in a zone "nova" of the VIM.
func Grant(id, href string, q sol003.GrantRequest) *sol003.Grant {
	g := &sol003.Grant{
		Id: id, VnfInstanceId: q.VnfInstanceId, VnfLcmOpOccId: q.VnfLcmOpOccId, Zones: []sol003.ZoneInfo{{Id: "zone-1", ZoneId: "nova"}},
		UnderscoreLinks: map[string]sol003.Link{
			"self": {Href: href}, "vnfLcmOpOcc": q.UnderscoreLinks["vnfLcmOpOcc"], "vnfInstance": q.UnderscoreLinks["vnfInstance"],
		},
	}
	for _, d := range q.AddResources {
		i := sol003.GrantInfo{ResourceDefinitionId: d.Id}
		if d.Type == sol003.ResourceDefinitionTypeCompute {
			i.ZoneId = "zone-1"
		}
		g.AddResources = append(g.AddResources, i)
	}
	for _, d := range q.RemoveResources {
		g.RemoveResources = append(g.RemoveResources, sol003.GrantInfo{ResourceDefinitionId: d.Id})
	}
	for _, d := range q.UpdateResources {
		g.UpdateResources = append(g.UpdateResources, sol003.GrantInfo{ResourceDefinitionId: d.Id})
	}
	return g
}

func (n *NFVO) postGrant(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := Valid("GrantRequest", raw); err != nil {
		n.t.Errorf("a grant request does not keep to the schema: %v\n%s", err, raw)
		problem(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	var q sol003.GrantRequest
	if err := json.Unmarshal(raw, &q); err != nil {
		n.t.Errorf("a grant request cannot be read: %v", err)
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	n.mu.Lock()
	n.requests = append(n.requests, q)
	m := n.manner
	id := fmt.Sprintf("grant-%d", len(n.requests))
	href := n.GrantURL() + "/grants/" + id
	grant := Grant(id, href, q)
	if m.Change != nil {
		m.Change(grant, q)
	}
	n.grants[id] = &pending{grant: grant}
	n.mu.Unlock()
	if m.Observe != nil {
		m.Observe(r, q)
	}
	if n.misbehave(w, r, m) {
		return
	}
	if m.Looks > 0 || m.Location != "" {
		if m.Location != "" {
			href = m.Location
		}
		w.Header().Set("Location", href)
		wait(w, m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Refuse != "" {
		problem(w, http.StatusForbidden, m.Refuse)
		return
	}
	w.Header().Set("Location", href)
	answer(w, http.StatusCreated, grant)
}

func (n *NFVO) getGrant(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.looks++
	m := n.manner
	n.mu.Unlock()
	if n.misbehave(w, r, m) {
		return
	}
	n.mu.Lock()
	p, ok := n.grants[r.PathValue("id")]
	looks := 0
	if ok {
		p.looks++
		looks = p.looks
	}
	n.mu.Unlock()
	switch {
	case !ok:
		problem(w, http.StatusNotFound, "no such grant")
	case looks <= m.Looks:
		wait(w, m)
		w.WriteHeader(http.StatusAccepted)
	case m.Refuse != "":
		problem(w, http.StatusForbidden, m.Refuse)
	default:
		answer(w, http.StatusOK, p.grant)
	}
}

// misbehave answers badly if the manner says so.
func (n *NFVO) misbehave(w http.ResponseWriter, r *http.Request, m Manner) bool {
	for k, v := range m.Header {
		w.Header()[k] = v
	}
	n.mu.Lock()
	fail := n.failures > 0
	if fail {
		n.failures--
	}
	n.mu.Unlock()
	switch {
	case m.Hang:
		_, _ = io.Copy(io.Discard, r.Body) // from then on the client's going away is noticed
		<-r.Context().Done()
	case fail:
		wait(w, m)
		problem(w, http.StatusInternalServerError, "a bad day")
	case m.Status != 0:
		wait(w, m)
		w.WriteHeader(m.Status)
		_, _ = io.WriteString(w, m.Body)
	default:
		return false
	}
	return true
}

func wait(w http.ResponseWriter, m Manner) {
	if m.Wait != "" {
		w.Header().Set("Retry-After", m.Wait)
	}
}
