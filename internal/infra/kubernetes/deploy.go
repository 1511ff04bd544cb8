package kubernetes

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// change is what becomes of a release.
type change struct {
	tag   string   // tells the step from the operation's others
	reuse bool     // the release is there: its values stay but for those of set, and so does its chart
	set   []string // besides what the request says when its values do not stay
	unmet bool     // the cluster is not as it is to be: that an earlier try has come to its end does not count
}

// ensure has helm bring a release to what it is to be, whatever an earlier try has left of it: what has been installed by half is
// removed first, what has been upgraded by half is rolled back. It returns what must be waited for before. Conflict: there is a
// release of the name that is not the instance's.
func (d *Driver) ensure(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, p *params, name string, to change) (string, error) {
	r := s.release(name)
	list, err := c.revisions(ctx, s.Namespace, name)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		if to.reuse {
			return "", lcm.Errorf(lcm.KindTerminal, "VIM %s: Helm release %s is not there any more in namespace %s", c.name, name, s.Namespace)
		}
		s.unnote(name)
		if wait, err := d.vacant(ctx, x, c, s, r); err != nil || wait != "" {
			return wait, err
		}
		return "", d.changeRelease(ctx, x, c, s, p, r, to, d.cfg.Helm.Install)
	}
	last := list[len(list)-1]
	if last.instance != x.Instance.ID {
		return "", lcm.Errorf(lcm.KindConflict, "Helm release %s exists in namespace %s of VIM %s and is not of this VNF instance: its Secret has no label %s=%s",
			name, s.Namespace, c.name, instanceLabel, x.Instance.ID)
	}
	access, err := c.access(ctx, x.Target)
	if err != nil {
		return "", err
	}
	stands := standing(list)
	switch {
	case last.status == statusDeployed && last.mark == markOf(x, to) && !to.unmet:
		return "", nil // an earlier try has come to its end
	case (stands == nil || strings.HasPrefix(last.status, goingPrefix)) && !to.reuse:
		if r.Since == "" { // what its hooks have left is known to be ours by that
			s.since(name, list[0].created)
			return "Helm release " + name + ", which an earlier try has installed by half, is to be removed", nil
		}
		if err := d.cfg.Helm.Uninstall(ctx, access, s.Namespace, name, false); err != nil {
			return "", c.helmSaid(err)
		}
		return "Helm release " + name + ", which an earlier try has installed by half, is being removed", nil
	case stands != nil && strings.HasPrefix(last.status, pendingPrefix):
		if wait, err := d.unhooked(ctx, c, s, r); err != nil || wait != "" {
			return wait, err
		}
		if err := d.cfg.Helm.Rollback(ctx, access, s.Namespace, name, stands.number); err != nil {
			return "", c.helmSaid(err)
		}
	}
	if wait, err := d.unhooked(ctx, c, s, r); err != nil || wait != "" {
		return wait, err
	}
	return "", d.changeRelease(ctx, x, c, s, p, r, to, func(ctx context.Context, a *helm.Access, rel helm.Release) error {
		return d.cfg.Helm.Upgrade(ctx, a, rel, to.reuse)
	})
}

// markOf names the step that makes a revision.
func markOf(x *lcm.Execution, to change) string { return x.Op.ID + "." + to.tag }

// vacant makes sure that helm finds nothing where a release's objects are to be: helm would say so too, but by then has made some.
// It returns what must be waited for.
func (d *Driver) vacant(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, r *release) (string, error) {
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.Release != r.Name {
			continue
		}
		live, err := c.get(ctx, o, s.Namespace)
		switch {
		case err != nil:
			return "", err
		case live == nil:
		case live.GetDeletionTimestamp() != nil:
			return o.title(s.Namespace) + " is being deleted", nil
		case !released(live, r.Name, s.Namespace), r.Since == "" && !o.kept(live):
			return "", lcm.Errorf(lcm.KindTerminal, "%s (%s) exists in VIM %s and is not of this VNF instance's Helm release %s", o.title(s.Namespace), o.Source, c.name, r.Name)
		}
	}
	return d.unhooked(ctx, c, s, r)
}

