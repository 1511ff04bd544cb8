// Package servertls is the TLS of a listener whose certificate, key and client CAs are files that may change while it
// serves.
package servertls

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// ClientCertificates says what is asked of clients.
type ClientCertificates int

// What may be asked of clients.
const (
	NotAsked ClientCertificates = iota
	IfGiven                     // a certificate is verified if a client shows one
	Required                    // without one there is no connection
)

// Config names the files, all PEM.
type Config struct {
	Cert, Key string             // the server's chain and its key
	ClientCA  string             // the CAs of client certificates; "" with NotAsked
	Clients   ClientCertificates // what is asked of clients
	Log       *slog.Logger
}

// Files is the listener's TLS as the files say it now. Make one with New.
type Files struct {
	cfg     Config
	current atomic.Pointer[loaded]
}

// loaded is what one state of the files gives.
type loaded struct {
	digest [sha256.Size]byte
	tls    *tls.Config
}

// New reads the files. Errors: one cannot be read, or holds no certificate or key.
func New(cfg Config) (*Files, error) {
	f := &Files{cfg: cfg}
	text, digest, err := f.read()
	if err != nil {
		return nil, err
	}
	first, err := f.parse(text, digest)
	if err != nil {
		return nil, err
	}
	f.current.Store(first)
	return f, nil
}

// TLS returns the configuration of a listener: each connection is served by what the files said last.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current.Load().tls, nil },
	}
}

// protocols are what a client may choose of (ALPN).
var protocols = []string{"h2", "http/1.1"}

// Watch looks every so often whether the files have changed, until ctx ends. Files that cannot be used change nothing,
// and that is logged once for each state of them.
func (f *Files) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	complaint := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := f.Reload()
		switch {
		case err != nil && err.Error() != complaint:
			complaint = err.Error()
			f.cfg.Log.Error("the files of tls have changed and cannot be used; the old ones stay in use", "error", err)
		case err == nil:
			complaint = ""
		}
		if changed {
			f.cfg.Log.Info("the files of tls have changed and are in use", "cert", f.cfg.Cert)
		}
	}
}

// Reload looks whether the files have changed and, if so, has new connections use them. When they cannot be used nothing
// changes.
func (f *Files) Reload() (changed bool, err error) {
	text, digest, err := f.read()
	if err != nil || digest == f.current.Load().digest {
		return false, err
	}
	next, err := f.parse(text, digest)
	if err != nil {
		return false, err
	}
	f.current.Store(next)
	return true, nil
}

// texts are the files' contents.
type texts struct{ cert, key, clientCA []byte }

func (f *Files) read() (t texts, digest [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, file := range []struct {
		name string
		into *[]byte
	}{{f.cfg.Cert, &t.cert}, {f.cfg.Key, &t.key}, {f.cfg.ClientCA, &t.clientCA}} {
		if file.name == "" {
			continue
		}
		if *file.into, err = os.ReadFile(file.name); err != nil {
			return t, digest, fmt.Errorf("read a file of tls: %w", err)
		}
		one := sha256.Sum256(*file.into)
		_, _ = h.Write(one[:]) // never fails (hash.Hash)
	}
	copy(digest[:], h.Sum(nil))
	return t, digest, nil
}

func (f *Files) parse(t texts, digest [sha256.Size]byte) (*loaded, error) {
	pair, err := tls.X509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert %s and tls.key %s: %w", f.cfg.Cert, f.cfg.Key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{pair}}
	if f.cfg.Clients != NotAsked {
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(t.clientCA) {
			return nil, fmt.Errorf("tls.client_ca %s: %w", f.cfg.ClientCA, errors.New("it holds no PEM certificate"))
		}
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		if f.cfg.Clients == Required {
			cfg.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	// Sessions of the files before are not resumed: their clients may have been verified by CAs that are gone.
	var ticket [32]byte
	_, _ = rand.Read(ticket[:]) // never fails (crypto/rand)
	cfg.SetSessionTicketKeys([][32]byte{ticket})
	return &loaded{digest: digest, tls: cfg}, nil
}
