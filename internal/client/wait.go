package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Progress is told what a wait sees.
type Progress interface {
	// Update reports a look: the state, a line about it, and how long we have been waiting.
	Update(state, line string, waited time.Duration)
	// Done ends the report.
	Done()
}

// NewProgress writes to w: on a terminal one line that is written over and over, elsewhere one line for each change.
// A width of 0 is no limit.
func NewProgress(w io.Writer, terminal bool, width int) Progress {
	if terminal {
		return &liveLine{w: w, width: width}
	}
	return &changeLines{w: w}
}

type liveLine struct {
	w     io.Writer
	width int
	open  bool
}

func (l *liveLine) Update(_, line string, waited time.Duration) {
	line = fmt.Sprintf("%s (%s)", oneLine(line), waited.Round(time.Second))
	if r := []rune(line); l.width > 1 && len(r) >= l.width {
		line = string(r[:l.width-1])
	}
	// Back to the start, write, clear the rest.
	_, _ = fmt.Fprintf(l.w, "\r%s\x1b[K", line)
	l.open = true
}

func (l *liveLine) Done() {
	if l.open {
		_, _ = io.WriteString(l.w, "\n")
		l.open = false
	}
}

type changeLines struct {
	w    io.Writer
	last string
}

func (l *changeLines) Update(_, line string, waited time.Duration) {
	if line = oneLine(line); line != l.last {
		l.last = line
		_, _ = fmt.Fprintf(l.w, "%s (%s)\n", line, waited.Round(100*time.Millisecond))
	}
}

func (l *changeLines) Done() {}

// oneLine keeps a server's text from breaking our line or steering the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// OpFailure is an operation that came to rest without success.
type OpFailure struct {
	// ID, Operation and State are the operation occurrence's.
	ID, Operation, State string
	// Detail is what its error says.
	Detail string
}

// Error implements error.
func (e *OpFailure) Error() string {
	msg := fmt.Sprintf("%s operation %s is %s", e.Operation, e.ID, e.State)
	if e.Detail != "" {
		msg += ": " + e.Detail
	}
	if e.State == "FAILED_TEMP" {
		msg += fmt.Sprintf("\nGo on with one of: vnfm vnflcm op retry %s | op rollback %s | op fail %s", e.ID, e.ID, e.ID)
	}
	return msg
}

// patience is how long a wait bears a server that does not answer: nodes are restarted and replaced.
const patience = time.Minute

// WaitOpOcc looks at an operation occurrence until it rests (SOL003 v2.6.1 §5.6.2.2): COMPLETED is success, and so is a
// state in want; FAILED_TEMP, FAILED and ROLLED_BACK are an *[OpFailure] otherwise. It returns the last representation.
// A server that does not answer is borne with for a minute.
func (c *Client) WaitOpOcc(ctx context.Context, id string, p Progress, want ...string) (*Object, error) {
	defer p.Done()
	began := c.now()
	lastAnswer := began
	pause := pauses{}
	for {
		o, err := c.OpOcc(ctx, id)
		switch {
		case err == nil:
			lastAnswer = c.now()
			state := o.Text("operationState")
			p.Update(state, describe(id, o), c.now().Sub(began))
			switch state {
			case "COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK":
				if state == "COMPLETED" || has(want, state) {
					return o, nil
				}
				return o, &OpFailure{ID: id, Operation: o.Text("operation"), State: state, Detail: detail(o)}
			}
		case passing(err) && c.now().Sub(lastAnswer) < patience:
			p.Update("", fmt.Sprintf("operation %s: no answer: %v", id, err), c.now().Sub(began))
		default:
			return nil, err
		}
		state := ""
		if o != nil {
			state = o.Text("operationState")
		}
		if err := c.sleep(ctx, pause.next(state)); err != nil {
			return nil, fmt.Errorf("wait for operation %s: %w", id, err)
		}
	}
}

// passing tells whether an error may go away by itself.
func passing(err error) bool {
	var ce *ConnectError
	var ae *Error
	return errors.As(err, &ce) || errors.As(err, &ae) && (ae.Status >= 500 || ae.Status == http.StatusTooManyRequests)
}

func detail(o *Object) string {
	if e, ok := o.Values["error"].(*Object); ok {
		return e.Text("detail")
	}
	return ""
}

// describe makes the line about an operation occurrence: what, state, and which resources have changed so far.
func describe(id string, o *Object) string {
	line := fmt.Sprintf("%s %s: %s", o.Text("operation"), id, o.Text("operationState"))
	if pending, ok := o.Values["isCancelPending"].(bool); ok && pending {
		line += ", cancel pending"
	}
	changes, _ := o.Values["resourceChanges"].(*Object)
	if changes != nil {
		for _, k := range []struct{ key, one string }{
			{"affectedVnfcs", "VNFC"}, {"affectedVirtualLinks", "virtual link"}, {"affectedVirtualStorages", "storage"},
		} {
			if list, _ := changes.Values[k.key].([]any); len(list) > 0 {
				line += fmt.Sprintf(", %d %s", len(list), k.one)
				if len(list) > 1 {
					line += "s"
				}
			}
		}
	}
	if d := detail(o); d != "" {
		line += ": " + d
	}
	return line
}

// FindOpOcc returns the id of an accepted operation: the server's Location, or else the instance's newest operation.
func (c *Client) FindOpOcc(ctx context.Context, a Accepted) (string, error) {
	if a.OpOccID != "" {
		return a.OpOccID, nil
	}
	list, err := c.OpOccs(ctx, OpOccQuery{Filter: "(eq,vnfInstanceId," + a.InstanceID + ")"})
	if err != nil {
		return "", err
	}
	id, newest := "", ""
	for _, o := range list {
		if s := o.Text("startTime"); id == "" || s > newest {
			id, newest = o.Text("id"), s
		}
	}
	if id == "" {
		return "", fmt.Errorf("the server named no operation of VNF instance %s to wait for", a.InstanceID)
	}
	return id, nil
}