// unhooked makes sure that nothing of somebody else's is where a release's hooks are to be made: helm would delete it first, whosever
// it is. It returns what must be waited for. Conflict: there is something.
func (d *Driver) unhooked(ctx context.Context, c *cluster, s *infra, r *release) (string, error) {
	for n := range s.Hooks {
		o := &s.Hooks[n]
		if o.Release != r.Name || o.Once || o.Noted {
			continue
		}
		live, err := c.get(ctx, o, s.Namespace)
		switch {
		case err != nil:
			return "", err
		case live == nil:
		case live.GetDeletionTimestamp() != nil:
			return o.title(s.Namespace) + " is being deleted", nil
		case r.Since == "" || !o.young(live):
			return "", lcm.Errorf(lcm.KindConflict, "%s exists in VIM %s and is not of this VNF instance's Helm release %s, whose hook %s would take its place",
				o.title(s.Namespace), c.name, r.Name, o.Source)
		}
	}
	return "", nil
}

// changeRelease has helm change a release. Its chart is the one that is recorded.
func (d *Driver) changeRelease(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, p *params, r *release, to change, do func(context.Context, *helm.Access, helm.Release) error) error {
	ch, err := p.chartOf(r.Name)
	if err != nil {
		return err
	}
	got, err := d.archive(ctx, x, ch, r.Version)
	if err != nil {
		return err
	}
	if got.digest != r.Digest {
		if s.VnfdID != x.Instance.VnfdID {
			return lcm.Errorf(lcm.KindTerminal, "Helm release %s is of the chart of VNFD %s, and the instance has another VNFD now: heal it first", r.Name, s.VnfdID)
		}
		return lcm.Errorf(lcm.KindTerminal, "chart %s %s is not what it was when release %s was made of it", r.Chart, r.Version, r.Name)
	}
	set := to.set
	if !to.reuse {
		set = slices.Concat(ch.Parameters, to.set)
	}
	access, err := c.access(ctx, x.Target)
	if err != nil {
		return err
	}
	return c.helmSaid(do(ctx, access, helm.Release{
		Name: r.Name, Namespace: s.Namespace, Chart: got.raw, Set: set,
		Labels: map[string]string{instanceLabel: x.Instance.ID, opOccAnnotation: markOf(x, to)},
	}))
}

// helmSaid adds the VIM to what helm says is wrong. An API server that is being started forbids all.
func (c *cluster) helmSaid(err error) error {
	if err == nil || lcm.Is(err, lcm.KindCanceled) {
		return err
	}
	kind, said := lcm.KindOf(err), reason(err)
	if kind == lcm.KindTerminal && strings.Contains(said, " is forbidden: ") && !c.settled() {
		kind = lcm.KindRetryable
	}
	if kind == lcm.KindInternal {
		return err
	}
	return &lcm.Error{Kind: kind, Err: err, Detail: "VIM " + c.name + ": " + said}
}

// access is how helm reaches the VIM: as the driver does.
func (c *cluster) access(ctx context.Context, t *lcm.VimTarget) (*helm.Access, error) {
	checked, err := tlsOf(t)
	if err != nil {
		return nil, err
	}
	limits, err := t.Limits()
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: %w", c.name, err)
	}
	out := &helm.Access{
		Server: strings.TrimRight(t.AuthURL, "/"), Insecure: checked.InsecureSkipVerify, RequestsPerSecond: limits.RequestsPerSecond,
		Certificate: []byte(text(t.Auth, "client_cert")), Key: lcm.Secret(text(t.Auth, "client_key")),
	}
	if checked.RootCAs != nil {
		out.CA = []byte(text(t.Auth, "ssl_ca_cert"))
	}
	switch login := credentials(c.http.Transport).(type) {
	case *bearing:
		token, err := login.tokens.token(ctx)
		if err != nil {
			return nil, err
		}
		out.Token = lcm.Secret(token)
	case *basic:
		out.Username, out.Password = login.user, login.password
	}
	return out, nil
}

// credentials returns the part of a transport that adds the credentials, or what comes after it when there is none.
func credentials(rt http.RoundTripper) http.RoundTripper {
	for {
		switch t := rt.(type) {
		case *noting:
			rt = t.next
		case *probing:
			rt = t.next
		default:
			return rt
		}
	}
}

// deploy is the step that makes the VNF's releases, or brings them to what they are to be, and finds out what they consist of.
func (d *Driver) deploy(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, p *params) (lcm.Progress, error) {
	for w.Applied < len(s.Releases) {
		r := &s.Releases[w.Applied]
		sizes, err := p.sizes(x, s, r.Name)
		if err != nil {
			return lcm.Progress{}, err
		}
		wait, err := d.ensure(ctx, x, c, s, p, r.Name, change{tag: "apply", set: sizes})
		if err != nil || wait != "" {
			return d.applied(x, s, w, wait, err)
		}
		if err := c.dated(ctx, s, r.Name); err != nil {
			return lcm.Progress{}, err
		}
		w.Applied++
	}
	if err := d.adopt(ctx, x, c, s, w, p); err != nil {
		return lcm.Progress{}, err
	}
	return keep(x, s, w, lcm.Done())
}

// dated notes how old a release of ours is.
func (c *cluster) dated(ctx context.Context, s *infra, name string) error {
	if s.release(name).Since != "" {
		return nil
	}
	list, err := c.revisions(ctx, s.Namespace, name)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		s.since(name, list[0].created)
	}
	return nil
}

// adopt notes what the releases consist of, as helm says and as it is in the cluster, and gives their workloads the replicas that
// are recorded where no value of the chart does.
func (d *Driver) adopt(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, p *params) error {
	access, err := c.access(ctx, x.Target)
	if err != nil {
		return err
	}
	var items []item
	seen := map[string]string{}
	left := fresh()
	read := func(name string, get func(context.Context, *helm.Access, string, string) ([]byte, error)) ([]item, error) {
		raw, err := get(ctx, access, s.Namespace, name)
		if err != nil {
			return nil, c.helmSaid(err)
		}
		docs, err := left.parse("release "+name, raw)
		if err != nil {
			return nil, err
		}
		return c.identifyAll(ctx, docs, seen, func(i *item) error { return i.of(name, s.Namespace) }, false)
	}
	var hooks []object
	for n := range s.Releases {
		name := s.Releases[n].Name
		found, err := read(name, d.cfg.Helm.Manifest)
		if err != nil {
			return err
		}
		items = append(items, found...)
		if !slices.ContainsFunc(s.Hooks, func(o object) bool { return o.Release == name }) {
			continue
		}
		if found, err = read(name, d.cfg.Helm.Hooks); err != nil {
			return err
		}
		for _, i := range found {
			if err := c.noteHook(ctx, s, &i); err != nil {
				return err
			}
			hooks = append(hooks, i.object)
		}
	}
	if err := assign(items, x.Flavour, p.Mapping); err != nil {
		return err
	}
	sorted(items, func(i item) *object { return &i.object })
	after := infra{Namespace: s.Namespace, Releases: s.Releases, Hooks: hooks, VnfdID: s.VnfdID}
	for _, i := range items {
		o := i.object
		if was := s.find(&o); was != nil && was.Replicas != nil && o.Replicas != nil {
			o.Replicas = was.Replicas
		} else if err := replicasAt(x, &o); err != nil {
			return err
		}
		after.Objects = append(after.Objects, o)
	}
	for _, o := range s.Going {
		if after.find(&o) == nil {
			after.Going = append(after.Going, o)
		}
	}
	after.date()
	*s = after
	return d.meet(ctx, x, c, s, w)
}

// installing are the points of a release's life that are over once it is installed.
var installing = []string{"pre-install", "post-install", "test", "test-success", "test-failure", "crd-install"}

// noteHook has a hook that runs no more be known by what it has made: what comes there later is somebody else's.
func (c *cluster) noteHook(ctx context.Context, s *infra, i *item) error {
	i.Since = s.release(i.Release).Since
	for at := range strings.SplitSeq(i.GetAnnotations()[hookAnnotation], ",") {
		if !slices.Contains(installing, strings.TrimSpace(at)) {
			return nil
		}
	}
	if i.Once {
		return nil
	}
	if n := slices.IndexFunc(s.Hooks, func(o object) bool { return o.same(&i.object) && o.Noted }); n >= 0 {
		i.UID, i.Noted = s.Hooks[n].UID, true
		return nil
	}
	live, err := c.get(ctx, &i.object, s.Namespace)
	if err != nil {
		return err
	}
	if i.Noted = true; live != nil && i.young(live) {
		i.UID = string(live.GetUID())
	}
	return nil
}

