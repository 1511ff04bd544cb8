package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// columnKind says how a filter's value is compared with a column.
type columnKind int

const (
	textColumn columnKind = iota
	uuidColumn            // values that are no UUID match nothing
	enumColumn            // upper case in the database
	timeColumn            // values that are no time match nothing
)

// column is where an attribute stands that has a column of its own.
type column struct {
	name string
	kind columnKind
	// ended is the column's twin that an index over ended op occs holds.
	ended string
	// digest says that equal values are found by their digests, since no index begins with the column.
	digest bool
}

type columns map[string]column

// Margins between the time that an op occ's id tells and when it started, and between that and when it ended; the indexes
// of the odd ones, beyond them, are by the same (migrations/000003).
const (
	idMargin  = 2 * time.Second
	endMargin = 10 * time.Minute

	oddStart = `NOT t.active AND abs(date_part('epoch', t.start_time - id_time(t.id))) > 2`
	oddEnd   = `NOT t.active AND t.ended_at - t.start_time NOT BETWEEN interval '0' AND interval '10 minutes'`
)

// selected is a filter compiled to SQL over a relation t. Values are parameters, of the args of whoever compiled it.
type selected struct {
	all    []requirement // hold of every row that is selected
	ended  []string      // hold too of those that have ended
	split  bool          // an index finds the ended rows, and the active ones are found apart from them
	window []string      // hold too of rows whose times are within the margins of their ids'
	odd    []string      // one of them holds of every other row
	none   bool          // nothing can match
}

// requirement is a condition in SQL, and what it comes to for rows that have ended when an index wants it otherwise.
type requirement struct {
	sql, ended string
	timed      bool // it is on a time
}

// compiler turns conditions into SQL.
type compiler struct {
	list *listing
	args []any
	out  selected
}

// arg adds a parameter and returns its place.
func (c *compiler) arg(v any, cast string) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args)) + "::" + cast
}

// add compiles one condition (SOL013 v2.6.1 §5.2): it holds when any value at its path meets it, a negative one when a
// value is there and none meets the positive one. Letters A to Z compare without case, numbers by what they count, times as
// times. A condition that cannot be met, for whatever reason, selects nothing; none is ever an error.
func (c *compiler) add(cond lcm.Condition) {
	for _, s := range slices.Concat(cond.Path, cond.Values) {
		if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) { // which are in no database
			c.out.none = true
			return
		}
	}
	if len(cond.Path) == 0 || len(cond.Values) == 0 || !slices.Contains(operators, cond.Op) {
		c.out.none = true
		return
	}
	col, direct := c.list.columns[strings.Join(cond.Path, "/")]
	if direct && !cond.Keys {
		c.direct(cond, col)
	} else {
		c.nested(cond)
	}
}

var operators = []string{"eq", "in", "neq", "nin", "gt", "gte", "lt", "lte", "cont", "ncont"}

