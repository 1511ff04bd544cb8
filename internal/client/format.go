package client

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// FormatOptions are the output options that every show and list command has.
type FormatOptions struct {
	// Format is table, json, yaml or value; csv for lists and shell for single resources only.
	Format string
	// Columns to keep, by label; all when empty.
	Columns []string
	// MaxWidth bounds the width of a table; 0 is no bound.
	MaxWidth int
	// FitWidth bounds it by TermWidth, the width of the terminal (0 when there is none).
	FitWidth  bool
	TermWidth int
	// PrintEmpty prints the header of an empty list.
	PrintEmpty bool
	// NoIndent writes JSON in one line.
	NoIndent bool
	// Prefix goes before the variable names of shell output.
	Prefix string
	// Quote is csv's: all, minimal, none or nonnumeric.
	Quote string
	// SortColumns orders a list; SortDescending turns the order round.
	SortColumns    []string
	SortDescending bool
}

// Formats returns the formats that a list, or the show of a single resource, can be written in.
func Formats(single bool) []string {
	if single {
		return []string{"json", "shell", "table", "value", "yaml"}
	}
	return []string{"csv", "json", "table", "value", "yaml"}
}

// Format writes a table. Errors are an unknown format or unknown columns, and those of the writer.
func Format(w io.Writer, t Table, o FormatOptions) error {
	if !t.Single {
		t.Sort(o.SortColumns, o.SortDescending)
	}
	t, err := t.Select(o.Columns)
	if err != nil {
		return err
	}
	var b strings.Builder
	switch o.Format {
	case "table", "":
		formatTable(&b, t, o)
	case "json":
		formatJSON(&b, t, o)
	case "yaml":
		formatYAML(&b, t)
	case "value":
		formatValue(&b, t)
	case "csv":
		formatCSV(&b, t, o)
	case "shell":
		formatShell(&b, t, o)
	default:
		return fmt.Errorf("unknown output format %q", o.Format)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func object(columns []string, row []Cell) *Object {
	o := NewObject()
	for i, c := range columns {
		o.Set(c, row[i].Value)
	}
	return o
}

func formatJSON(b *strings.Builder, t Table, o FormatOptions) {
	indent := 2
	if o.NoIndent {
		indent = 0
	}
	if t.Single {
		b.WriteString(pyJSON(object(t.Columns, t.Rows[0]), indent) + "\n")
		return
	}
	list := []any{}
	for _, r := range t.Rows {
		list = append(list, object(t.Columns, r))
	}
	b.WriteString(pyJSON(list, indent) + "\n")
}

func formatValue(b *strings.Builder, t Table) {
	sep := " "
	if t.Single {
		sep = "\n"
	}
	for _, r := range t.Rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = c.plain()
		}
		b.WriteString(strings.Join(cells, sep) + "\n")
	}
}

func formatCSV(b *strings.Builder, t Table, o FormatOptions) {
	line := func(n int, cell func(int) (string, bool)) {
		parts := make([]string, n)
		for i := range n {
			text, number := cell(i)
			parts[i] = csvField(text, number, o.Quote)
		}
		b.WriteString(strings.Join(parts, ",") + "\n")
	}
	line(len(t.Columns), func(i int) (string, bool) { return t.Columns[i], false })
	for _, r := range t.Rows {
		line(len(r), func(i int) (string, bool) {
			c := r[i]
			if c.Value == nil && !c.Complex {
				return "", false
			}
			switch c.Value.(type) {
			case json.Number, bool:
				return c.plain(), !c.Complex
			}
			return c.plain(), false
		})
	}
}

