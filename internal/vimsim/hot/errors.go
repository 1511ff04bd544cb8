package hot

import (
	"fmt"
	"strings"
)

// Error is a template or parameter error worded the way Heat words it. Kind is
// the exception class that Heat reports in error.type of its error body, for
// example "StackValidationFailed" or "UserParameterMissing".
type Error struct {
	// Kind is Heat's exception class.
	Kind string
	// Label is an optional leading word, such as "Property error".
	Label string
	// Path is the place in the template, for example resources, VDU1, properties, image.
	Path []string
	// Msg says what is wrong.
	Msg string
}

// Error renders the label, the dotted path and the message.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Label != "" {
		b.WriteString(e.Label)
		b.WriteString(": ")
	}
	if len(e.Path) > 0 {
		b.WriteString(JoinPath(e.Path))
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Remote renders the error as Heat's API shows it: on its way from the engine the label and the place get their colons twice.
func (e *Error) Remote() string {
	if e.Kind != "StackValidationFailed" {
		return e.Error()
	}
	out := ""
	if e.Label != "" {
		out = e.Label + ": : "
	}
	if len(e.Path) > 0 {
		out += JoinPath(e.Path) + ": : "
	}
	return out + e.Msg
}

// JoinPath joins path items with dots; numeric items become [n].
func JoinPath(path []string) string {
	var b strings.Builder
	for i, p := range path {
		switch {
		case p != "" && strings.Trim(p, "0123456789") == "":
			b.WriteString("[" + p + "]")
		case i > 0:
			b.WriteString("." + p)
		default:
			b.WriteString(p)
		}
	}
	return b.String()
}

// Invalid makes a StackValidationFailed error.
func Invalid(path []string, format string, args ...any) *Error {
	return &Error{Kind: "StackValidationFailed", Path: path, Msg: fmt.Sprintf(format, args...)}
}

func errf(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
