package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Object is a JSON object that knows the order of its keys. Values are *Object, []any, json.Number, string, bool or nil.
type Object struct {
	// Keys are in the order they came in.
	Keys []string
	// Values by key.
	Values map[string]any
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{Values: map[string]any{}} }

// Set adds or replaces a value and returns the object.
func (o *Object) Set(key string, v any) *Object {
	if _, ok := o.Values[key]; !ok {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key] = v
	return o
}

// Get returns a value and whether it is there.
func (o *Object) Get(key string) (any, bool) {
	v, ok := o.Values[key]
	return v, ok
}

// Text returns the value of a key when it is a string, and "" otherwise.
func (o *Object) Text(key string) string {
	s, _ := o.Values[key].(string)
	return s
}

// Delete removes a key.
func (o *Object) Delete(key string) {
	if _, ok := o.Values[key]; !ok {
		return
	}
	delete(o.Values, key)
	for i, k := range o.Keys {
		if k == key {
			o.Keys = append(o.Keys[:i:i], o.Keys[i+1:]...)
			return
		}
	}
}

// Merge lays the keys of another object over this one.
func (o *Object) Merge(other *Object) {
	for _, k := range other.Keys {
		o.Set(k, other.Values[k])
	}
}

// maxDepth bounds the nesting of a JSON text.
const maxDepth = 1000

// ParseJSON reads one JSON value and nothing behind it.
func ParseJSON(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: there is more behind the value")
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	tok, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			v, err := parseValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	o := NewObject()
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no key", k)
		}
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		o.Set(key, v)
	}
	_, err = dec.Token()
	return o, err
}
