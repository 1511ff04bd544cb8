package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// keyBytes is the length of a sealing key (AES-256).
const keyBytes = 32

// NewKeyLine returns a line of a key file, "id:base64", with a fresh key of 32 bytes read from random.
func NewKeyLine(id uint32, random io.Reader) (string, error) {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return "", fmt.Errorf("make a sealing key: %w", err)
	}
	return fmt.Sprintf("%d:%s\n", id, base64.StdEncoding.EncodeToString(key)), nil
}

// ReadKeys returns the content of the key file. With the private PostgreSQL a file that does not exist is made first
// (mode 0600), and created is true; with another database it is an error, for nodes that share a database must share
// its keys. A file that others may read is refused.
func (c *Config) ReadKeys() (text string, created bool, err error) {
	path := c.Secrets.KeyFile
	if path == "" {
		return "", false, errors.New("secrets.key_file is not set")
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Database.Private():
		if err := createKeyFile(path); err != nil {
			return "", false, err
		}
		created = true
	case err != nil:
		return "", false, fmt.Errorf("secrets.key_file: %w", err)
	case st.Mode().Perm()&0o077 != 0:
		return "", false, fmt.Errorf("secrets.key_file: %s can be read by others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", created, fmt.Errorf("secrets.key_file: %w", err)
	}
	return string(raw), created, nil
}

// createKeyFile writes a new key beside its place and links it there, so that of two processes that start at once
// both use the key of the one that was first, and none reads half a file.
func createKeyFile(path string) error {
	line, err := NewKeyLine(1, rand.Reader)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make the key file's folder: %w", err)
	}
	f, err := os.CreateTemp(dir, ".secrets-*") // mode 0600
	if err != nil {
		return fmt.Errorf("make the key file: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(line)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("put the key file in its place: %w", err)
	}
	return nil
}
