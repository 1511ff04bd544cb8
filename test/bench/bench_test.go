package main

import (
	"bytes"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func TestParseStat(t *testing.T) {
	line := "4711 (post ) gres: (x) S 42 4711 4711 0 -1 4194304 1 2 3 4 250 50 700 300 20 0 1 0 12345 1 2"
	got, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if want := (procStat{parent: 42, own: 3, children: 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "1 (x) S 1", "1 x S 1 2", "1 (x) S a 1 1 0 0 0 0 0 0 0 1 1 1 1 0 0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestParseMemory(t *testing.T) {
	now, peak, err := parseMemory([]byte("Name:\tvnfm\nVmPeak:\t  999 kB\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n"))
	if err != nil || now != 1<<20 || peak != 2<<20 {
		t.Errorf("%d, %d, %v", now, peak, err)
	}
	for _, bad := range []string{"", "VmRSS:\tmuch\n", "VmHWM:\t 1 kB\n"} {
		if _, _, err := parseMemory([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestMachineBusy(t *testing.T) {
	got, err := machineBusy([]byte("cpu  100 200 300 9999 9999 400 500 600 0 0\ncpu0 1 1\n"))
	if err != nil || got != 21 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8 9", "cpu a 2 3 4 5 6 7 8"} {
		if _, err := machineBusy([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestCostPerOperation(t *testing.T) {
	at := time.Now()
	before := cpuTimes{at: at, server: 1, postgres: 1, self: 1, anyone: 10}
	after := cpuTimes{at: at.Add(time.Second), server: 1.5, postgres: 1.25, self: 1.25, anyone: 11 + 0.5*float64(runtime.NumCPU())}
	want := CPU{Server: 500, Postgres: 250, Client: 250, Others: 0.5}
	if diff := cmp.Diff(want, after.per(before, 1000)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(CPU{}, after.per(before, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestParsePgbench(t *testing.T) {
	const newer = `pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: commit.sql
number of transactions actually processed: 12834
number of failed transactions: 0 (0.000%)
latency average = 1.870 ms
initial connection time = 12.345 ms
tps = 4277.012345 (without initial connection time)
`
	const older = `number of transactions actually processed: 10
latency average = 2.000 ms
tps = 499.9 (including connections establishing)
tps = 500.5 (excluding connections establishing)
`
	for text, want := range map[string]Commits{
		newer: {Rate: 4277.012345, Latency: 1870 * time.Microsecond},
		older: {Rate: 500.5, Latency: 2 * time.Millisecond},
	} {
		got, n, err := parsePgbench(text)
		if err != nil || n == 0 || got != want {
			t.Errorf("%+v, %d, %v; want %+v", got, n, err, want)
		}
	}
	for _, bad := range []string{"", strings.Replace(newer, "transactions: 0", "transactions: 3", 1), strings.Replace(newer, "tps", "spt", 1)} {
		if _, _, err := parsePgbench(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestPgbenchScriptHasNoVariables(t *testing.T) {
	script := pgbenchScript()
	if m := regexp.MustCompile(`:[A-Za-z_0-9]`).FindString(script); m != "" {
		t.Errorf("pgbench would take %q for a variable", m)
	}
	if n := len(script); n < 700 || n > 1000 {
		t.Errorf("%d bytes", n)
	}
}

func TestPackageIsAVNFD(t *testing.T) {
	sub, err := packageFS()
	if err != nil {
		t.Fatal(err)
	}
	d, err := vnfd.Read(sub, "bench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, ok := d.Flavour("simple")
	if !ok || len(f.VDUs) != 1 {
		t.Errorf("flavour simple: %v, %+v", ok, f)
	}
	zip, err := packageZip()
	if err != nil || !bytes.HasPrefix(zip, []byte("PK")) {
		t.Errorf("%d bytes, %v", len(zip), err)
	}
}

func TestIDAt(t *testing.T) {
	if id, err := idAt("http://127.0.0.1:9/vnflcm/v1/vnf_instances/abc", instancesPath); err != nil || id != "abc" {
		t.Errorf("%q, %v", id, err)
	}
	for _, bad := range []string{"", "http://x/vnflcm/v1/vnf_instances/", "http://x/vnflcm/v1/vnf_instances/a/b", "http://x/other/a"} {
		if _, err := idAt(bad, instancesPath); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestOpOccEnded(t *testing.T) {
	for state, want := range map[sol003.LcmOperationState]string{
		sol003.LcmOperationStateStarting: "", sol003.LcmOperationStateProcessing: "", sol003.LcmOperationStateCompleted: "done",
		sol003.LcmOperationStateFailedTemp: "op occ o is FAILED_TEMP: why", sol003.LcmOperationStateRolledBack: "op occ o is ROLLED_BACK: why",
	} {
		done, err := (&opOcc{ID: "o", OperationState: state, Error: &sol003.ProblemDetails{Detail: "why"}}).ended()
		got := ""
		if done {
			got = "done"
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"-clients", "16, 1,16", "-only", "show|list", "-duration", "2s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 16}, o.clients); diff != "" {
		t.Error(diff)
	}
	if !o.wants("show") || o.wants("create") || o.wantsAny(machineParts) || !o.wantsAny(serverParts) || o.warm() != 500*time.Millisecond {
		t.Errorf("%+v", o)
	}
	if o, err := parseOptions(nil, io.Discard); err != nil || !o.wantsAny(machineParts) || !o.wants("waiting") {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"-clients=0", "-clients=a", "-clients=", "-duration=1ms", "-instances=5", "-only=(", "-only=nothing", "-waiting=-1", "-max-conns=1", "what"} {
		if _, err := parseOptions([]string{bad}, io.Discard); err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

func TestTheWordsOfNumbers(t *testing.T) {
	for got, want := range map[string]string{
		perSecond(0): "0", perSecond(999.6): "1 000", perSecond(123): "123", perSecond(1234567): "1 234 567",
		ms(1234 * time.Microsecond): "1.23 ms", ms(12345 * time.Microsecond): "12.3 ms", ms(1234 * time.Millisecond): "1234 ms",
		mb(59_960_000): "60.0 MB", ratio(0): "–", ratio(0.5): "0.50", percent(0.126): "13 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSummaryNamesWhatIsMissed(t *testing.T) {
	r := Report{Verdicts: []Verdict{
		atLeast("show, 16 clients", 9999, 10000, 1.5, again{}),
		atLeast("create, 16 clients", 4000, 4000, 0, again{}),
		atMost("p99", 30*time.Millisecond, 25*time.Millisecond, again{}),
	}}
	r.Verdicts[2].Others = 0.4
	var out bytes.Buffer
	r.summary(&out)
	want := `
Targets
  figure              measured       target  × pgbench  others
  show, 16 clients     9 999 /s  ≥ 10 000 /s       1.50     0 %  MISSED
  create, 16 clients   4 000 /s   ≥ 4 000 /s          –     0 %     met
  p99                   30.0 ms    ≤ 25.0 ms          –    40 %  MISSED
  1 of 3 met
  1 of them while other work used more than 10 % of the machine: on a quiet one they are better
`
	if diff := cmp.Diff(squeeze(want), squeeze(out.String())); diff != "" {
		t.Error(diff)
	}
}

// squeeze leaves one space where there are several: what is aligned how is TestTable's.
func squeeze(s string) string { return regexp.MustCompile(` +`).ReplaceAllString(s, " ") }

func TestActivityPrintsTheCommonest(t *testing.T) {
	a := activity{looks: 10, queries: map[string]int{"b": 2, "a": 2, "c": 15}, running: map[string]int{"c": 4}, waits: map[string]int{"CPU": 4, "IO:WALSync": 15}}
	var out bytes.Buffer
	a.print(&out)
	want := `    PostgreSQL: sessions at a statement, on average of 10 looks
       all  on CPU  (a statement that ends a transaction waits for the disk with it)
      1.50    0.40  c
      0.20    0.00  a
      0.20    0.00  b
     by what they wait for: IO:WALSync 1.50, CPU 0.40
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	(&activity{}).print(&out)
	if out.Len() > 0 {
		t.Errorf("of no looks: %q", out.String())
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table(&out, []string{"a", "µs", ""}, [][]string{{"first", "1", "x"}, {"é", "1 000", "yy"}})
	want := "  a         µs\n  first      1   x\n  é      1 000  yy\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var l tail
	if l.String() != "nothing" {
		t.Errorf("%q", l.String())
	}
	for range 10 {
		if _, err := io.WriteString(&l, strings.Repeat("a", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(&l, "the end\n")
	if s := l.String(); len(s) > tailBytes || !strings.HasSuffix(s, "the end") {
		t.Errorf("%d bytes, %q", len(s), s[len(s)-10:])
	}
}
