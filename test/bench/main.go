// Command bench measures the VNF manager on the machine that it runs on: the built server as a child process, over a
// private PostgreSQL with fsync on, driven over HTTP on the same cores. In one run it prints what the machine itself
// can do (fdatasync, pgbench's commits), what the server does, each figure beside its target, and for each rate or
// latency that misses its target the profile that shows why.
//
// Loads are closed loops of keep-alive clients, unless they are said to come at a fixed rate. Beside latencies stands
// what one operation cost in CPU time of the server, of PostgreSQL and of this tool, and what share of the machine
// others used meanwhile; rates of runs in which others were busy compare to nothing.
//
//	go run ./test/bench
//	go run ./test/bench -only 'show|list' -instances 100000 -duration 10s
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	duration   time.Duration
	clients    []int
	instances  int
	operations int
	waiting    int
	maxConns   int
	only       *regexp.Regexp
	json       string
	dir        string
}

// parts are what -only chooses from.
var (
	machineParts = []string{"fsync", "pgbench"}
	subjectParts = []string{"memory", "show", "list", "create", "latency", "operations", "waiting", "notifications"} // need instances
	serverParts  = append([]string{"start"}, subjectParts...)
	parts        = append(machineParts, serverParts...)
)

// wants tells whether a part is to be measured.
func (o options) wants(part string) bool { return o.only == nil || o.only.MatchString(part) }

// wantsAny tells whether one of the parts is to be measured.
func (o options) wantsAny(parts []string) bool { return slices.ContainsFunc(parts, o.wants) }

// warm is how long a load runs before it is measured.
func (o options) warm() time.Duration { return min(time.Second, o.duration/4) }

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	var clients, only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long each load is measured")
	f.StringVar(&clients, "clients", "1,8,16,32", "numbers of concurrent clients")
	f.IntVar(&o.instances, "instances", 10000, "VNF instances that are there when showing and listing is measured")
	f.IntVar(&o.operations, "operations", 5000, "LCM operations of each load of whole operations")
	f.IntVar(&o.waiting, "waiting", 2000, "operations that wait for a slow VIM; 0 for none")
	f.IntVar(&o.maxConns, "max-conns", 32, "the server's database.max_conns")
	f.StringVar(&only, "only", "", "regexp of what to measure: "+strings.Join(parts, ", "))
	f.StringVar(&o.json, "json", "", "file to write all figures to as JSON")
	f.StringVar(&o.dir, "dir", "", "folder, on a disk, to make the temporary one of the database in")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q?", f.Arg(0))
	}
	for text := range strings.SplitSeq(clients, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 128 {
			return o, fmt.Errorf("-clients: %q is not a number from 1 to 128", text)
		}
		o.clients = append(o.clients, n)
	}
	slices.Sort(o.clients)
	o.clients = slices.Compact(o.clients)
	switch {
	case o.duration < time.Second:
		return o, errors.New("-duration: at least 1s")
	case o.instances < 100:
		return o, errors.New("-instances: at least 100, a page")
	case o.operations < 1 || o.waiting < 0:
		return o, errors.New("-operations and -waiting: not below 1 and 0")
	case o.maxConns < 4 || o.maxConns > 150:
		return o, errors.New("-max-conns: from 4 to 150")
	}
	if only != "" {
		var err error
		if o.only, err = regexp.Compile("^(?:" + only + ")$"); err != nil {
			return o, fmt.Errorf("-only: %w", err)
		}
		if !slices.ContainsFunc(parts, o.only.MatchString) {
			return o, fmt.Errorf("-only: %q is none of %s", only, strings.Join(parts, ", "))
		}
	}
	return o, nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	o, err := parseOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	// Less of our own garbage collection on the cores that we share with what we measure.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := workDir(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	begun := time.Now()
	b := &bench{opts: o, dir: dir, out: os.Stdout, note: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}}
	b.report.Begun = begun.UTC()
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.run(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
	b.report.Took = time.Since(begun).Seconds()
	b.printf("\ndone in %.0f s\n", b.report.Took)
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.report, "", "  ")
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return os.WriteFile(o.json, append(text, '\n'), 0o644)
}

// workDir makes the folder that everything is kept in, on a disk if there is one: what is in memory says nothing about
// commits. PostgreSQL's user must be able to pass through it.
func workDir(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
		if os.Getenv("TMPDIR") == "" && fileSystem(parent) == "tmpfs" {
			if st, err := os.Stat("/var/tmp"); err == nil && st.IsDir() {
				parent = "/var/tmp"
			}
		}
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", fmt.Errorf("make a folder to work in: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "vnfm-bench-")
	if err != nil {
		return "", fmt.Errorf("make a folder to work in: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("make a folder to work in: %w", err)
	}
	return dir, nil
}
