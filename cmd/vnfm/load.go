package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
)

// load reads the configuration and makes the logger that it asks for.
func load(file string) (*config.Config, *slog.Logger, error) {
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return nil, nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, nil, fmt.Errorf("log.level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "json" {
		return cfg, slog.New(slog.NewJSONHandler(os.Stderr, opts)), nil
	}
	return cfg, slog.New(slog.NewTextHandler(os.Stderr, opts)), nil
}

// httpClient makes a client that trusts the CAs of a PEM file, or the system's when there is none.
func httpClient(caFile string, timeout time.Duration) (*http.Client, error) {
	tr := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if caFile != "" {
		pool, err := certificates(caFile)
		if err != nil {
			return nil, err
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: tr, Timeout: timeout}, nil
}

// certificates reads the CAs of a PEM file.
func certificates(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s holds no PEM certificate", file)
	}
	return pool, nil
}