// meet looks at all that the releases consist of, once, and corrects the replicas.
func (d *Driver) meet(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work) error {
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.Once {
			continue
		}
		live, err := c.get(ctx, o, s.Namespace)
		if err != nil {
			return err
		}
		if live == nil || !o.mine(live, s.Namespace, x.Instance.ID) {
			continue // its readiness tells
		}
		o.UID = string(live.GetUID())
		w.wrote(o.UID, live.GetResourceVersion())
		if o.Replicas == nil || *o.Replicas == unread {
			continue
		}
		wanted := *o.Replicas
		if stopped(x.Instance) {
			wanted = 0
		}
		if has, ok := replicasOf(live); ok && has != wanted {
			if err := c.setReplicas(ctx, x.Instance.ID, o, s.Namespace, wanted, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func replicasOf(u *unstructured.Unstructured) (int, bool) {
	n, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return int(n), found && err == nil
}

// byValues scales the workloads among list whose number is a value of a chart, and returns the others. Terminal: the chart does
// something else with the value.
func (d *Driver) byValues(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, list []*object) ([]*object, error) {
	if len(s.Releases) == 0 {
		return list, nil
	}
	p, err := paramsOf(x)
	if err != nil {
		return nil, err
	}
	tag := "scale"
	if x.Op.State == sol003.LcmOperationStateRollingBack {
		tag = "rollback"
	}
	var others, scaled []*object
	for _, o := range list {
		if p.valueOf(x, o.VDU) != "" && o.Release != "" && *o.Replicas != unread {
			scaled = append(scaled, o)
		} else {
			others = append(others, o)
		}
	}
	for n := range s.Releases {
		r := &s.Releases[n]
		if !slices.ContainsFunc(scaled, func(o *object) bool { return o.Release == r.Name }) {
			continue
		}
		sizes, err := p.sizes(x, s, r.Name)
		if err != nil {
			return nil, err
		}
		to := change{tag: tag, reuse: true, set: sizes}
		for _, o := range scaled {
			live, err := c.get(ctx, o, s.Namespace)
			if err != nil {
				return nil, err
			}
			if live != nil && o.Release == r.Name {
				has, _ := replicasOf(live)
				to.unmet = to.unmet || has != *o.Replicas
			}
		}
		wait, err := d.ensure(ctx, x, c, s, p, r.Name, to)
		if err == nil && wait != "" {
			err = lcm.Errorf(lcm.KindRetryable, "%s", wait)
		}
		if err != nil {
			return nil, &lcm.Error{Kind: lcm.KindOf(err), Err: err, Detail: "CNF Scale Failed with reason: " + reason(err)}
		}
	}
	for _, o := range scaled {
		live, err := c.get(ctx, o, s.Namespace)
		if err != nil {
			return nil, err
		}
		if live == nil || !o.mine(live, s.Namespace, x.Instance.ID) {
			return nil, lcm.Errorf(lcm.KindTerminal, "CNF Scale Failed with reason: %s of Helm release %s is not there any more", o.title(s.Namespace), o.Release)
		}
		if has, _ := replicasOf(live); has != *o.Replicas {
			return nil, lcm.Errorf(lcm.KindTerminal, "CNF Scale Failed with reason: %s of Helm release %s has %d replicas and not %d: the chart does not take them from %s",
				o.title(s.Namespace), o.Release, has, *o.Replicas, p.valueOf(x, o.VDU))
		}
		o.UID = string(live.GetUID())
		w.wrote(o.UID, live.GetResourceVersion())
	}
	return others, nil
}

// podsOfReleases has helm make the pods anew that are alone and have been removed: it makes what it does not find.
func (d *Driver) podsOfReleases(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work) (lcm.Progress, error) {
	p, err := paramsOf(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	lacking := map[string]bool{}
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.groupKind() != "Pod" || !affected(o, w) {
			continue
		}
		live, err := c.get(ctx, o, s.Namespace)
		if err != nil {
			return lcm.Progress{}, err
		}
		if live != nil && slices.ContainsFunc(w.Victims, func(v victim) bool { return v.UID == string(live.GetUID()) }) {
			return d.applied(x, s, w, "pod "+o.Name+" is being deleted", nil)
		}
		lacking[o.Release] = lacking[o.Release] || live == nil
	}
	for _, r := range s.Releases {
		if !lacking[r.Name] {
			continue
		}
		wait, err := d.ensure(ctx, x, c, s, p, r.Name, change{tag: "pods", reuse: true, unmet: true})
		if err != nil || wait != "" {
			return d.applied(x, s, w, wait, err)
		}
	}
	if err := d.meet(ctx, x, c, s, w); err != nil {
		return lcm.Progress{}, err
	}
	return keep(x, s, w, lcm.Done())
}
