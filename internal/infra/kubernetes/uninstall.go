package kubernetes

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// uninstall has helm remove the releases that are the instance's. It returns what must be noted before it goes on, which those are,
// or waited for: helm says of a release that it cannot read that there is none, so that one is gone only once nothing is left of it.
func (d *Driver) uninstall(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work) (string, error) {
	hooks := true
	if x.Op.Operation == sol003.LcmOperationTypeTerminate {
		var req sol003.TerminateVnfRequest
		if err := x.Params(&req); err != nil {
			return "", err
		}
		hooks = req.TerminationType != sol003.TerminateVnfRequestTerminationTypeForceful
	}
	noted := ""
	for n := len(s.Releases) - 1; n >= 0; n-- {
		r := s.Releases[n]
		if w.Uninstalled[r.Name] || w.Unhelmed[r.Name] {
			continue
		}
		list, err := c.revisions(ctx, s.Namespace, r.Name)
		if err != nil {
			return "", err
		}
		switch {
		case len(list) == 0:
		case list[len(list)-1].instance != x.Instance.ID:
			x.Log.Info("a Helm release is not this VNF instance's and stays", "release", r.Name)
			s.since(r.Name, "")
		case r.Since == "":
			s.since(r.Name, list[0].created)
			noted = "Helm release " + r.Name + " is to be removed"
			continue
		default:
			if err := d.taking(ctx, x, c, s, r.Name); err != nil {
				return "", err
			}
			access, err := c.access(ctx, x.Target)
			if err != nil {
				return "", err
			}
			// What has never been there as a whole is not asked to take its leave.
			leave := hooks && standing(list) != nil
			if leave {
				if wait, err := d.unhooked(ctx, c, s, &r); err != nil || wait != "" {
					return wait, err
				}
			}
			if err := d.cfg.Helm.Uninstall(ctx, access, s.Namespace, r.Name, leave); err != nil {
				kind, e := c.unserved(ctx, s, r.Name)
				if lcm.Is(err, lcm.KindCanceled) || e != nil || kind == "" {
					return "", c.helmSaid(err)
				}
				x.Log.Warn("a Helm release is removed without helm, and its hooks are not run: the cluster does not know the kind of an object any more",
					"release", r.Name, "kind", kind, "error", reason(err))
				w.Unhelmed = with(w.Unhelmed, r.Name)
				continue
			}
			if list, err = c.revisions(ctx, s.Namespace, r.Name); err != nil {
				return "", err
			}
			if len(list) > 0 {
				noted = "Helm release " + r.Name + " is being uninstalled"
				continue
			}
		}
		w.Uninstalled = with(w.Uninstalled, r.Name)
	}
	return noted, nil
}

// unserved returns a kind of a release's objects that the cluster does not serve any more, "" when it serves all.
func (c *cluster) unserved(ctx context.Context, s *infra, name string) (string, error) {
	for _, o := range s.whole().Objects {
		if o.Release != name || o.Once {
			continue
		}
		c.forget(o.gvk())
		if _, err := c.kindOf(ctx, o.gvk()); errors.Is(err, errNoKind) {
			return o.groupKind(), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", nil
}

// deleteRevisions deletes what helm has kept of a release that is the instance's.
func (c *cluster) deleteRevisions(ctx context.Context, ns, name, instanceID string) error {
	ctx, cancel := c.call(ctx)
	defer cancel()
	secrets := c.resource(&object{Version: "v1", Resource: secretsResource, Namespaced: true}, ns)
	// Not all at once: the right to do so is another one.
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name + "," + instanceLabel + "=" + instanceID})
	if isGone(err) {
		return nil
	}
	for n := 0; err == nil && n < len(list.Items); n++ {
		if err = secrets.Delete(ctx, list.Items[n].GetName(), metav1.DeleteOptions{}); isGone(err) {
			err = nil
		}
	}
	if err != nil {
		return c.wrap("remove what is kept of release "+name+" in namespace "+ns, err)
	}
	return nil
}

// taking makes sure that the end of a release takes nothing with it that is not the VNF's. Terminal: it would.
func (d *Driver) taking(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, name string) error {
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.Release != name || o.groupKind() != definitionKind {
			continue
		}
		u, err := c.get(ctx, o, s.Namespace)
		if err != nil {
			return err
		}
		if u == nil || !o.mine(u, s.Namespace, x.Instance.ID) || o.kept(u) {
			continue
		}
		why, err := d.alone(ctx, x, c, s, o, u)
		if err != nil {
			return err
		}
		if why != "" {
			return lcm.Errorf(lcm.KindTerminal, "Helm release %s is not uninstalled: its %s would go, and %s", name, o.title(s.Namespace), why)
		}
	}
	return nil
}
