package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is everything that was measured, as -json writes it. What was not measured is absent.
type Report struct {
	Begun      time.Time   `json:"begun"`
	Took       float64     `json:"tookSeconds"`
	Machine    Machine     `json:"machine"`
	MaxConns   int         `json:"databaseMaxConns"`
	Pgbench    []Commits   `json:"pgbench,omitempty"`
	Start      *Start      `json:"start,omitempty"`
	Memory     []Memory    `json:"memory,omitempty"`
	Create     []Load      `json:"create,omitempty"`
	Show       []Load      `json:"show,omitempty"`
	List       []Load      `json:"list,omitempty"`
	OneByOne   *OneByOne   `json:"oneByOne,omitempty"`
	Operations []Operation `json:"operations,omitempty"`
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Notified   *Notified   `json:"notified,omitempty"`
	Verdicts   []Verdict   `json:"verdicts"`
}

// Start is how long the server takes from exec until it says that it is ready.
type Start struct {
	Fresh time.Duration `json:"emptyDatabaseNanos"` // with all migrations
	Again Latency       `json:"readyDatabase"`
}

// Memory is what the server holds at some point.
type Memory struct {
	When string `json:"when"`
	RSS  int64  `json:"rssBytes"`
	Peak int64  `json:"peakBytes"`
}

// OneByOne is the way of single operations on the instant VIM, when the system does nothing else.
type OneByOne struct {
	Server Latency `json:"stateEnteredTimeMinusStartTime"`
	Client Latency `json:"requestToCompleted"`
	Others float64 `json:"others"`
}

// Operation is a load of whole LCM operations.
type Operation struct {
	Clients   int     `json:"clients"`
	Count     int     `json:"count"`
	Accepted  Load    `json:"accepted"`
	Whole     float64 `json:"wholePerSecond"`
	Completed Latency `json:"acceptToCompleted"`
	CPU       CPU     `json:"cpuPerOperation"`
	OfPgbench float64 `json:"ofPgbench,omitempty"`
}

// Waiting is how showing an instance fares before, while and after operations wait for a slow VIM. The ratio is that of
// the p99 while they do to the mean of the others.
type Waiting struct {
	Count     int     `json:"count"`
	Before    Load    `json:"before"`
	During    Load    `json:"during"`
	After     Load    `json:"after"`
	Ratio     float64 `json:"p99Ratio"`
	RSSBefore int64   `json:"rssBeforeBytes"`
	RSSDuring int64   `json:"rssDuringBytes"`
}

// Verdict is a figure beside its target.
type Verdict struct {
	Figure    string  `json:"figure"`
	Measured  string  `json:"measured"`
	Target    string  `json:"target"`
	OfPgbench float64 `json:"ofPgbench,omitempty"`
	// Others is the share of the machine that processes outside of the measurement used.
	Others  float64 `json:"others"`
	Met     bool    `json:"met"`
	Profile string  `json:"profile,omitempty"`

	again again
}

// again says how the load of a figure is repeated for a profile.
type again struct {
	key     string // loads with the same key are profiled once
	profile string // which profile; none if empty
	prepare repeat // what must be there before, if not nil
	load    repeat
}

// atLeast is the verdict on a rate.
func atLeast(figure string, l float64, target float64, ofPgbench float64, a again) Verdict {
	return Verdict{Figure: figure, Measured: perSecond(l) + " /s", Target: "≥ " + perSecond(target) + " /s", OfPgbench: ofPgbench, Met: l >= target, again: a}
}

// beside adds how busy the rest of the machine was.
func (v Verdict) beside(others float64) Verdict {
	v.Others = others
	return v
}

// atMost is the verdict on a time.
func atMost(figure string, d, target time.Duration, a again) Verdict {
	return Verdict{Figure: figure, Measured: ms(d), Target: "≤ " + ms(target), Met: d <= target, again: a}
}

// table writes aligned columns: the first to the left, the others to the right.
func table(w io.Writer, header []string, rows [][]string) {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for n, cell := range row {
			width[n] = max(width[n], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) {
		var b strings.Builder
		b.WriteString("  ")
		for n, cell := range row {
			pad := strings.Repeat(" ", width[n]-utf8.RuneCountInString(cell))
			if n == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(header)
	for _, row := range rows {
		line(row)
	}
}

var loadHeader = []string{"clients", "requests/s", "p50", "p99", "max", "× pgbench", "server µs/op", "PostgreSQL µs/op", "load tool µs/op", "others"}

func loadRow(l Load) []string {
	return append([]string{fmt.Sprint(l.Clients), perSecond(l.Rate), ms(l.Latency.P50), ms(l.Latency.P99), ms(l.Latency.Max), ratio(l.OfPgbench)}, cpuCells(l.CPU)...)
}

func cpuCells(c CPU) []string {
	return []string{fmt.Sprintf("%.0f", c.Server), fmt.Sprintf("%.0f", c.Postgres), fmt.Sprintf("%.0f", c.Client), percent(c.Others)}
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", f*100) }

func ratio(f float64) string {
	if f == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", f)
}

// ms writes a duration in milliseconds, with as many digits as matter.
func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 10:
		return fmt.Sprintf("%.1f ms", v)
	default:
		return fmt.Sprintf("%.2f ms", v)
	}
}

func mb(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// perSecond writes a rate with a space between thousands.
func perSecond(r float64) string {
	text := fmt.Sprintf("%.0f", r)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}

// quiet is the share of the machine that others may use without a figure being doubted.
const quiet = 0.1

// summary writes every figure that has a target beside it.
func (r *Report) summary(w io.Writer) {
	_, _ = fmt.Fprintln(w, "\nTargets")
	var rows [][]string
	missed, disturbed := 0, 0
	for _, v := range r.Verdicts {
		said := "met"
		if !v.Met {
			said = "MISSED"
			missed++
		}
		if v.Others > quiet {
			disturbed++
		}
		rows = append(rows, []string{v.Figure, v.Measured, v.Target, ratio(v.OfPgbench), percent(v.Others), said})
	}
	table(w, []string{"figure", "measured", "target", "× pgbench", "others", ""}, rows)
	_, _ = fmt.Fprintf(w, "  %d of %d met\n", len(r.Verdicts)-missed, len(r.Verdicts))
	if disturbed > 0 {
		_, _ = fmt.Fprintf(w, "  %d of them while other work used more than %s of the machine: on a quiet one they are better\n", disturbed, percent(quiet))
	}
}
