package lcm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Kind classes an error once, where it arises; every boundary (HTTP, op occ, retry) decides by it.
type Kind string

// The kinds of errors.
const (
	KindInternal     Kind = "internal"     // a defect or an unexpected failure of ours
	KindInvalid      Kind = "invalid"      // the request breaks a rule that it could have kept
	KindNotFound     Kind = "not found"    // the thing named does not exist, or not for this caller
	KindConflict     Kind = "conflict"     // the thing's state does not allow it now
	KindPrecondition Kind = "precondition" // If-Match does not hold
	KindForbidden    Kind = "forbidden"    // the caller may not
	KindUnauthorized Kind = "unauthorized" // the caller is not known
	KindUnsupported  Kind = "unsupported"  // the VNF, VIM or driver cannot do this at all
	KindTooLarge     Kind = "too large"    // a body or package over its limit
	KindMediaType    Kind = "media type"   // a content type that the resource does not take
	KindNotAccepted  Kind = "not accepted" // no representation that the caller accepts
	KindRange        Kind = "range"        // a byte range outside the content
	KindTerminal     Kind = "terminal"     // an operation cannot succeed by being tried again as it is
	KindRetryable    Kind = "retryable"    // an outside system failed in a way that passes
	KindCanceled     Kind = "canceled"     // asked to stop
	KindStale        Kind = "stale"        // the fence moved on: somebody else owns the work
	KindUnavailable  Kind = "unavailable"  // we cannot serve this now
)

// Error is a classed error whose Detail may be shown to a caller. It holds no secret.
type Error struct {
	Kind   Kind
	Title  string // a short title when the resource has its own (Tacker's capitals); empty: the status' phrase
	Detail string // what went wrong, naming attribute and rule, or step, resource and host
	Status int    // an HTTP status that differs from the kind's own, else 0
	Err    error  // the cause, for logs; its text is not shown
	// Again is for how long it is of no use to try a retryable one again; 0: nobody knows.
	Again time.Duration
}

// Error returns the detail and, when it adds something, the cause.
func (e *Error) Error() string {
	if e.Err != nil && e.Err.Error() != e.Detail {
		return e.Detail + ": " + e.Err.Error()
	}
	return e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes a classed error whose detail is formatted as by fmt.Errorf; a %w operand becomes the cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Detail: err.Error(), Err: errors.Unwrap(err)}
}

// Titled is Errorf with the resource's own title.
func Titled(kind Kind, title, format string, args ...any) *Error {
	e := Errorf(kind, format, args...)
	e.Title = title
	return e
}

// KindOf tells an error's kind: that of the outermost *Error in its chain, canceled for a canceled or expired context,
// unavailable for a lost or refused connection, else internal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return KindCanceled
	case cutOff(err):
		return KindUnavailable
	default:
		return KindInternal
	}
}

// cutOff tells whether err is of a lost or refused connection: of the network's, or by SQLSTATE of the database's (class
// 08, shutdowns 57P…, too many connections).
func cutOff(err error) bool {
	var database interface{ SQLState() string }
	if errors.As(err, &database) {
		state := database.SQLState()
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == "53300"
	}
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED)
}

// Is tells whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// ErrStale is returned by a Store when the fence that the caller holds is no longer the op occ's.
var ErrStale = &Error{Kind: KindStale, Detail: "the work has been taken over by another node"}
