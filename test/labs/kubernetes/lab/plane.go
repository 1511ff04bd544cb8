package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ErrNotUp is in the chain of the error of [Join] when no control plane runs in the folder.
var ErrNotUp = errors.New("no control plane is up")

// Options say what control plane [Up] is to start.
type Options struct {
	// Dir is the folder for its state, which must be empty or not be there. Its former content is the caller's to remove.
	Dir string
	// Nodes is how many nodes are simulated; two when 0.
	Nodes int
	// Port is the API server's, any free one when 0.
	Port int
	// APIServer are flags of kube-apiserver besides the lab's own.
	APIServer []string
	// Stay has it outlive this process; else it ends with it.
	Stay bool
	// Log hears what is done; nobody when nil.
	Log *slog.Logger
}

// Plane is a running control plane.
type Plane struct {
	Dir        string // keys/, etcd/, a log a daemon, audit.log, kubeconfigs
	URL        string // of the API server
	CA         []byte // the authority, PEM, that its certificate and all client certificates are from
	Kubeconfig string // the administrator's, a file
	Client     kubernetes.Interface

	config *rest.Config
	state  state
	joined bool // another process' own
	mu     sync.Mutex
	ds     map[string]*daemon
}

// state is what is to be known of a control plane by a process that has not started it.
type state struct {
	Binary  string              `json:"binary"`
	Ports   ports               `json:"ports"`
	Nodes   int                 `json:"nodes"`
	Flags   map[string][]string `json:"flags"`
	Daemons map[string]identity `json:"daemons"`
}

const stateFile = "state.json"

// Config returns the administrator's way in, without a limit on requests. The caller may change it.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Joined tells whether the control plane is another process' own: it cannot be disturbed, and it stays.
func (p *Plane) Joined() bool { return p.joined }

// Up starts a control plane and returns when it is of use: its nodes are Ready and ServiceAccounts are made. The program
// is built before when there is none yet. It must be closed, unless it is to stay.
func Up(ctx context.Context, o Options) (_ *Plane, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	binary, err := Binary(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("start a control plane in %s: the folder is not empty", dir)
	}
	unlock, err := lockFile(ctx, filepath.Join(filepath.Dir(binary), "starting")) // so that no two find the same ports free
	if err != nil {
		return nil, err
	}
	defer unlock()
	chosen, err := pickPorts(ctx, o.Port)
	if err != nil {
		return nil, err
	}
	p := &Plane{state: state{
		Binary: binary, Ports: chosen, Nodes: o.Nodes, Flags: flags(chosen, o.APIServer), Daemons: map[string]identity{},
	}}
	if err := p.layOut(dir); err != nil {
		return nil, fmt.Errorf("lay out %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end())
		}
	}()
	begun := time.Now()
	for _, name := range order {
		if err := p.launch(ctx, name, !o.Stay); err != nil {
			return nil, err
		}
	}
	if err := p.seed(ctx); err != nil {
		return nil, err
	}
	o.Log.Info("the Kubernetes control plane is up", "url", p.URL, "kubeconfig", p.Kubeconfig,
		"took", time.Since(begun).Round(10*time.Millisecond))
	return p, nil
}

// layOut fills the folder with all that the daemons read. The state comes first: a folder with one is [Down]'s to remove.
func (p *Plane) layOut(dir string) error {
	p.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := p.writeState(); err != nil {
		return err
	}
	if err := errors.Join(writeKeys(filepath.Join(dir, "keys")), writeConfiguration(dir)); err != nil {
		return err
	}
	return p.open(dir)
}

// Join returns the control plane that runs in a folder. The error wraps [ErrNotUp] when none does, or not all of it.
func Join(ctx context.Context, dir string) (*Plane, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{joined: true}
	if p.state, err = readState(dir); err != nil {
		return nil, err
	}
	for _, name := range order {
		if !p.state.Daemons[name].alive() {
			return nil, fmt.Errorf("%w in %s: %s has ended", ErrNotUp, dir, name)
		}
	}
	if err := p.open(dir); err != nil {
		return nil, err
	}
	if err := p.ready(ctx, APIServer); err != nil {
		return nil, fmt.Errorf("%w in %s: %w", ErrNotUp, dir, err)
	}
	return p, nil
}

func readState(dir string) (state, error) {
	var s state
	raw, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%w in %s", ErrNotUp, dir)
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read %s of %s: %w", stateFile, dir, err)
	}
	return s, nil
}

