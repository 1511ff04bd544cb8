package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Access is how the VIM's API server is reached: what a kubeconfig says.
type Access struct {
	Server   string // URL
	CA       []byte // PEM; empty: the system's authorities
	Insecure bool   // the operator's choice for this VIM: its certificate is not checked
	// Either of these ways to log in, or Certificate and Key (PEM).
	Token             lcm.Secret
	Username          string
	Password          lcm.Secret
	Certificate       []byte
	Key               lcm.Secret
	RequestsPerSecond float64 // limit; 0: helm's own
}

// kubeconfig returns it as a kubeconfig, in JSON, which is YAML.
func (a *Access) kubeconfig() ([]byte, error) {
	type object = map[string]any
	cluster, user := object{"server": a.Server}, object{}
	if a.Insecure {
		cluster["insecure-skip-tls-verify"] = true
	} else if len(a.CA) > 0 {
		cluster["certificate-authority-data"] = a.CA
	}
	if a.Token != "" {
		user["token"] = a.Token.Reveal()
	}
	if a.Username != "" {
		user["username"], user["password"] = a.Username, a.Password.Reveal()
	}
	if len(a.Certificate) > 0 {
		user["client-certificate-data"], user["client-key-data"] = a.Certificate, []byte(a.Key.Reveal())
	}
	raw, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "vim",
		"clusters": []object{{"name": "vim", "cluster": cluster}},
		"users":    []object{{"name": "vim", "user": user}},
		"contexts": []object{{"name": "vim", "context": object{"cluster": "vim", "user": "vim"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make helm's kubeconfig: %w", err)
	}
	return raw, nil
}

// Release is what a release is to be.
type Release struct {
	Name, Namespace string
	Chart           []byte            // the chart's archive (.tgz)
	Set             []string          // values, as helm's --set takes them
	Labels          map[string]string // of the release's Secret
}

// maxName is how long a release's name may be.
const maxName = 53

var nameText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// ValidName tells whether a release may have the name.
func ValidName(name string) bool { return len(name) <= maxName && nameText.MatchString(name) }

func (r *Release) labels() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		out = append(out, key+"="+r.Labels[key])
	}
	if len(out) == 0 {
		return nil
	}
	return []string{"--labels=" + strings.Join(out, ",")}
}

// hookTimeout is how long helm itself waits for hooks: it says what it waits for, where a run that is ended does not.
func (r *Runner) hookTimeout() string {
	return "--timeout=" + max(r.cfg.Timeout-r.cfg.Timeout/10, time.Second).Round(time.Second).String()
}

// Capabilities are what charts may ask about the cluster.
type Capabilities struct {
	Version string   // of Kubernetes; "": what helm was built with
	APIs    []string // group versions and kinds, as "apps/v1" and "apps/v1/Deployment"
}

// Render returns what the chart's templates make of the release's values, hooks included and tests left out, in YAML documents.
// Nobody is called. Terminal: the chart does not render.
func (r *Runner) Render(ctx context.Context, rel Release, of Capabilities, upgrade bool) ([]byte, error) {
	args := []string{"template", rel.Name, chartFile, "--namespace=" + rel.Namespace, "--dry-run=client", "--skip-tests"}
	if of.Version != "" {
		args = append(args, "--kube-version="+of.Version)
	}
	for some := range slices.Chunk(of.APIs, 500) { // an argument has its limit
		args = append(args, "--api-versions="+strings.Join(some, ","))
	}
	if upgrade {
		args = append(args, "--is-upgrade")
	}
	return r.run(ctx, job{
		doing: "render the chart of release " + rel.Name, args: args, chart: rel.Chart, set: rel.Set,
	})
}

// Install installs a release that there is not, and waits for nothing but its hooks. Terminal: there is one of the name, the chart
// does not render, the API server refuses an object, or a hook fails.
func (r *Runner) Install(ctx context.Context, a *Access, rel Release) error {
	return r.change(ctx, a, rel, "install", []string{"install", rel.Name, chartFile, "--server-side=true"})
}

// history is how many revisions of a release are kept.
const history = 10

// Upgrade brings a release that there is to a chart and its values: those given alone, or, with reuse, those that it has with those
// given in their place. Objects are brought to what the chart says whoever else has had a hand in them. Terminal as for Install,
// or there is no such release.
func (r *Runner) Upgrade(ctx context.Context, a *Access, rel Release, reuse bool) error {
	values := "--reset-values"
	if reuse {
		values = "--reuse-values"
	}
	return r.change(ctx, a, rel, "upgrade", []string{"upgrade", rel.Name, chartFile, "--server-side=true", "--force-conflicts", "--history-max=" + strconv.Itoa(history), values})
}

func (r *Runner) change(ctx context.Context, a *Access, rel Release, verb string, args []string) error {
	args = slices.Concat(args, []string{"--namespace=" + rel.Namespace, "--hide-notes", "--disable-openapi-validation", r.hookTimeout()}, rel.labels())
	_, err := r.run(ctx, job{doing: verb + " release " + rel.Name + " in namespace " + rel.Namespace, args: args, access: a, chart: rel.Chart, set: rel.Set})
	return err
}

// Rollback brings a release back to one of its revisions. Terminal: there is no such revision.
func (r *Runner) Rollback(ctx context.Context, a *Access, namespace, name string, revision int) error {
	_, err := r.run(ctx, job{
		doing: fmt.Sprintf("roll release %s in namespace %s back to revision %d", name, namespace, revision), access: a,
		args: []string{"rollback", name, strconv.Itoa(revision), "--namespace=" + namespace, "--server-side=true", "--force-conflicts", r.hookTimeout()},
	})
	return err
}

// Uninstall removes a release, its history included, and asks for its objects to be deleted, for whose end it does not wait.
// Without hooks, none are run. That there is no such release is no error.
func (r *Runner) Uninstall(ctx context.Context, a *Access, namespace, name string, hooks bool) error {
	args := []string{"uninstall", name, "--namespace=" + namespace, "--ignore-not-found", "--cascade=foreground", r.hookTimeout()}
	if !hooks {
		args = append(args, "--no-hooks")
	}
	_, err := r.run(ctx, job{doing: "uninstall release " + name + " in namespace " + namespace, args: args, access: a})
	return err
}

// Manifest returns the objects of a release's last revision, hooks left out, in YAML documents.
func (r *Runner) Manifest(ctx context.Context, a *Access, namespace, name string) ([]byte, error) {
	return r.get(ctx, a, namespace, name, "manifest")
}

// Hooks returns the hooks of a release's last revision, in YAML documents.
func (r *Runner) Hooks(ctx context.Context, a *Access, namespace, name string) ([]byte, error) {
	return r.get(ctx, a, namespace, name, "hooks")
}

func (r *Runner) get(ctx context.Context, a *Access, namespace, name, what string) ([]byte, error) {
	return r.run(ctx, job{
		doing: "read the " + what + " of release " + name + " in namespace " + namespace, access: a,
		args: []string{"get", what, name, "--namespace=" + namespace},
	})
}
