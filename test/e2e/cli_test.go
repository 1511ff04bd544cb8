package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// missingClient is said when there is no client to test with.
const missingClient = "the real client is missing: these tests need the Debian packages python3-openstackclient and python3-tackerclient (apt-get install python3-openstackclient python3-tackerclient)"

// slots let two clients run at a time: each takes a CPU for most of a second before it says its first byte.
var slots = make(chan struct{}, 2)

// result is what one run of the client has left.
type result struct {
	args     []string
	out, err string
	code     int
}

// openstack runs the real client and returns what it said, whatever its exit code.
func (l *lab) openstack(ctx context.Context, t *testing.T, args ...string) result {
	t.Helper()
	return l.openstackAs(ctx, t, l.osEnv, args...)
}

// openstackAs is openstack with other OS_… variables.
func (l *lab) openstackAs(ctx context.Context, t *testing.T, osEnv []string, args ...string) result {
	t.Helper()
	path, err := l.client, error(nil)
	if path == "" {
		if path, err = exec.LookPath("/usr/bin/openstack"); err != nil {
			if path, err = exec.LookPath("openstack"); err != nil {
				t.Fatal(missingClient)
			}
		}
		slots <- struct{}{}
		defer func() { <-slots }()
	}
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the test's own arguments
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + l.Dir, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore"}, osEnv...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := cmd.Run()
	var exit *exec.ExitError
	if runErr != nil && !errors.As(runErr, &exit) {
		t.Fatalf("openstack %s: %v", strings.Join(args, " "), runErr)
	}
	r := result{args: args, out: out.String(), err: errOut.String(), code: cmd.ProcessState.ExitCode()}
	if strings.Contains(r.err, "is not an openstack command") {
		t.Fatal(missingClient)
	}
	l.said.add(r.out + r.err)
	return r
}

// ok runs the client, which must succeed without a word on standard error, and returns its output.
func (l *lab) ok(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	r := l.openstack(ctx, t, args...)
	if r.code != 0 || strings.TrimSpace(r.err) != "" {
		t.Fatalf("openstack %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// says runs the client, which must succeed and print the line.
func (l *lab) says(ctx context.Context, t *testing.T, line string, args ...string) {
	t.Helper()
	if out := l.ok(ctx, t, args...); strings.TrimSpace(out) != line {
		t.Errorf("openstack %s prints %q, want %q", strings.Join(args, " "), out, line)
	}
}

// refused runs the client, which must fail with exit code 1 and a message that has all the parts.
func (l *lab) refused(ctx context.Context, t *testing.T, parts []string, args ...string) {
	t.Helper()
	r := l.openstack(ctx, t, args...)
	if r.code != 1 {
		t.Errorf("openstack %s: exit code %d, want 1\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			t.Errorf("openstack %s says %q, want it to name %q", strings.Join(args, " "), r.err, p)
		}
	}
	if strings.Contains(r.err, "tackerFault") || strings.Contains(r.err, "Traceback") {
		t.Errorf("openstack %s could not read the error: %q", strings.Join(args, " "), r.err)
	}
}

// fields is a table of the kind Field | Value.
type fields struct {
	labels []string // in their order
	values map[string]string
}

// show runs a command that prints one object.
func (l *lab) show(ctx context.Context, t *testing.T, args ...string) fields {
	t.Helper()
	return parseFields(t, l.ok(ctx, t, args...))
}

func parseFields(t *testing.T, out string) fields {
	t.Helper()
	rows := parseTable(t, out)
	if len(rows) == 0 || !cmp.Equal(rows[0], []string{"Field", "Value"}) {
		t.Fatalf("not a table of fields:\n%s", out)
	}
	f := fields{values: map[string]string{}}
	for _, r := range rows[1:] {
		f.labels = append(f.labels, r[0])
		f.values[r[0]] = r[1]
	}
	return f
}

// json decodes the value of a field.
func (f fields) json(t *testing.T, label string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.values[label]), into); err != nil {
		t.Fatalf("field %s is no JSON (%v): %s", label, err, f.values[label])
	}
}

// want compares fields with what they are to be; the labels must be exactly those of the keys.
func (f fields) want(t *testing.T, what string, want map[string]string) {
	t.Helper()
	for label, value := range want {
		if got, ok := f.values[label]; ok && value != anything && got != value {
			t.Errorf("%s: field %s is %q, want %q", what, label, got, value)
		}
	}
	labels := make([]string, 0, len(want))
	for label := range want {
		labels = append(labels, label)
	}
	if diff := cmp.Diff(sorted(labels), f.labels); diff != "" {
		t.Errorf("%s: the fields, in this order (- want, + got):\n%s", what, diff)
	}
}

// anything stands for a value that is looked at apart.
const anything = "\x00any"

// list runs a command that prints a list, which must have the columns, and returns its rows by column.
func (l *lab) list(ctx context.Context, t *testing.T, columns []string, args ...string) []map[string]string {
	t.Helper()
	out := l.ok(ctx, t, args...)
	if strings.TrimSpace(out) == "" {
		return nil
	}
	rows := parseTable(t, out)
	if diff := cmp.Diff(columns, rows[0]); diff != "" {
		t.Fatalf("openstack %s: the columns (- want, + got):\n%s", strings.Join(args, " "), diff)
	}
	var list []map[string]string
	for _, r := range rows[1:] {
		row := map[string]string{}
		for n, c := range columns {
			row[c] = r[n]
		}
		list = append(list, row)
	}
	return list
}

// parseTable reads a table as PrettyTable draws it; the first row is the header. A line whose first cell is empty goes on
// with the row before it: no first cell of the client's tables is ever empty.
func parseTable(t *testing.T, out string) [][]string {
	t.Helper()
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[0], "+-") {
		t.Fatalf("not a table:\n%s", out)
	}
	var edges []int
	for n, r := range lines[0] {
		if r == '+' {
			edges = append(edges, n)
		}
	}
	var rows [][]string
	for _, line := range lines {
		if strings.HasPrefix(line, "+-") {
			continue
		}
		runes := []rune(line)
		if len(runes) != edges[len(edges)-1]+1 {
			t.Fatalf("a line of the table has another width: %q", line)
		}
		cells := make([]string, len(edges)-1)
		for n := range cells {
			cells[n] = strings.TrimRight(string(runes[edges[n]+2:edges[n+1]-1]), " ")
		}
		if cells[0] != "" {
			rows = append(rows, cells)
			continue
		}
		last := rows[len(rows)-1]
		for n := range cells {
			if cells[n] != "" {
				last[n] += "\n" + cells[n]
			}
		}
	}
	return rows
}

// file writes a parameter file and returns its path.
func (l *lab) file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// jsonFile is file with a value as JSON.
func (l *lab) jsonFile(t *testing.T, name string, v map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return l.file(t, name, raw)
}
