package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Commits is what pgbench says that this machine's PostgreSQL can do: one durable commit of one row a transaction.
type Commits struct {
	Clients  int           `json:"clients"`
	Rate     float64       `json:"perSecond"`
	Latency  time.Duration `json:"meanNanos"`
	Postgres float64       `json:"postgresMicros"` // CPU a commit
	Others   float64       `json:"others"`
}

const pgbenchSchema = `
CREATE TABLE commits (
	id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	project_id text        NOT NULL,
	vnfd_id    text        NOT NULL,
	body       json        NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX commits_project ON commits (project_id, created_at);
CREATE INDEX commits_vnfd ON commits (vnfd_id, created_at)`

// pgbenchScript inserts a row as large as a VNF instance's. pgbench takes a colon before a letter for a variable, so
// none may stand so in the body.
func pgbenchScript() string {
	body := `{"id": "2f6e7a80-7c43-4b8a-9f0e-5d8c2a1b3e47", "vnfInstanceName": "` + strings.Repeat("x", 640) + `"}`
	return "INSERT INTO commits (project_id, vnfd_id, body) VALUES ('default', '7f1d3f0e-52c4-4b0e-9a3e-1c1f5a0b8e21', '" + body + "');\n"
}

// findPgbench looks beside the server's binaries, then in PATH.
func findPgbench(serverBin string) (string, error) {
	beside := filepath.Join(serverBin, "pgbench")
	if st, err := os.Stat(beside); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
		return beside, nil
	}
	bin, err := exec.LookPath("pgbench")
	if err != nil {
		return "", fmt.Errorf("pgbench is neither in %s nor in PATH; install it (apt-get install postgresql postgresql-contrib)", serverBin)
	}
	return bin, nil
}

// pgbench is a prepared run of the program.
type pgbench struct {
	bin, url, script string
	postgres         int // the postmaster's process id
}

func preparePgbench(ctx context.Context, bin, url, dir string, postgres int) (*pgbench, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("prepare pgbench's database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, pgbenchSchema); err != nil {
		return nil, fmt.Errorf("prepare pgbench's database: %w", err)
	}
	script := filepath.Join(dir, "commit.sql")
	if err := os.WriteFile(script, []byte(pgbenchScript()), 0o600); err != nil {
		return nil, fmt.Errorf("write pgbench's script: %w", err)
	}
	return &pgbench{bin: bin, url: url, script: script, postgres: postgres}, nil
}

// runOnOneThread runs a child from a thread that stays as long as it does: the kernel ends the child with the thread.
func runOnOneThread(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

// run measures with a number of clients. The schema is made fresh each time the tool runs, so runs start alike.
func (p *pgbench) run(ctx context.Context, clients int, length time.Duration) (Commits, error) {
	seconds := max(1, int(length.Round(time.Second)/time.Second))
	// Two threads are as many as drive 32 clients; a thread a client would be measured instead of the server.
	cmd := exec.CommandContext(ctx, p.bin, "-n", "-M", "prepared", "-f", p.script, "-c", strconv.Itoa(clients),
		"-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(seconds), p.url)
	cmd.SysProcAttr = childAttr()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	before := cpuNow(0, p.postgres)
	err := runOnOneThread(cmd)
	after := cpuNow(0, p.postgres)
	if err != nil {
		return Commits{}, fmt.Errorf("pgbench with %d clients: %w: %s", clients, err, strings.TrimSpace(said.String()))
	}
	c, transactions, err := parsePgbench(out.String())
	if err != nil {
		return Commits{}, fmt.Errorf("pgbench with %d clients: %w in %q", clients, err, out.String())
	}
	cost := after.per(before, transactions)
	c.Clients, c.Postgres, c.Others = clients, cost.Postgres, cost.Others
	return c, nil
}

var (
	tpsLine         = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \((?:without initial connection time|excluding connections establishing)\)`)
	latencyLine     = regexp.MustCompile(`(?m)^latency average = ([0-9.]+) ms`)
	transactionLine = regexp.MustCompile(`(?m)^number of transactions actually processed: ([0-9]+)`)
	failedLine      = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+)`)
)

// parsePgbench reads the summary that pgbench prints (PostgreSQL 13 and newer).
func parsePgbench(out string) (c Commits, transactions int, err error) {
	number := func(re *regexp.Regexp) float64 {
		m := re.FindStringSubmatch(out)
		if m == nil {
			err = errors.Join(err, fmt.Errorf("no line like %s", re))
			return 0
		}
		v, convErr := strconv.ParseFloat(m[1], 64)
		err = errors.Join(err, convErr)
		return v
	}
	c.Rate = number(tpsLine)
	c.Latency = time.Duration(number(latencyLine) * float64(time.Millisecond))
	transactions = int(number(transactionLine))
	if m := failedLine.FindStringSubmatch(out); m != nil && m[1] != "0" {
		err = errors.Join(err, fmt.Errorf("%s failed transactions", m[1]))
	}
	if err == nil && (c.Rate <= 0 || transactions == 0) {
		err = errors.New("no transactions")
	}
	return c, transactions, err
}