var order = map[string]string{"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

// negative tells the operator that is negated, and whether op is a negation.
func negative(op string) (string, bool) {
	switch op {
	case "neq", "nin":
		return "in", true
	case "ncont":
		return "cont", true
	case "eq":
		return "in", false
	default:
		return op, false
	}
}

// direct compiles a condition on a column. A column that is empty is an attribute that is not there.
func (c *compiler) direct(cond lcm.Condition, col column) {
	op, not := negative(cond.Op)
	if col.kind == timeColumn {
		c.timed(cond, col, op, not)
		return
	}
	text, cast := `lower(nullif(`+col.name+`, '') COLLATE "C")`, "text"
	values := make([]string, 0, len(cond.Values))
	for _, v := range cond.Values {
		switch {
		case op != "in":
			v = lowerASCII(v)
		case col.kind == uuidColumn:
			if !validID(v) {
				continue
			}
		case col.kind == enumColumn:
			v = strings.ToUpper(v)
		default:
			v = lowerASCII(v)
		}
		values = append(values, v)
	}
	expr := text
	switch col.kind {
	case uuidColumn:
		text = col.name + "::text"
		if expr = text; op == "in" {
			expr, cast = col.name, "uuid"
		}
	case enumColumn:
		if op == "in" {
			expr = col.name
		}
	case textColumn, timeColumn:
	}
	switch {
	case op == "in" && len(values) == 0:
		if c.out.none = !not; not {
			c.require(col.name + " IS NOT NULL")
		}
	case op == "in" && col.digest && !not:
		digests := make([]int64, len(values))
		for i, v := range values {
			digests[i] = textDigest(pathOf(cond.Path), v)
		}
		if c.list.ends { // the digests of the active op occs are not there yet
			c.out.all = append(c.out.all, requirement{sql: expr + c.among(values, cast), ended: c.has(digests)})
			c.out.split = true
			return
		}
		c.require(c.has(digests))
	case op == "in":
		test := c.among(values, cast)
		if not {
			c.require("NOT (" + expr + test + ")")
			return
		}
		c.requireEnded(expr+test, col.ended, test)
	case op == "cont":
		test := "EXISTS (SELECT FROM unnest(" + c.arg(values, "text[]") + ") AS w WHERE strpos(" + text + ", w) > 0)"
		if not {
			test = text + " IS NOT NULL AND NOT " + test
		}
		c.require(test)
	default:
		c.require(c.orderedText(op, cond.Values[0], text))
	}
}

// among compares with one value, so that an index may give the rows in the order of ids, or with several.
func (c *compiler) among(values []string, cast string) string {
	if len(values) == 1 {
		return " = " + c.arg(values[0], cast)
	}
	return " = ANY(" + c.arg(values, cast+"[]") + ")"
}

func (c *compiler) require(sql string) { c.out.all = append(c.out.all, requirement{sql: sql}) }

// requireEnded requires sql, of ended rows by their own column if there is one.
func (c *compiler) requireEnded(sql, column, compared string) {
	r := requirement{sql: sql}
	if column != "" {
		r.ended, c.out.split = column+compared, true
	}
	c.out.all = append(c.out.all, r)
}

// timed compiles a condition on a time. What it says of the time says nearly the same of the id, by which rows are read.
func (c *compiler) timed(cond lcm.Condition, col column, op string, not bool) {
	var times []time.Time
	for _, v := range cond.Values {
		if at, ok := timeOf(v); ok {
			times = append(times, at)
		}
	}
	if len(times) == 0 && !not || op == "cont" {
		c.out.none = true
		return
	}
	var test string
	if op == "in" {
		test = " = ANY(" + c.arg(times, "timestamptz[]") + ")"
	} else {
		test = " " + order[op] + " " + c.arg(times[0], "timestamptz")
	}
	if not {
		c.require("NOT (" + col.name + test + ")")
		return
	}
	c.requireEnded(col.name+test, col.ended, test)
	c.out.all[len(c.out.all)-1].timed = true
	if !c.list.ends {
		return
	}
	early := idMargin
	c.out.split = true
	for _, odd := range map[bool][]string{false: {oddStart}, true: {oddStart, oddEnd}}[col.ended != ""] {
		if !slices.Contains(c.out.odd, odd) {
			c.out.odd = append(c.out.odd, odd)
		}
	}
	if col.ended != "" {
		early += endMargin
	}
	first, last := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	if op == "in" || op[0] == 'g' {
		c.out.window = append(c.out.window, "t.id >= "+c.arg(idAt(first.Add(-early)), "uuid"))
	}
	if op == "in" || op[0] == 'l' {
		c.out.window = append(c.out.window, "t.id <= "+c.arg(idAt(last.Add(idMargin+time.Millisecond)), "uuid"))
	}
}

// idAt is the least UUID of version 7's layout at a time.
func idAt(at time.Time) string {
	ms := min(max(at.UnixMilli(), 0), 1<<48-1)
	return fmt.Sprintf("%08x-%04x-0000-0000-000000000000", ms>>16, ms&0xffff)
}

// timeOf reads a time by RFC 3339, as attribute_time does in the database.
func timeOf(v string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, v)
	return at.Truncate(time.Microsecond), err == nil && at.Year() > 0
}

// nested compiles a condition on what stands in the body.
func (c *compiler) nested(cond lcm.Condition) {
	op, not := negative(cond.Op)
	const text = `lower((v #>> '{}') COLLATE "C")`
	exists := func(test string) string {
		return "EXISTS (SELECT FROM jsonb_path_query(t.body::jsonb, " + c.arg(jsonPath(cond), "jsonpath") + ") AS v WHERE " + test + ")"
	}
	values := make([]string, len(cond.Values))
	for i, v := range cond.Values {
		values[i] = lowerASCII(v)
	}
	met := func() string {
		switch op {
		case "in":
			return exists(c.equal(values, text))
		case "cont":
			return exists("EXISTS (SELECT FROM unnest(" + c.arg(values, "text[]") + ") AS w WHERE strpos(" + text + ", w) > 0)")
		default:
			return exists(c.ordered(op, cond.Values[0], text))
		}
	}
	digests := c.exact(cond, op, values)
	switch {
	case not:
		c.require(exists("true") + " AND NOT " + met())
		c.named(cond)
	case digests == nil:
		c.require(met())
		c.named(cond)
	case c.list.ends: // the digests of the active op occs are not there yet
		c.out.all = append(c.out.all, requirement{sql: met(), ended: c.has(digests)})
		c.out.split = true
	default:
		c.require(c.has(digests))
	}
}

