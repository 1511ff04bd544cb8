package helm

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

// The limits of what --set takes: of a list's index and of the names in one another, as helm has them, and of the places that lists
// may have together, which nobody needs.
const (
	maxIndex  = 65536
	maxNames  = 30
	maxPlaces = 1 << 20
)

// assignments reads a text of the form that helm's --set takes, name=value,name=value…, and puts what it says into values. A name
// may be a path, as a.b and a[0].b; a value may be a list, as {x,y}; \ has the next character be itself. What are a whole number,
// true, false and null is taken for such: int64, bool, nil. The texts that helm takes though something is amiss with their end are
// taken here too, and what it makes of them is made of them. room is how many places lists may still get.
func assignments(s string, values map[string]any, room *int) error {
	t := given{rest: []rune(s), room: room}
	for {
		err := t.assign(values, 0)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// given is what is still to be read.
type given struct {
	rest []rune
	room *int
}

// until reads up to one of the characters that end it, and tells which; 0: the text is at its end.
func (t *given) until(ends string) (string, rune) {
	var out []rune
	for n := 0; n < len(t.rest); n++ {
		r := t.rest[n]
		if strings.ContainsRune(ends, r) {
			t.rest = t.rest[n+1:]
			return string(out), r
		}
		if r == '\\' {
			if n++; n == len(t.rest) {
				break
			}
			r = t.rest[n]
		}
		out = append(out, r)
	}
	t.rest = nil
	return string(out), 0
}

var (
	errNoValue = errors.New("a name has no value")
	errClash   = errors.New("a name stands for a list or a map, and for something else before")
)

// assign reads one assignment, or the rest of one, into values. io.EOF: there is no more.
func (t *given) assign(values map[string]any, names int) error {
	name, end := t.until("=[,.")
	put := func(v any) {
		if name != "" {
			values[name] = v
		}
	}
	was, there := values[name]
	switch end {
	case '=':
		v, err := t.value()
		put(v)
		return err
	case '[':
		at, err := t.index()
		if err != nil {
			return err
		}
		list, ok := was.([]any)
		if there && !ok {
			return errClash
		}
		if list == nil {
			list = []any{}
		}
		list, err = t.item(list, at, names)
		put(list)
		return err
	case '.':
		if names++; names > maxNames {
			return errors.New("there are too many names in one another")
		}
		inner, ok := was.(map[string]any)
		if there && !ok {
			return errClash
		}
		if inner == nil {
			inner = map[string]any{}
		}
		err := t.assign(inner, names)
		if len(inner) > 0 {
			put(inner)
		} else if err == nil {
			return errNoValue
		}
		return err
	case 0:
		if name == "" {
			return io.EOF
		}
	}
	return errNoValue
}

// index reads a list's index. io.EOF: it has no end.
func (t *given) index() (int, error) {
	text, end := t.until("]")
	if end == 0 {
		return 0, io.EOF
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errors.New("an index is no number")
	}
	return n, nil
}

// item reads the rest of an assignment to an element of a list, and returns the list. io.EOF: there is no more.
func (t *given) item(list []any, at, names int) ([]any, error) {
	text, end := t.until("[.=")
	if text != "" {
		return list, errors.New("something follows an index")
	}
	var was any
	if at < len(list) {
		was = list[at]
	}
	switch end {
	case '=':
		v, err := t.value()
		if err != nil && !errors.Is(err, io.EOF) {
			return list, err
		}
		return t.place(list, at, v)
	case '[':
		next, err := t.index()
		if err != nil {
			return list, err
		}
		inner, ok := was.([]any)
		if was != nil && !ok {
			return list, errClash
		}
		if inner, err = t.item(inner, next, names); err != nil {
			return list, err
		}
		return t.place(list, at, inner)
	case '.':
		inner, ok := was.(map[string]any)
		if !ok {
			inner = map[string]any{}
			if at < len(list) {
				list[at] = inner
			}
		}
		if err := t.assign(inner, names); err != nil {
			return list, err
		}
		return t.place(list, at, inner)
	}
	return list, io.EOF
}

// place puts a value into a list, which it makes longer if need be.
func (t *given) place(list []any, at int, v any) ([]any, error) {
	if more := at + 1 - len(list); more > 0 {
		if *t.room -= more; at > maxIndex || *t.room < 0 {
			return list, errors.New("a list is too long")
		}
		list = append(list, make([]any, more)...)
	}
	list[at] = v
	return list, nil
}

// value reads a value. io.EOF, with an empty text: there is none.
func (t *given) value() (any, error) {
	if len(t.rest) == 0 {
		return "", io.EOF
	}
	if t.rest[0] != '{' {
		text, _ := t.until(",")
		return typed(text), nil
	}
	t.rest = t.rest[1:]
	list := []any{}
	for {
		text, end := t.until(",}")
		if end == 0 {
			return nil, errors.New("a list has no end")
		}
		list = append(list, typed(text))
		if end == ',' {
			continue
		}
		if len(t.rest) > 0 && t.rest[0] == ',' {
			t.rest = t.rest[1:]
		}
		return list, nil
	}
}

// typed returns what --set takes a text for.
func typed(text string) any {
	switch {
	case strings.EqualFold(text, "true"):
		return true
	case strings.EqualFold(text, "false"):
		return false
	case strings.EqualFold(text, "null"):
		return nil
	case text == "0":
		return int64(0)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '0' {
		return n
	}
	return text
}
