package csar

import "fmt"

// Rules an [Error] can name. They are stable strings fit for logs and metrics.
const (
	RuleZip      = "zip"      // the bytes are no well-formed zip archive
	RuleLimit    = "limit"    // a configured limit is exceeded
	RulePath     = "path"     // an entry's name is unsafe or ambiguous
	RuleMode     = "mode"     // an entry is neither a regular file nor a folder
	RuleMethod   = "method"   // an entry is encrypted or compressed in an unknown way
	RuleMeta     = "meta"     // TOSCA.meta is missing something or malformed
	RuleEntry    = "entry"    // the entry definitions cannot be determined
	RuleManifest = "manifest" // the manifest is missing or misnamed
	RuleArtifact = "artifact" // an artifact block breaks the rules
	RuleHash     = "hash"     // an artifact's digest differs from the declared one
)

// Error is a refusal of a package. Path is the entry it is about ("" for the
// archive as a whole), Rule one of the Rule constants and Detail the sentence
// shown to the user.
type Error struct {
	Path   string
	Rule   string
	Detail string

	cause error
}

// Error returns Detail, which names the entry where that matters.
func (e *Error) Error() string { return e.Detail }

// Unwrap returns the underlying error, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func refuse(path, rule, format string, args ...any) *Error {
	return &Error{Path: path, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

func wrap(cause error, path, rule, format string, args ...any) *Error {
	e := refuse(path, rule, format, args...)
	e.cause = cause
	return e
}
