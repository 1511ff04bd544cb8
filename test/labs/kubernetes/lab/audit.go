package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const auditFile = "audit.log"

// Request is one request that the API server got from outside of the control plane.
type Request struct {
	At        time.Time
	User      string // "system:serviceaccount:NAMESPACE:NAME", or the common name of a certificate
	UserAgent string
	Verb      string // get, list, watch, create, update, patch, delete, deletecollection; of other URLs, the method
	URI       string

	// What object it was about; empty for other URLs.
	Group, Version, Resource, Subresource, Namespace, Name string

	// Code is the answer's HTTP status; 0 while there is none, as for a watch that has just begun.
	Code int
}

// Mark is a place in the audit log.
type Mark int64

// Mark returns the end of the audit log: requests that are answered already are before it, later ones behind it.
func (p *Plane) Mark() (Mark, error) {
	info, err := os.Stat(filepath.Join(p.Dir, auditFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return Mark(info.Size()), nil
}

// Requests returns the requests that came after a mark, each once, in the order they came in. A request is in the log
// before it is looked at, so all that were answered are there.
func (p *Plane) Requests(since Mark) ([]Request, error) {
	f, err := os.Open(filepath.Join(p.Dir, auditFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(int64(since), io.SeekStart); err != nil {
		return nil, err
	}
	return readAudit(f)
}

// RequestsOf returns those of the requests after a mark that a user sent.
func (p *Plane) RequestsOf(user string, since Mark) ([]Request, error) {
	all, err := p.Requests(since)
	if err != nil {
		return nil, err
	}
	var own []Request
	for _, r := range all {
		if r.User == user {
			own = append(own, r)
		}
	}
	return own, nil
}

// entry is what is of use of a line of the audit log (audit.k8s.io/v1 Event).
type entry struct {
	AuditID    string    `json:"auditID"`
	Stage      string    `json:"stage"`
	RequestURI string    `json:"requestURI"`
	Verb       string    `json:"verb"`
	UserAgent  string    `json:"userAgent"`
	At         time.Time `json:"requestReceivedTimestamp"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Group       string `json:"apiGroup"`
		Version     string `json:"apiVersion"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// readAudit joins the lines of one request. A last line that is still being written is left out.
func readAudit(r io.Reader) ([]Request, error) {
	var all []Request
	index := map[string]int{}
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var e entry
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w: %.200s", err, line)
		}
		i, seen := index[e.AuditID]
		switch {
		case !seen && e.Stage != "RequestReceived":
			continue // it came before the mark, and only its answer behind it
		case !seen:
			i = len(all)
			index[e.AuditID] = i
			all = append(all, Request{
				At: e.At, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb, URI: e.RequestURI,
				Group: e.Object.Group, Version: e.Object.Version, Resource: e.Object.Resource, Subresource: e.Object.Subresource,
				Namespace: e.Object.Namespace, Name: e.Object.Name,
			})
		}
		all[i].Code = max(all[i].Code, e.Status.Code)
		if e.Object.Name != "" {
			all[i].Name = e.Object.Name // of what was created, known with the answer
		}
	}
}
