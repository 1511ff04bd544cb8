package vimsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a Cloud that listens.
type Server struct {
	// URL is the base of everything, AuthURL Keystone's v3 endpoint.
	URL, AuthURL string
	// Cloud is what is served.
	Cloud *Cloud

	http  *http.Server
	done  chan struct{}
	close sync.Once
}

// Serve makes a cloud and serves it on a TCP address; port 0 picks a free one.
// It ends when ctx does or Close is called. Errors are those of listening.
func Serve(ctx context.Context, addr string, cfg Config, log *slog.Logger) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	c := New(cfg, log)
	s := &Server{URL: "http://" + l.Addr().String(), Cloud: c, done: make(chan struct{})}
	s.AuthURL = s.URL + "/identity/v3"
	s.http = &http.Server{
		Handler: c.Handler(func() string { return s.URL }), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, s.shut)
	go func() {
		defer close(s.done)
		defer stop()
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.log.Error("vimsim stopped serving", "err", err)
		}
		c.Close()
	}()
	return s, nil
}

// shut cuts what hangs and every connection.
func (s *Server) shut() {
	s.close.Do(func() {
		s.Cloud.cancel(ErrClosed)
		_ = s.http.Close()
	})
}

// Close stops serving and waits for every background action to end.
func (s *Server) Close() {
	s.shut()
	<-s.done
}

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }
