package lab

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// ErrJoined is the error of disturbing a control plane that is another process' own.
var ErrJoined = errors.New("the control plane is not ours to disturb: ask for one with StartOwn")

// Kill ends a daemon as kill -9 does and waits for its end. [Plane.Start] brings it back.
func (p *Plane) Kill(ctx context.Context, name string) error {
	id, err := p.disturbed(name)
	if err != nil {
		return err
	}
	if err := id.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return id.gone(ctx)
}

// Stop asks a daemon to end and waits for its end: an API server finishes what it is at.
func (p *Plane) Stop(ctx context.Context, name string) error {
	id, err := p.disturbed(name)
	if err != nil {
		return err
	}
	return id.end(ctx, time.Minute)
}

// Start starts a daemon that was ended, at the address that it had, and returns when it is ready.
func (p *Plane) Start(ctx context.Context, name string) error {
	if p.joined {
		return ErrJoined
	}
	return p.launch(ctx, name, true)
}

// Restart kills a daemon and starts it again.
func (p *Plane) Restart(ctx context.Context, name string) error {
	if err := p.Kill(ctx, name); err != nil {
		return err
	}
	return p.Start(ctx, name)
}

// Pause has a daemon do nothing: its port takes connections, and nobody answers. [Plane.Resume] ends that.
func (p *Plane) Pause(ctx context.Context, name string) error {
	id, err := p.disturbed(name)
	if err != nil {
		return err
	}
	if err := id.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return await(ctx, name+" to stand still", func() (bool, error) { return id.still() })
}

// Resume lets a daemon go on that was paused.
func (p *Plane) Resume(name string) error {
	id, err := p.disturbed(name)
	if err != nil {
		return err
	}
	return id.signal(syscall.SIGCONT)
}

func (p *Plane) disturbed(name string) (identity, error) {
	d, ok := p.ds[name]
	switch {
	case p.joined:
		return identity{}, ErrJoined
	case !ok:
		return identity{}, fmt.Errorf("a control plane has no %q", name)
	}
	return d.identity(), nil
}