// open fills in all that follows from the state and the keys.
func (p *Plane) open(dir string) error {
	p.Dir, p.URL = dir, "https://"+local(p.state.Ports.API)
	keys := filepath.Join(dir, "keys")
	ca, err := os.ReadFile(filepath.Join(keys, "ca.crt"))
	if err != nil {
		return err
	}
	p.CA = ca
	p.config = &rest.Config{Host: p.URL, QPS: -1, UserAgent: "vnfm-lab", TLSClientConfig: rest.TLSClientConfig{
		CAData: ca, CertFile: filepath.Join(keys, "admin.crt"), KeyFile: filepath.Join(keys, "admin.key"),
	}}
	if p.Client, err = kubernetes.NewForConfig(p.config); err != nil {
		return err
	}
	p.Kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	p.ds = map[string]*daemon{}
	for _, name := range order {
		p.ds[name] = &daemon{
			name: name, args: p.state.Flags[name], dir: dir, log: filepath.Join(dir, name+".log"), id: p.state.Daemons[name],
		}
	}
	if p.joined {
		return nil
	}
	for _, who := range []string{"admin", "controller", "scheduler", "nodes"} {
		cert, err := os.ReadFile(filepath.Join(keys, who+".crt"))
		if err != nil {
			return err
		}
		key, err := os.ReadFile(filepath.Join(keys, who+".key"))
		if err != nil {
			return err
		}
		raw, err := p.KubeconfigOf(Credential{Certificate: cert, Key: key}, "")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, who+".kubeconfig"), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a daemon and waits until it is ready.
func (p *Plane) launch(ctx context.Context, name string, tied bool) error {
	d, ok := p.ds[name]
	if !ok {
		return fmt.Errorf("a control plane has no %q", name)
	}
	if err := d.start(p.state.Binary, tied); err != nil {
		return err
	}
	if err := p.remember(name, d.identity()); err != nil {
		return err
	}
	return p.ready(ctx, name)
}

// remember writes down, for [Join] and [Down], who a daemon is.
func (p *Plane) remember(name string, id identity) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Daemons[name] = id
	return p.writeState()
}

func (p *Plane) writeState() error {
	raw, err := json.MarshalIndent(p.state, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(p.Dir, stateFile)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readyTime is how long a daemon may take from its start until it is ready. On an idle machine it is a few seconds.
const readyTime = 10 * time.Minute

// ready waits until a daemon answers, where it is one that answers.
func (p *Plane) ready(ctx context.Context, name string) error {
	var probe string
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	switch name {
	case Etcd:
		probe = "http://" + local(p.state.Ports.Etcd) + "/health"
	case APIServer:
		probe = p.URL + "/readyz"
		transport, err := rest.TransportFor(p.Config())
		if err != nil {
			return err
		}
		client.Transport = transport
	default:
		return p.ds[name].failure()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("not within %s; its log is %s", readyTime, p.ds[name].log))
	defer cancel()
	return await(ctx, name, func() (bool, error) {
		if err := p.ds[name].failure(); err != nil {
			return false, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, probe, nil)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			var refused net.Error
			if errors.As(err, &refused) || ctx.Err() != nil || errors.Is(err, io.EOF) {
				return false, nil
			}
			return false, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// Close ends the control plane. One that was joined stays.
func (p *Plane) Close() error {
	if p.joined {
		return nil
	}
	return p.end()
}

func (p *Plane) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ids := make(map[string]identity, len(p.ds))
	for name, d := range p.ds {
		ids[name] = d.identity()
	}
	return endAll(ctx, ids)
}

// endAll ends daemons, those that use others before these.
func endAll(ctx context.Context, ids map[string]identity) error {
	var errs []error
	for i := len(order) - 1; i >= 0; i-- {
		if err := ids[order[i]].end(ctx, 5*time.Second); err != nil {
			errs = append(errs, fmt.Errorf("end %s: %w", order[i], err))
		}
	}
	return errors.Join(errs...)
}

// Down ends the control plane that was started in a folder, whoever has started it, and removes the folder. It is no
// error when there is none.
func Down(ctx context.Context, dir string) error {
	s, err := readState(dir)
	if errors.Is(err, ErrNotUp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := endAll(ctx, s.Daemons); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Status is what there is to say of one daemon.
type Status struct {
	Name    string
	PID     int
	Running bool
	Log     string // a file
}

// Statuses tells of each daemon of the control plane in a folder whether it runs. The error wraps [ErrNotUp] when none
// was ever started there.
func Statuses(dir string) ([]Status, error) {
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(order))
	for _, name := range order {
		id := s.Daemons[name]
		all = append(all, Status{Name: name, PID: id.PID, Running: id.alive(), Log: filepath.Join(dir, name+".log")})
	}
	return all, nil
}
