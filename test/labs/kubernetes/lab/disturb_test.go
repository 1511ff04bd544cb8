package lab

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// TestDisturbed goes through what may befall a control plane, on one of its own, step by step.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	issuer := NewIssuer(t)
	p := StartOwn(t, Options{APIServer: issuer.Flags()})
	ctx := within(t)
	ns := p.Namespace(t, "disturbed")
	deploy(t, p.Client, ns, "web", 2)
	awaitDeployed(t, p.Client, ns, "web", 2)

	t.Run("joined", func(t *testing.T) {
		joined, err := Join(ctx, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if !joined.Joined() || p.Joined() {
			t.Error("who has joined is mixed up")
		}
		if _, err := joined.Client.AppsV1().Deployments(ns).Get(ctx, "web", get); err != nil {
			t.Error(err)
		}
		for what, err := range map[string]error{
			"kill": joined.Kill(ctx, APIServer), "start": joined.Start(ctx, APIServer), "pause": joined.Pause(ctx, APIServer),
		} {
			if !errors.Is(err, ErrJoined) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := joined.Close(); err != nil || !p.ds[APIServer].identity().alive() {
			t.Errorf("leaving it ended it (%v)", err)
		}
	})

	t.Run("OpenID Connect", func(t *testing.T) { testBelieved(t, p, issuer) })

	t.Run("API server killed", func(t *testing.T) {
		if err := p.Kill(ctx, APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Client.AppsV1().Deployments(ns).Get(ctx, "web", get); !utilnet.IsConnectionRefused(err) {
			t.Errorf("an API server that is not there: %v", err)
		}
		if _, err := Join(ctx, p.Dir); !errors.Is(err, ErrNotUp) {
			t.Errorf("join one whose API server is killed: %v", err)
		}
		if err := p.Start(ctx, APIServer); err != nil {
			t.Fatal(err)
		}
		scale(t, p.Client, ns, "web", 4)
		awaitDeployed(t, p.Client, ns, "web", 4)
	})

	t.Run("API server paused", func(t *testing.T) {
		if err := p.Pause(ctx, APIServer); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := p.Client.AppsV1().Deployments(ns).Get(short, "web", get); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an API server that does not answer: %v", err)
		}
		if err := p.Resume(APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Client.AppsV1().Deployments(ns).Get(ctx, "web", get); err != nil {
			t.Error(err)
		}
	})

	t.Run("controllers, scheduler and nodes restarted", func(t *testing.T) {
		for _, name := range []string{Controllers, Scheduler, Nodes} {
			if err := p.Restart(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		scale(t, p.Client, ns, "web", 3)
		awaitDeployed(t, p.Client, ns, "web", 3)
	})

	t.Run("a node down and up", func(t *testing.T) {
		for _, step := range []struct {
			body string
			want corev1.ConditionStatus
		}{
			{`{"metadata":{"annotations":{"` + NodeDown + `":"true"}}}`, corev1.ConditionFalse},
			{`{"metadata":{"annotations":{"` + NodeDown + `":null}}}`, corev1.ConditionTrue},
		} {
			nodes := p.Client.CoreV1().Nodes()
			if _, err := nodes.Patch(ctx, "node-1", types.MergePatchType, []byte(step.body), patch); err != nil {
				t.Fatal(err)
			}
			err := await(ctx, "node-1 to be Ready="+string(step.want), func() (bool, error) {
				n, err := nodes.Get(ctx, "node-1", get)
				if err != nil {
					return false, err
				}
				for _, c := range n.Status.Conditions {
					if c.Type == corev1.NodeReady {
						return c.Status == step.want, nil
					}
				}
				return false, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("unknown daemon", func(t *testing.T) {
		if p.Kill(ctx, "kubelet") == nil || p.Start(ctx, "kubelet") == nil {
			t.Error("a daemon that there is not was found")
		}
	})

	t.Run("down", func(t *testing.T) {
		all, err := Statuses(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if !s.Running {
				t.Errorf("%s does not run", s.Name)
			}
		}
		if err := Down(ctx, p.Dir); err != nil {
			t.Fatal(err)
		}
		for _, d := range p.ds {
			if d.identity().alive() {
				t.Errorf("%s runs still", d.name)
			}
		}
		if _, err := Join(ctx, p.Dir); !errors.Is(err, ErrNotUp) {
			t.Errorf("join one that is down: %v", err)
		}
		if _, err := Statuses(filepath.Join(p.Dir, "nowhere")); !errors.Is(err, ErrNotUp) {
			t.Errorf("the status of nothing: %v", err)
		}
	})
}
