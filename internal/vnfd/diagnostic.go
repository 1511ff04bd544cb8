package vnfd

import (
	"fmt"
	"strings"
)

// Rules a [Diagnostic] can name.
const (
	RuleFile       = "file"        // a YAML file is absent or unreadable
	RuleYAML       = "yaml"        // the text is not acceptable YAML
	RuleDuplicate  = "duplicate"   // a key or flavour is given twice
	RuleLimit      = "limit"       // a bound on size, depth or number
	RuleImport     = "import"      // an import is malformed, absent or cyclic
	RuleSyntax     = "syntax"      // a section has an unexpected shape
	RuleType       = "type"        // a type is undefined or circular
	RuleRequired   = "required"    // a required property is missing
	RuleValue      = "value"       // a value does not fit its type
	RuleConstraint = "constraint"  // a value violates a constraint of its type
	RuleReference  = "reference"   // a name refers to nothing
	RuleArtifact   = "artifact"    // an artifact's file is absent or ambiguous
	RuleImage      = "sw_image"    // software image data are missing or wrong
	RuleVNF        = "vnf"         // the VNF node is missing, double or incomplete
	RuleFlavour    = "flavour"     // no deployment flavour, or one without an id
	RuleLevel      = "level"       // instantiation levels or aspects contradict
	RuleSize       = "scalar-unit" // a size has no number, no unit or a wrong one
)

// maxDiagnostics bounds how many findings are collected from one descriptor.
const maxDiagnostics = 100

// Diagnostic is one finding about a descriptor. Line and Column count from 1
// and are 0 when the finding is about the file as a whole.
type Diagnostic struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// String returns "file:line:column: message".
func (d Diagnostic) String() string {
	if d.Line == 0 {
		return d.File + ": " + d.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
}

// Diagnostics is the error type of [Read]: one or more findings in the order
// in which they were made.
type Diagnostics []Diagnostic

// Error lists the findings, the first ten of them at most.
func (d Diagnostics) Error() string {
	var b strings.Builder
	for i, x := range d {
		if i == 10 {
			fmt.Fprintf(&b, "; and %d more", len(d)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(x.String())
	}
	return b.String()
}

// pos is where in the package something was written.
type pos struct {
	file      string
	line, col int
}

// report collects findings, each place and rule once.
type report struct {
	list Diagnostics
	seen map[Diagnostic]bool
}

func (r *report) add(p pos, rule, format string, args ...any) {
	if len(r.list) >= maxDiagnostics {
		return
	}
	key := Diagnostic{File: p.file, Line: p.line, Column: p.col, Rule: rule}
	if p.line == 0 {
		// Without a place only the text tells findings apart.
		key.Message = fmt.Sprintf(format, args...)
	}
	if r.seen[key] {
		return
	}
	if r.seen == nil {
		r.seen = map[Diagnostic]bool{}
	}
	r.seen[key] = true
	key.Message = clip(fmt.Sprintf(format, args...))
	r.list = append(r.list, key)
}

// clip keeps a message that quotes input at a readable length.
func clip(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
