package main

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

//go:embed testdata/package
var packageFiles embed.FS

const (
	instancesPath = "/vnflcm/v1/vnf_instances"
	opOccsPath    = "/vnflcm/v1/vnf_lcm_op_occs"
	packagesPath  = "/vnfpkgm/v1/vnf_packages"
	jsonType      = "application/json"
	// onboardTimeout is how long a package of one file may take.
	onboardTimeout = 30 * time.Second
)

// packageFS returns the files of the benchmark's VNF package.
func packageFS() (fs.FS, error) { return fs.Sub(packageFiles, "testdata/package") }

// packageZip returns the benchmark's VNF package.
func packageZip() ([]byte, error) {
	root, err := packageFS()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	if err := w.AddFS(root); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// subject is what operations are measured on: a VIM, a package and instances of it.
type subject struct {
	addr   string
	gauge  gauge
	vnfdID string
	vim    string

	mu    sync.Mutex
	all   []string // instance ids
	fresh []string // those of them that are NOT_INSTANTIATED
}

// prepare registers the instant VIM and onboards the package.
func prepare(ctx context.Context, addr string, g gauge) (*subject, error) {
	s := &subject{addr: addr, gauge: g}
	c := newConn(addr)
	defer c.close()
	var vim struct {
		Vim struct{ ID string } `json:"vim"`
	}
	body := []byte(`{"vim":{"type":"fake","auth_url":"http://fake","name":"f","is_default":true,"vim_project":{"name":"p"},"auth_cred":{"username":"u","password":"p"}}}`)
	if _, err := c.want(201, "POST", "/v1.0/vims", jsonType, body, &vim); err != nil {
		return nil, fmt.Errorf("register the instant VIM: %w", err)
	}
	s.vim = vim.Vim.ID
	var pkg sol003.VnfPkgInfo
	if _, err := c.want(201, "POST", packagesPath, jsonType, []byte(`{}`), &pkg); err != nil {
		return nil, fmt.Errorf("create the VNF package: %w", err)
	}
	content, err := packageZip()
	if err != nil {
		return nil, fmt.Errorf("pack the VNF package: %w", err)
	}
	if _, err := c.want(202, "PUT", packagesPath+"/"+pkg.Id+"/package_content", "application/zip", content, nil); err != nil {
		return nil, fmt.Errorf("upload the VNF package: %w", err)
	}
	err = poll(ctx, onboardTimeout, 20*time.Millisecond, func() (bool, error) {
		if err := c.get(packagesPath+"/"+pkg.Id, &pkg); err != nil {
			return false, err
		}
		if pkg.OnboardingState == sol003.PackageOnboardingStateTypeCreated {
			return false, fmt.Errorf("it is refused: %+v", pkg.OnboardingFailureDetails)
		}
		return pkg.OnboardingState == sol003.PackageOnboardingStateTypeOnboarded, nil
	})
	if err != nil {
		return nil, fmt.Errorf("onboard the VNF package: %w", err)
	}
	s.vnfdID = pkg.VnfdId
	return s, nil
}

// poll calls f, with a pause between, until it says true, fails, or the time is over.
func poll(ctx context.Context, within, pause time.Duration, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// create returns the operation that makes a VNF instance.
func (s *subject) create() operation {
	body, err := json.Marshal(sol003.CreateVnfRequest{VnfdId: s.vnfdID, VnfInstanceName: "bench", VnfInstanceDescription: "made to be measured"})
	return func(c *conn, _ int) error {
		if err != nil {
			return err
		}
		a, err := c.want(201, "POST", instancesPath, jsonType, body, nil)
		if err != nil {
			return err
		}
		id, err := idAt(a.location, instancesPath)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.all, s.fresh = append(s.all, id), append(s.fresh, id)
		s.mu.Unlock()
		return nil
	}
}

// idAt returns the id at the end of a Location.
func idAt(location, path string) (string, error) {
	_, id, ok := strings.Cut(location, path+"/")
	if !ok || id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf("the answer's Location %q is not of %s", location, path)
	}
	return id, nil
}

// ensure makes instances until there are n that exist and m that are not instantiated. It returns the load that it was.
func (s *subject) ensure(ctx context.Context, n, m int) (Load, error) {
	missing := max(n-len(s.all), m-len(s.fresh))
	if missing <= 0 {
		return Load{}, nil
	}
	l, err := closedLoop{addr: s.addr, clients: 16, total: missing, gauge: s.gauge}.run(ctx, s.create())
	if err != nil {
		return l, fmt.Errorf("make %d VNF instances: %w", missing, err)
	}
	return l, nil
}

// take hands out n instances that are not instantiated; there must be as many.
func (s *subject) take(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := len(s.fresh) - n
	ids := s.fresh[at:]
	s.fresh = s.fresh[:at:at]
	return ids
}

// show returns the operation that reads one instance: another each time, spread over all.
func (s *subject) show() operation {
	ids := s.all
	var next atomic.Uint64
	return func(c *conn, _ int) error {
		// A step that has no factor in common with any number of instances visits all of them.
		return c.get(instancesPath+"/"+ids[next.Add(1)*2654435761%uint64(len(ids))], nil)
	}
}

// list returns the operation that reads a page of instances
func (s *subject) list() operation {
	return func(c *conn, _ int) error {
		if err := c.get(instancesPath, nil); err != nil {
			return err
		}
		if n := bytes.Count(c.body.Bytes(), []byte(`"vnfdId"`)); n < 100 {
			return fmt.Errorf("a page has %d VNF instances, not 100", n)
		}
		return nil
	}
}

// instantiateBody is an InstantiateVnfRequest to the instant VIM; wait is how long it is to take there.
func (s *subject) instantiateBody(wait time.Duration) []byte {
	params := ""
	if wait > 0 {
		params = `,"additionalParams":{"fake":{"waitSeconds":` + strconv.FormatFloat(wait.Seconds(), 'f', 3, 64) + `}}`
	}
	return []byte(`{"flavourId":"simple","vimConnectionInfo":[{"id":"v","vimId":"` + s.vim + `","vimType":"fake"}]` + params + `}`)
}

// instantiate asks for one instance to be instantiated and returns the op occ's id.
func instantiate(c *conn, instanceID string, body []byte) (string, error) {
	a, err := c.want(202, "POST", instancesPath+"/"+instanceID+"/instantiate", jsonType, body, nil)
	if err != nil {
		return "", err
	}
	return idAt(a.location, opOccsPath)
}

// opOcc is what is looked at of a VnfLcmOpOcc.
type opOcc struct {
	ID               string                   `json:"id"`
	OperationState   sol003.LcmOperationState `json:"operationState"`
	StateEnteredTime time.Time                `json:"stateEnteredTime"`
	StartTime        time.Time                `json:"startTime"`
	Error            *sol003.ProblemDetails   `json:"error"`
}

// ended tells whether the op occ is COMPLETED; any other state that it does not leave by itself is an error.
func (o *opOcc) ended() (bool, error) {
	switch o.OperationState {
	case sol003.LcmOperationStateCompleted:
		return true, nil
	case sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing:
		return false, nil
	}
	err := fmt.Errorf("op occ %s is %s", o.ID, o.OperationState)
	if o.Error != nil {
		err = fmt.Errorf("%w: %s", err, o.Error.Detail)
	}
	return false, err
}

// awaitCompleted waits for every op occ, in the order in which they were accepted, and returns them. It asks for one at
// a time, and seldom, so that the waiting costs the server next to nothing. One that does not get there is an error
// that says how many did.
func awaitCompleted(ctx context.Context, addr string, ids []string, within time.Duration) ([]opOcc, error) {
	c := newConn(addr)
	defer c.close()
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("time is up"))
	defer cancel()
	ops := make([]opOcc, len(ids))
	for n, id := range ids {
		err := poll(ctx, within, 20*time.Millisecond, func() (bool, error) {
			if err := c.get(opOccsPath+"/"+id, &ops[n]); err != nil {
				return false, err
			}
			return ops[n].ended()
		})
		if err != nil {
			return nil, fmt.Errorf("%d of %d operations are COMPLETED; op occ %s is not after %s: %w", n, len(ids), id, within, err)
		}
	}
	return ops, nil
}