// exact returns the digests of which a row has one if and only if it meets the condition; nil when there are none such.
func (c *compiler) exact(cond lcm.Condition, op string, values []string) []int64 {
	switch {
	case op != "in" || !c.list.digests:
		return nil
	case !cond.Keys:
		return probes(cond.Path, values)
	case !slices.Contains(callersNames, cond.Path[0]):
		return nil
	}
	digests := make([]int64, len(values))
	for i, v := range values {
		digests[i] = nameDigest(pathOf(cond.Path), v)
	}
	return digests
}

// named has the name's own digest find candidates, where names have digests.
func (c *compiler) named(cond lcm.Condition) {
	if last := len(cond.Path) - 1; last > 0 && !cond.Keys && slices.Contains(callersNames, cond.Path[0]) {
		c.candidates([]int64{nameDigest(pathOf(cond.Path[:last]), cond.Path[last])})
	}
}

// equal compares what is there with any of several values: numbers by what they count, the rest as texts.
func (c *compiler) equal(values []string, text string) string {
	var numbers []string
	for _, v := range values {
		if n, ok := plainNumber(v); ok {
			numbers = append(numbers, n)
		}
	}
	number := "false"
	if len(numbers) > 0 {
		number = "v::numeric = ANY(" + c.arg(numbers, "numeric[]") + ")"
	}
	return "CASE jsonb_typeof(v) WHEN 'number' THEN " + number + " ELSE " + text + " = ANY(" + c.arg(values, "text[]") + ") END"
}

// ordered compares the order of what is there with a value: numbers with numbers, texts as they order.
func (c *compiler) ordered(op, value, text string) string {
	number := "false"
	if n, ok := plainNumber(value); ok {
		number = "v::numeric " + order[op] + " " + c.arg(n, "numeric")
	}
	return "CASE jsonb_typeof(v) WHEN 'number' THEN " + number + " WHEN 'string' THEN " + c.orderedText(op, value, text) + " ELSE false END"
}

// orderedText compares the order of a text, in lower case, with a value's: as numbers or as times when both are such.
func (c *compiler) orderedText(op, value, text string) string {
	sign := " " + order[op] + " "
	texts := text + ` COLLATE "C"` + sign + c.arg(lowerASCII(value), "text")
	if n, ok := plainNumber(value); ok {
		return "coalesce(attribute_number(" + text + ")" + sign + c.arg(n, "numeric") + ", " + texts + ")"
	}
	if at, ok := timeOf(value); ok {
		return "coalesce(attribute_time(upper(" + text + "))" + sign + c.arg(at, "timestamptz") + ", " + texts + ")"
	}
	return texts
}

// jsonPath names the values of a condition as SQL/JSON path: arrays are descended into, of three in each other all.
func jsonPath(cond lcm.Condition) string {
	const scalar = ` ? (@.type() == "string" || @.type() == "number" || @.type() == "boolean")`
	var b strings.Builder
	b.WriteString("lax $")
	for _, name := range cond.Path {
		quoted, err := json.Marshal(name)
		if err != nil {
			panic("store: a string always marshals: " + err.Error())
		}
		b.WriteByte('.')
		b.Write(quoted)
		b.WriteString("[*][*][*]")
	}
	if cond.Keys {
		b.WriteString(` ? (@.type() == "object").keyvalue().key`)
	}
	return b.String() + scalar
}

// probes are the digests of values, as texts and as numbers.
func probes(path, values []string) []int64 {
	digests := make([]int64, 0, len(values))
	under := pathOf(path)
	for _, v := range values {
		digests = append(digests, textDigest(under, v))
		if n, ok := plainNumber(v); ok {
			digests = append(digests, numberDigest(under, n))
		}
	}
	return digests
}

// has tells whether a row has one of the digests.
func (c *compiler) has(digests []int64) string {
	operator := " && "
	if len(digests) == 1 {
		operator = " @> " // of which the planner's estimate is the better one
	}
	return "t.attributes" + operator + c.arg(digests, "bigint[]")
}

// candidates narrows the rows to those that have one of the digests.
func (c *compiler) candidates(digests []int64) {
	switch {
	case !c.list.digests:
	case c.list.ends:
		c.out.ended, c.out.split = append(c.out.ended, c.has(digests)), true
	default:
		c.require(c.has(digests))
	}
}
