package kubernetes

import (
	"context"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// uninstall has helm remove the releases that are the instance's. It returns what must be noted before it goes on: which those are.
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
		if w.Uninstalled[r.Name] {
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
			if err := d.cfg.Helm.Uninstall(ctx, access, s.Namespace, r.Name, hooks && standing(list) != nil); err != nil {
				return "", c.helmSaid(err)
			}
		}
		w.Uninstalled = with(w.Uninstalled, r.Name)
	}
	return noted, nil
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
