package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Sealer seals secrets into AES-256-GCM envelopes before they reach a row, and opens them again. An envelope is
//
//	version (1 byte, 1) | key id (4 bytes, big endian) | nonce (12 bytes) | ciphertext and tag
//
// and is bound to the place it stands in (table, row, field) as associated data, so that it opens nowhere else.
type Sealer struct {
	current uint32
	keys    map[uint32]cipher.AEAD
}

const (
	sealVersion = 1
	sealHeader  = 1 + 4 + 12
	keyBytes    = 32
)

// ErrSeal is returned when an envelope cannot be opened: damaged, moved, or sealed under a key that is not at hand.
var ErrSeal = errors.New("the sealed value cannot be opened")

// NewSealer makes a Sealer from keys of 32 bytes by id; it seals under current and opens under any.
func NewSealer(current uint32, keys map[uint32][]byte) (*Sealer, error) {
	s := &Sealer{current: current, keys: make(map[uint32]cipher.AEAD, len(keys))}
	for id, key := range keys {
		if len(key) != keyBytes {
			return nil, fmt.Errorf("seal key %d has %d bytes, not %d", id, len(key), keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("seal key %d: %w", id, err)
		}
		if s.keys[id], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("seal key %d: %w", id, err)
		}
	}
	if s.keys[current] == nil {
		return nil, fmt.Errorf("seal key %d is the current one but is not given", current)
	}
	return s, nil
}

// ParseKeys reads a key file: a line "id:base64 of 32 bytes" for each key, the last line's key being current; blank
// lines and lines that begin with # are passed over.
func ParseKeys(text string) (*Sealer, error) {
	keys := map[uint32][]byte{}
	var current uint32
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, b64, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("key file line %d: want id:base64", n+1)
		}
		var num uint32
		if _, err := fmt.Sscanf(id, "%d", &num); err != nil {
			return nil, fmt.Errorf("key file line %d: the id %q is not a number", n+1, id)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(b64))
		if err != nil {
			return nil, fmt.Errorf("key file line %d: not base64", n+1)
		}
		keys[num], current = key, num
	}
	if len(keys) == 0 {
		return nil, errors.New("the key file holds no key")
	}
	return NewSealer(current, keys)
}

// stale tells whether an envelope was sealed under another key than the current one.
func (s *Sealer) stale(envelope []byte) bool {
	return len(envelope) < sealHeader || binary.BigEndian.Uint32(envelope[1:5]) != s.current
}

// Seal returns the envelope of plain for its place. It fails without a Sealer: nothing secret is ever stored in clear.
func (s *Sealer) Seal(table, id, field string, plain []byte) ([]byte, error) {
	if s == nil {
		return nil, errors.New("there are no keys to seal secrets with")
	}
	out := make([]byte, sealHeader, sealHeader+len(plain)+16)
	out[0] = sealVersion
	binary.BigEndian.PutUint32(out[1:5], s.current)
	_, _ = rand.Read(out[5:sealHeader])
	return s.keys[s.current].Seal(out, out[5:sealHeader], plain, place(table, id, field)), nil
}

// Open returns what was sealed for the place. ErrSeal otherwise.
func (s *Sealer) Open(table, id, field string, envelope []byte) ([]byte, error) {
	if s == nil || len(envelope) < sealHeader || envelope[0] != sealVersion {
		return nil, fmt.Errorf("%s %s %s: %w", table, id, field, ErrSeal)
	}
	keyID := binary.BigEndian.Uint32(envelope[1:5])
	aead := s.keys[keyID]
	if aead == nil {
		return nil, fmt.Errorf("%s %s %s: key %d is not at hand: %w", table, id, field, keyID, ErrSeal)
	}
	plain, err := aead.Open(nil, envelope[5:sealHeader], envelope[sealHeader:], place(table, id, field))
	if err != nil {
		return nil, fmt.Errorf("%s %s %s: %w", table, id, field, ErrSeal)
	}
	return plain, nil
}

func place(table, id, field string) []byte { return []byte(table + "/" + id + "/" + field) }
