package quickstart

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Screen shows steps as they go: on a terminal one line that lives until the step is done, elsewhere a line a step.
type Screen struct {
	Out   io.Writer
	Live  bool // Out is a terminal
	Width int  // of titles

	mu    sync.Mutex
	title string
	note  string
	begun time.Time
	stop  chan struct{}
	wg    sync.WaitGroup
}

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Begin starts a step.
func (s *Screen) Begin(title string) {
	s.mu.Lock()
	s.title, s.note, s.begun, s.stop = title, "", time.Now(), make(chan struct{})
	s.mu.Unlock()
	if !s.Live {
		return
	}
	stop := s.stop
	s.wg.Go(func() {
		tick := time.NewTicker(80 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			s.mu.Lock()
			_, _ = fmt.Fprintf(s.Out, "\r\033[K  %c %-*s %5.1f s  %s", frames[n%len(frames)], s.Width, s.title, time.Since(s.begun).Seconds(), s.note)
			s.mu.Unlock()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
}

// Note says what the step is waiting for.
func (s *Screen) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = text
}

// Line shows a line that belongs to the step, above it.
func (s *Screen) Line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear := ""
	if s.Live {
		clear = "\r\033[K"
	}
	_, _ = fmt.Fprintf(s.Out, "%s    %s\n", clear, text)
}

// Done ends the step well.
func (s *Screen) Done(said string) { s.end("✓", said) }

// Fail ends the step badly.
func (s *Screen) Fail(err error) { s.end("✗", strings.TrimSpace(err.Error())) }

func (s *Screen) end(mark, said string) {
	close(s.stop)
	s.wg.Wait()
	clear := ""
	if s.Live {
		clear = "\r\033[K"
	}
	_, _ = fmt.Fprintf(s.Out, "%s  %s %-*s %5.1f s  %s\n", clear, mark, s.Width, s.title, time.Since(s.begun).Seconds(), said)
}
