package openstack

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// signals are those that this process is about to send, by op occ. Heat does not tell one signal from another, and one sent
// twice scales twice: each is recorded in the operation's work first, and sent by the run after that. A run that finds one
// recorded and not here cannot know whether it has been sent (by a process that died, or that has got no answer), and looks
// for its effect before another is sent. The zero value is ready.
type signals struct {
	mu sync.Mutex
	at map[string]time.Time
}

// forgetAfter is how long a signal is kept that nobody sends.
const forgetAfter = time.Hour

// mean takes up the signal that is recorded as asked for at that time.
func (s *signals) mean(opOcc string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]time.Time{}
	}
	maps.DeleteFunc(s.at, func(_ string, old time.Time) bool { return at.Sub(old) > forgetAfter })
	s.at[opOcc] = at
}

// meant tells whether the recorded signal has not been sent.
func (s *signals) meant(opOcc string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.at[opOcc]
	return ok && is.Equal(at)
}

// sent forgets an operation's signal.
func (s *signals) sent(opOcc string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, opOcc)
}

// signalOnce records that a policy is to be signalled, and in the next run signals it. One that is not answered may have
// been taken: it counts as sent.
func (d *Driver) signalOnce(ctx context.Context, x *lcm.Execution, c *cloud, w *work, s *scaling, step, policy string, v *sight,
) (lcm.Progress, error) {
	if !s.Asked.by(step, x) || !d.signals.meant(x.Op.ID, s.Asked.At) {
		s.Asked = asked{Step: step, Try: x.Begun, At: x.Now(), Members: len(v.members)}
		d.signals.mean(x.Op.ID, s.Asked.At)
		return lcm.Wait(d.cfg.PollMin, "%s of stack %s is about to be signalled", policy, v.top.Name), saveWork(x, w)
	}
	x.Log.Info("a scaling policy is signalled", "stack", v.top.ID, "policy", policy, "members", len(v.members))
	d.signals.sent(x.Op.ID)
	err := c.signal(ctx, v.top, policy)
	switch {
	case !lcm.Is(err, lcm.KindRetryable):
		return lcm.Done(), err
	case untaken(err):
		d.signals.mean(x.Op.ID, s.Asked.At)
		return lcm.Progress{}, err
	}
	s.Asked.At, s.Refused = x.Now(), detail(err)
	return lcm.Wait(d.until(x, max(againOf(err), time.Second)), "%s", s.Refused), saveWork(x, w)
}

// untaken tells whether a call that failed has surely not been taken: it was not made, or was refused.
func untaken(err error) bool {
	var uncalled *uncalledError
	var dial *net.OpError
	status := statusOf(err)
	return errors.As(err, &uncalled) || errors.As(err, &dial) && dial.Op == "dial" ||
		status >= http.StatusBadRequest && status < http.StatusInternalServerError
}
