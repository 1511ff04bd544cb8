// Package storetest gives tests a Store on a real PostgreSQL: one private server a test binary, one database a test.
package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

var (
	once    sync.Once
	server  *privatepg.Server
	dir     string
	failure error
	counter atomic.Int64
)

const template = "vnfm_template"

// Main runs a test binary's tests and takes the private server down after them; call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stop the private PostgreSQL:", err)
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// start brings up the server with a template database that is migrated once.
func start() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if dir, failure = os.MkdirTemp("", "vnfmpg"); failure != nil {
		return
	}
	if failure = os.Chmod(dir, 0o755); failure != nil { // the server runs as an unprivileged user
		return
	}
	if server, failure = privatepg.Start(ctx, privatepg.Options{Dir: dir + "/pg", Unsafe: true, MaxConnections: 400, StartTimeout: 10 * time.Minute}); failure != nil {
		return
	}
	url, err := server.NewDatabase(ctx, template)
	if err != nil {
		failure = err
		return
	}
	failure = store.Migrate(ctx, url, Log())
}

// URL makes a fresh, migrated database, dropped when the test ends, and returns its URL.
func URL(t testing.TB) string {
	t.Helper()
	once.Do(start)
	if failure != nil {
		t.Fatalf("private PostgreSQL: %v", failure)
	}
	ctx := context.Background()
	name := fmt.Sprintf("test_%d", counter.Add(1))
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatalf("connect to the private PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	ident := pgx.Identifier{name}.Sanitize()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+ident+" TEMPLATE "+pgx.Identifier{template}.Sanitize()); err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			return
		}
		defer func() { _ = conn.Close(ctx) }()
		_, _ = conn.Exec(ctx, "DROP DATABASE "+ident+" WITH (FORCE)")
	})
	cfg, err := pgx.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", name, cfg.Host, cfg.Port, cfg.User)
}

// Open opens a Store on a fresh database.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), store.Config{URL: URL(t), Sealer: Sealer(t), Log: Log()})
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Sealer returns a Sealer with a fixed key.
func Sealer(t testing.TB) *store.Sealer {
	t.Helper()
	s, err := store.NewSealer(1, map[uint32][]byte{1: []byte("a key of 32 bytes for tests only")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Log returns a logger that shows errors only.
func Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