func csvField(text string, number bool, quote string) string {
	quoted := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	switch quote {
	case "all":
		return quoted
	case "minimal":
		if strings.ContainsAny(text, "\",\r\n") {
			return quoted
		}
		return text
	case "none":
		return regexp.MustCompile(`[",\r\n\\]`).ReplaceAllStringFunc(text, func(s string) string { return `\` + s })
	}
	if number {
		return text
	}
	return quoted
}

var shellName = strings.NewReplacer(" ", "_", ":", "_", "-", "_")

func formatShell(b *strings.Builder, t Table, o FormatOptions) {
	for i, c := range t.Columns {
		cell := t.Rows[0][i]
		text := cell.plain()
		if _, isText := cell.Value.(string); isText || cell.Complex {
			text = strings.ReplaceAll(text, `"`, `\"`)
		}
		fmt.Fprintf(b, "%s%s=\"%s\"\n", o.Prefix, shellName.Replace(strings.ToLower(c)), text)
	}
}

// formatTable draws borders the way PrettyTable does.
func formatTable(b *strings.Builder, t Table, o FormatOptions) {
	header, rows, right := t.Columns, [][]string{}, make([]bool, len(t.Columns))
	minWidth := 8
	if t.Single {
		header, right, minWidth = []string{"Field", "Value"}, make([]bool, 2), 16
		for i, c := range t.Columns {
			rows = append(rows, []string{cleanCell(c), cleanCell(t.Rows[0][i].human())})
		}
	} else {
		for n, r := range t.Rows {
			row := make([]string, len(r))
			for i, c := range r {
				row[i] = cleanCell(c.human())
				if n == 0 {
					right[i] = c.rightAligned()
				}
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 && !(o.PrintEmpty && !t.Single) {
		b.WriteByte('\n')
		return
	}
	limit := o.MaxWidth
	if limit <= 0 && o.FitWidth {
		limit = o.TermWidth
	}
	widths := columnWidths(header, rows)
	if limit > 0 {
		shrink(header, rows, widths, limit, minWidth)
	}
	// A header follows its column: numbers are to the right, and an empty table's header is in the middle.
	drawLine(b, widths)
	drawRow(b, header, widths, right, len(rows) == 0)
	drawLine(b, widths)
	for _, r := range rows {
		drawRow(b, r, widths, right, false)
	}
	if len(rows) > 0 {
		drawLine(b, widths)
	}
}

func cleanCell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", " ")
}

func columnWidths(header []string, rows [][]string) []int {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = textWidth(h)
	}
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], textWidth(c))
		}
	}
	return widths
}

func drawLine(b *strings.Builder, widths []int) {
	for _, w := range widths {
		b.WriteString("+" + strings.Repeat("-", w+2))
	}
	b.WriteString("+\n")
}

func drawRow(b *strings.Builder, row []string, widths []int, right []bool, center bool) {
	lines := make([][]string, len(row))
	height := 1
	for i, c := range row {
		lines[i] = strings.Split(c, "\n")
		height = max(height, len(lines[i]))
	}
	for n := range height {
		for i := range row {
			text := ""
			if n < len(lines[i]) {
				text = lines[i][n]
			}
			pad := strings.Repeat(" ", max(0, widths[i]-textWidth(text)))
			switch {
			case center:
				// An odd blank goes before the text when its length is even, and behind it when odd.
				half := len(pad) / 2
				if len(pad)%2 == 1 && textWidth(text)%2 == 0 {
					half++
				}
				b.WriteString("| " + pad[:half] + text + pad[half:] + " ")
			case right[i]:
				b.WriteString("| " + pad + text + " ")
			default:
				b.WriteString("| " + text + pad + " ")
			}
		}
		b.WriteString("|\n")
	}
}

// textWidth is the number of terminal cells of a text's widest line.
func textWidth(s string) int {
	widest := 0
	for _, line := range strings.Split(s, "\n") {
		n := 0
		for _, r := range line {
			switch {
			case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || unicode.IsControl(r):
			case r >= 0x1100 && isWide(r):
				n += 2
			default:
				n++
			}
		}
		widest = max(widest, n)
	}
	return widest
}

func isWide(r rune) bool {
	k := width.LookupRune(r).Kind()
	return k == width.EastAsianWide || k == width.EastAsianFullwidth
}

