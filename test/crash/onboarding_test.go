package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// How a package is uploaded.
const (
	byPUT = "PUT"
	byURI = "URI"
)

// receiving is the point in the midst of a transfer; the process is killed from outside there.
const receiving = "receiving"

// runTime bounds a run.
const runTime = 15 * time.Minute

// outcome is what a run has measured.
type outcome struct {
	scenario, point string
	nodes           int
	taken           bool          // somebody had to take over
	takeover        time.Duration // from the death, with one node from the start of the new process, to the first change
	ended           time.Duration // from the death to the operation's end
}

// afterDeath starts a new process when there was but one node, and returns from when the takeover counts.
func (l *lane) afterDeath(ctx context.Context, d death) (time.Time, error) {
	if len(l.Nodes) > 1 {
		return d.at, nil
	}
	from := time.Now()
	return from, d.node.Start(ctx)
}

// source serves a package's content. While it holds, it gives half of it and no more.
type source struct {
	*httptest.Server
	mu   sync.Mutex
	hold bool
}

func newSource(zip []byte) *source {
	s := &source{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		hold := s.hold
		s.mu.Unlock()
		w.Header().Set("Content-Length", strconv.Itoa(len(zip)))
		if !hold {
			_, _ = w.Write(zip)
			return
		}
		_, _ = w.Write(zip[:len(zip)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	return s
}

func (s *source) setHold(hold bool) {
	s.mu.Lock()
	s.hold = hold
	s.mu.Unlock()
}

// onboarding has a package onboarded with a death at the point, none when it is empty, judges it and deletes it.
func (l *lane) onboarding(ctx context.Context, by, point string) (outcome, error) {
	out := outcome{scenario: "onboarding by " + by, point: point, nodes: len(l.Nodes)}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	l.runs++
	zip, err := deploy.Package(l.upload)
	if err != nil {
		return out, err
	}
	src := newSource(zip)
	defer func() {
		src.CloseClientConnections() // also one that is held
		src.Close()
	}()
	p, err := l.api().CreatePackage(ctx)
	if err != nil {
		return out, err
	}
	upload := func() error {
		if by == byURI {
			_, err := l.api().Call(ctx, http.MethodPost, "/vnfpkgm/v1/vnf_packages/"+p.Id+"/package_content/upload_from_uri",
				map[string]any{"addressInformation": src.URL + "/package.zip"}, nil)
			return err
		}
		return l.api().Upload(ctx, p.Id, zip)
	}
	changes, err := l.watch(ctx, packageWatch, p.Id)
	if err != nil {
		return out, err
	}
	defer changes()

	var d death
	garbage := 0
	switch {
	case point == "":
		if err := upload(); err != nil {
			return out, err
		}
	case point == receiving:
		garbage = 1 // what the dead node had received is collected later
		if d, err = l.cutTransfer(ctx, by, p.Id, zip, src, upload); err != nil {
			return out, err
		}
	default:
		if err := l.armAt(point); err != nil {
			return out, err
		}
		askErr := upload()
		if d, err = l.awaitDeath(ctx); err != nil {
			return out, errors.Join(err, askErr)
		}
		var status *harness.StatusError
		if errors.As(askErr, &status) {
			return out, askErr
		}
	}
	var from time.Time
	if d.node != nil {
		if from, err = l.afterDeath(ctx, d); err != nil {
			return out, err
		}
	}
	_, err = l.api().AwaitOnboarded(ctx, p.Id)
	if by == byPUT && point == receiving {
		// What was to come cannot come any more: the package goes back, with the reason, and is uploaded again.
		if !errors.Is(err, harness.ErrRefused) || !strings.Contains(err.Error(), "Upload it again") {
			return out, fmt.Errorf("after its upload broke off the package is not back in CREATED with the reason: %w", err)
		}
		if err = upload(); err == nil {
			_, err = l.api().AwaitOnboarded(ctx, p.Id)
		}
	}
	if err != nil {
		return out, err
	}
	if d.node != nil {
		out.ended = time.Since(d.at)
		out.takeover, out.taken = takeover(changes(), d, from, 2) // the upload itself is under the second fence
		if out.taken != leavesWork(point) {
			return out, fmt.Errorf("taken over: %v, want %v", out.taken, leavesWork(point))
		}
	}
	if err := l.judgePackage(ctx, p.Id, garbage); err != nil {
		return out, err
	}
	if err := l.api().DeletePackage(ctx, p.Id); err != nil {
		return out, err
	}
	if _, err := l.conn.Exec(ctx, `DELETE FROM contents WHERE sha256 IS NULL`); err != nil { // as the collector will
		return out, err
	}
	var contents int
	if err := l.conn.QueryRow(ctx, `SELECT count(*) FROM contents`).Scan(&contents); err != nil || contents != 1 {
		return out, fmt.Errorf("after the package's deletion there are %d contents (error: %w), want that of %s alone", contents, err, l.name)
	}
	return out, l.revive(ctx)
}

// cutTransfer kills the node that is receiving a package's content.
func (l *lane) cutTransfer(ctx context.Context, by, id string, zip []byte, src *source, upload func() error) (death, error) {
	var victim *harness.Node
	endBody := func() {} // the client goes on with a body until it ends
	sent := make(chan error, 1)
	if by == byURI {
		src.setHold(true)
		if err := upload(); err != nil {
			return death{}, err
		}
		sent <- nil
	} else {
		victim = l.living()
		body, more := io.Pipe()
		endBody = func() { _ = more.CloseWithError(errCut) }
		defer endBody()
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, victim.URL+"/vnfpkgm/v1/vnf_packages/"+id+"/package_content", body)
		if err != nil {
			return death{}, err
		}
		req.ContentLength = int64(len(zip))
		req.Header.Set("Content-Type", "application/zip")
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				err = fmt.Errorf("the upload was answered with %s", resp.Status)
				_ = resp.Body.Close()
				sent <- err
				return
			}
			sent <- nil
		}()
		if _, err := io.Copy(more, bytes.NewReader(zip[:len(zip)/2])); err != nil {
			return death{}, err
		}
	}
	err := harness.Await(ctx, "the content is being received", func(ctx context.Context) (bool, error) {
		var owner string
		err := l.conn.QueryRow(ctx, `SELECT coalesce(owner, '') FROM vnf_packages WHERE id = $1::uuid AND onboarding_state = 'UPLOADING' AND content_id IS NOT NULL`, id).Scan(&owner)
		if err != nil || owner == "" {
			return false, nil
		}
		for _, n := range l.Nodes {
			if strings.Contains(owner, "-"+strconv.Itoa(n.PID())+"-") {
				victim = n
				return true, nil
			}
		}
		return false, fmt.Errorf("nobody is %s", owner)
	})
	if err != nil {
		return death{}, err
	}
	d := death{node: victim, pid: victim.PID()}
	victim.Kill()
	d.at = time.Now()
	src.setHold(false)
	endBody()
	return d, <-sent
}

var errCut = errors.New("the server is dead")
