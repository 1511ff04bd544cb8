package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	special   = `,[]{}\`
)

// values returns the arguments by which helm gets a release's values, each as --set takes it. Every process of the machine may read
// a command line: texts are in files in dir, where it makes no difference to what helm understands, which is while no value is of
// a form that says more than name=value, and no other value is of the same name or of a part of it. Numbers, true, false and
// null stay, since from a file they would be texts.
func values(dir string, set []string) ([]string, error) {
	plain := true
	names := make([]string, len(set))
	for n, s := range set {
		name, value, ok := strings.Cut(s, "=")
		plain = plain && ok && plainName.MatchString(name) && !strings.ContainsAny(value, special)
		names[n] = name
	}
	out := make([]string, 0, len(set))
	for n, s := range set {
		_, value, _ := strings.Cut(s, "=")
		if !plain || typed(value) || overlaps(names, n) {
			out = append(out, "--set="+s)
			continue
		}
		file := fmt.Sprintf("value-%d", n)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600); err != nil {
			return nil, fmt.Errorf("write a value for helm: %w", err)
		}
		out = append(out, "--set-file="+names[n]+"="+file)
	}
	return out, nil
}

// typed tells whether --set does not take a value as a text, or there is none.
func typed(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "true", "false", "null":
		return true
	}
	_, err := strconv.ParseInt(value, 10, 64)
	return err == nil && value[0] != '0'
}

// overlaps tells whether a name is another one as well, or a part of it, or has it as a part.
func overlaps(names []string, n int) bool {
	for other, name := range names {
		if other != n && (strings.HasPrefix(name+".", names[n]+".") || strings.HasPrefix(names[n]+".", name+".")) {
			return true
		}
	}
	return false
}
