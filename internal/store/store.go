// Package store keeps everything in PostgreSQL: it implements the ports of the domain, of VNF packages, of registered
// VIMs and of the API's reads with pgx, one file an aggregate; it seals secrets, inserts River's triggers in the
// transactions that need them, and keeps the list of living nodes.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver for golang-migrate
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/migrations"
)

// Store is the database. Its zero value is not usable: Open it.
type Store struct {
	Pool   *pgxpool.Pool
	River  *river.Client[pgx.Tx] // inserts triggers; Work adds a client that also works on them
	Sealer *Sealer
	Log    *slog.Logger
	Now    func() time.Time

	queryBudget time.Duration

	node  atomic.Pointer[string] // the id under which this process is a node
	voice *announcer
}

// Config says how to open a Store.
type Config struct {
	URL      string
	MaxConns int32 // 0: pgx's default
	// QueryBudget bounds what one query of a filtered list may take; 5 s when 0.
	QueryBudget time.Duration
	Sealer      *Sealer
	Log         *slog.Logger
}

// Open connects to the database; the schema must be there (see Migrate). It fails when the server does not answer.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if cfg.MaxConns > 0 {
		pc.MaxConns = cfg.MaxConns
	}
	pc.ConnConfig.RuntimeParams["application_name"] = "vnfm"
	// Lookups are by key; a plan made once for all values is right and saves the planning.
	pc.ConnConfig.RuntimeParams["jit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if cfg.QueryBudget <= 0 {
		cfg.QueryBudget = defaultQueryBudget
	}
	s := &Store{Pool: pool, Sealer: cfg.Sealer, Log: cfg.Log, queryBudget: cfg.QueryBudget, Now: func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }}
	// This client inserts, and makes waiting jobs due; its own announcements are all but off, since the announcer makes them.
	s.River, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: riverLog(cfg.Log), FetchCooldown: 24 * time.Hour, FetchPollInterval: 24 * time.Hour})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	s.voice = newAnnouncer(ctx, s)
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() {
	s.voice.close()
	s.Pool.Close()
}

// Migrate brings the schema and River's tables to this program's version. Nodes that start together take turns.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	db, err := sql.Open("pgx/v5", url)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer db.Close()
	driver, err := migratepgx.WithInstance(db, &migratepgx.Config{})
	if err != nil {
		return fmt.Errorf("migrate: connect to the database: %w", err)
	}
	src, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", driver)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	upErr := m.Up()
	if srcErr, dbErr := m.Close(); upErr == nil {
		upErr = errors.Join(srcErr, dbErr)
	}
	if upErr != nil && !errors.Is(upErr, migrate.ErrNoChange) {
		return fmt.Errorf("migrate the schema: %w", upErr)
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	return migrateRiver(ctx, pool, log)
}

// migrateRiver runs River's migrations under a lock of ours, since they take none.
func migrateRiver(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1, 0)", lockClass); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	defer func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1, 0)", lockClass)
	}()
	rm, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: riverLog(log)})
	if err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	if _, err := rm.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}

// inTx runs f in a transaction, committed when f returns nil.
func inTx(ctx context.Context, pool *pgxpool.Pool, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, f)
}

// seal returns the envelope of plain for its place.
func (s *Store) seal(table, id, field string, plain []byte) ([]byte, error) {
	return s.Sealer.Seal(table, id, field, plain)
}

// unseal opens an envelope that stands in its place.
func (s *Store) unseal(table, id, field string, envelope []byte) ([]byte, error) {
	return s.Sealer.Open(table, id, field, envelope)
}

// validID tells whether an id may be in the database at all: other ids are not found without asking.
func validID(id string) bool {
	if len(id) != 36 {
		return false
	}
	// Ids are opaque texts: another spelling of the same UUID is another id, and none of ours.
	return uuid.Validate(id) == nil && id == strings.ToLower(id)
}

// The errors of PostgreSQL that callers tell apart.
const (
	uniqueViolation     = "23505"
	foreignKeyViolation = "23503"
)

// violates tells whether err is PostgreSQL's error code, and of which constraint.
func violates(err error, code string) (constraint string, ok bool) {
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == code {
		return pe.ConstraintName, true
	}
	return "", false
}

// breaks tells whether err is the violation of a named unique index or constraint.
func breaks(err error, unique string) bool {
	name, ok := violates(err, uniqueViolation)
	return ok && name == unique
}

// foreignKey tells whether err is the violation of a foreign key.
func foreignKey(err error) bool {
	_, ok := violates(err, foreignKeyViolation)
	return ok
}

// nullable is nil for an empty text, which stands in no column of ours.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// riverLog keeps River's own chatter out of the log unless it matters.
func riverLog(log *slog.Logger) *slog.Logger {
	if log == nil {
		log = slog.Default()
	}
	return slog.New(minLevel{log.Handler(), slog.LevelWarn})
}

// minLevel is a slog.Handler that lets nothing below its level pass.
type minLevel struct {
	slog.Handler
	level slog.Level
}

func (h minLevel) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}
func (h minLevel) WithAttrs(a []slog.Attr) slog.Handler {
	return minLevel{h.Handler.WithAttrs(a), h.level}
}
func (h minLevel) WithGroup(n string) slog.Handler { return minLevel{h.Handler.WithGroup(n), h.level} }

var (
	_ lcm.Store = (*Store)(nil)
)
