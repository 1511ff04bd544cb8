package httpapi

import (
	"bytes"
	"encoding/json"
)

// The functions here read stored JSON, which is valid, without decoding it. Of anything else they make some result, and
// neither panic nor loop.

// skipSpace returns the index of the next byte that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default: // a number or a word
			for i < len(b) && !bytes.ContainsRune([]byte(",:]} \n\t\r"), rune(b[i])) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

// members calls f for the members of the object in b, until f returns false.
func members(b []byte, f func(name, value []byte) bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] == '"'; i = skipSpace(b, i+1) {
		end := skipString(b, i)
		name := b[i:end]
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return
		}
		i = skipSpace(b, i+1)
		end = skipValue(b, i)
		if end == i || !f(name, b[i:end]) {
			return
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// text returns what a JSON string says.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// lookup finds the names' node of a member.
func (n *names) lookup(name []byte) *names {
	if n == nil || len(name) < 2 {
		return nil
	}
	if bytes.IndexByte(name, '\\') < 0 {
		return n.sub[string(name[1:len(name)-1])]
	}
	return n.sub[text(name)]
}

// topMember returns the value of a member of the object in b as it stands there; nil when there is none.
func topMember(b []byte, name string) (out []byte) {
	members(b, func(n, v []byte) bool {
		if len(n) == len(name)+2 && string(n[1:len(n)-1]) == name {
			out = v
			return false
		}
		return true
	})
	return out
}

// topText returns the text of a member of the object in b.
func topText(b []byte, name string) string { return text(topMember(b, name)) }

// appendSelected appends the object in b with what the selection shows, without its closing bracket; any tells whether
// it has members.
func appendSelected(dst, b []byte, s selection) (out []byte, any bool) {
	if s.everything() {
		end := bytes.LastIndexByte(b, '}')
		if end < 0 {
			return append(dst, '{'), false
		}
		body := bytes.TrimRight(b[:end], " \n\t\r")
		return append(dst, body...), len(bytes.TrimSpace(body)) > 1
	}
	dst = append(dst, '{')
	members(b, func(name, value []byte) bool {
		mark := len(dst)
		if any {
			dst = append(dst, ',')
		}
		dst = append(append(dst, name...), ':')
		shown := true
		switch drop := s.drop.lookup(name); {
		case drop == nil:
			dst = append(dst, value...)
		case !drop.leaf:
			dst = appendExcluded(dst, value, drop)
		default:
			keep := s.keep.lookup(name)
			if shown = keep != nil; shown {
				dst = appendIncluded(dst, value, keep)
			}
		}
		if shown {
			any = true
		} else {
			dst = dst[:mark]
		}
		return true
	})
	return dst, any
}

// appendExcluded appends the value without what n names; in arrays, of every element.
func appendExcluded(dst, v []byte, n *names) []byte {
	return appendFiltered(dst, v, func(dst, name, value []byte) ([]byte, bool) {
		sub := n.lookup(name)
		switch {
		case sub == nil:
			return append(dst, value...), true
		case sub.leaf:
			return dst, false
		default:
			return appendExcluded(dst, value, sub), true
		}
	})
}

// appendIncluded appends of the value only what n names; in arrays, of every element.
func appendIncluded(dst, v []byte, n *names) []byte {
	if n.leaf {
		return append(dst, v...)
	}
	return appendFiltered(dst, v, func(dst, name, value []byte) ([]byte, bool) {
		sub := n.lookup(name)
		if sub == nil {
			return dst, false
		}
		return appendIncluded(dst, value, sub), true
	})
}

// appendFiltered appends the value with those members that member appends, in arrays of every element.
func appendFiltered(dst, v []byte, member func(dst, name, value []byte) ([]byte, bool)) []byte {
	if len(v) == 0 {
		return dst
	}
	switch v[0] {
	case '[':
		dst = append(dst, '[')
		first := true
		for i := skipSpace(v, 1); i < len(v) && v[i] != ']'; i = skipSpace(v, i+1) {
			end := skipValue(v, i)
			if end == i {
				break
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendFiltered(dst, v[i:end], member)
			if i = skipSpace(v, end); i >= len(v) || v[i] != ',' {
				break
			}
		}
		return append(dst, ']')
	case '{':
		dst = append(dst, '{')
		first := true
		members(v, func(name, value []byte) bool {
			mark := len(dst)
			if !first {
				dst = append(dst, ',')
			}
			dst = append(append(dst, name...), ':')
			var shown bool
			if dst, shown = member(dst, name, value); shown {
				first = false
			} else {
				dst = dst[:mark]
			}
			return true
		})
		return append(dst, '}')
	default:
		return append(dst, v...)
	}
}