// shrink wraps the cells of wide columns until the table fits a limit: columns at or below an equal share keep their
// width, the others share what is left, the last one getting the rest; none gets less than minWidth.
func shrink(header []string, rows [][]string, widths []int, limit, minWidth int) {
	total := 1
	for _, w := range widths {
		total += w + 3
	}
	if total <= limit || len(header) == 0 {
		return
	}
	usable := max(0, limit-1-3*len(header))
	share := usable / len(header)
	var wide []int
	left := usable
	for i, w := range widths {
		if w <= share {
			left -= w
		} else {
			wide = append(wide, i)
		}
	}
	if len(wide) == 0 {
		return
	}
	each := left / len(wide)
	for n, i := range wide {
		w := max(minWidth, each)
		if n == len(wide)-1 {
			w = max(minWidth, left)
		}
		left -= each
		w = max(min(widths[i], w), textWidth(header[i])) // headers are not broken
		widths[i] = w
		for _, r := range rows {
			r[i] = wrap(r[i], w)
		}
	}
}

// wrap breaks the lines of a text at blanks and after hyphens between letters, and a word longer than a line where the
// line is full, or after a hyphen before that.
func wrap(s string, w int) string {
	var out []string
	for _, line := range strings.Split(s, "\n") {
		if textWidth(line) <= w {
			out = append(out, line)
			continue
		}
		out = append(out, wrapLine(chunks(line), w)...)
	}
	return strings.Join(out, "\n")
}

func wrapLine(words []string, w int) []string {
	var out []string
	for len(words) > 0 {
		if blank(words[0]) && len(out) > 0 { // no line but the first begins with blanks
			words = words[1:]
			continue
		}
		var cur []string
		n := 0
		for len(words) > 0 && n+textWidth(words[0]) <= w {
			cur, n, words = append(cur, words[0]), n+textWidth(words[0]), words[1:]
		}
		if len(words) > 0 && textWidth(words[0]) > w && (n < w || len(cur) == 0) {
			head, rest := breakWord(words[0], w-n, len(cur) == 0)
			if head != "" {
				cur = append(cur, head)
			}
			words = words[1:]
			if rest != "" {
				words = append([]string{rest}, words...)
			}
		}
		if len(cur) > 0 && blank(cur[len(cur)-1]) {
			cur = cur[:len(cur)-1]
		}
		if len(cur) > 0 {
			out = append(out, strings.Join(cur, ""))
		}
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// breakWord cuts a word so that its head fits a space, after the last hyphen in it if there is one. With some the head
// has a letter even if that is too wide.
func breakWord(word string, space int, some bool) (string, string) {
	runes := []rune(word)
	end, n := 0, 0
	for end < len(runes) {
		if n += textWidth(string(runes[end])); n > space {
			break
		}
		end++
	}
	if some {
		end = max(end, 1)
	}
	for i := end - 1; i > 0; i-- {
		if runes[i] == '-' {
			if strings.Trim(string(runes[:i]), "-") != "" {
				end = i + 1
			}
			break
		}
	}
	return string(runes[:end]), string(runes[end:])
}

// chunks splits a line into runs of blanks and words, and words after a hyphen that joins two parts of two letters or
// more.
func chunks(line string) []string {
	var out []string
	r := []rune(line)
	letter := func(i int) bool {
		return i >= 0 && i < len(r) && (unicode.IsLetter(r[i]) || r[i] == '_')
	}
	from := 0
	cut := func(to int) {
		if to > from {
			out = append(out, string(r[from:to]))
			from = to
		}
	}
	for i := range r {
		if i > 0 && unicode.IsSpace(r[i]) != unicode.IsSpace(r[i-1]) {
			cut(i)
		}
		if r[i] == '-' && letter(i-1) && letter(i-2) && letter(i+1) && letter(i+2) {
			cut(i + 1)
		}
	}
	cut(len(r))
	return out
}
