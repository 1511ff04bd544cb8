package privatepg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// ErrNoBinaries is in the chain of the error of [Find] and [Start] when the machine has no usable PostgreSQL server.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries found")

// minMajor is the oldest PostgreSQL that the schema runs on.
const minMajor = 13

// Binaries is one installation of the PostgreSQL server.
type Binaries struct {
	// Dir is the absolute path of the folder with initdb and postgres.
	Dir string
	// Major and Minor are the version, such as 15 and 18.
	Major, Minor int
}

func (b Binaries) postgres() string { return filepath.Join(b.Dir, "postgres") }
func (b Binaries) initdb() string   { return filepath.Join(b.Dir, "initdb") }

// packageDirs are where distributions keep a server's binaries outside of PATH.
var packageDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/usr/local/opt/postgresql*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
}

// Find looks for server binaries in the distributions' folders and in PATH and returns the newest. With a major
// greater than 0 only that major version will do, as it must for a cluster that exists. An error wraps
// [ErrNoBinaries] and says what to install.
func Find(ctx context.Context, major int) (Binaries, error) {
	return findIn(ctx, candidateDirs(os.Getenv("PATH")), major)
}

// candidateDirs lists folders to look at. The distributions' own come first, for what is called postgres in PATH may
// be a wrapper.
func candidateDirs(path string) []string {
	var dirs []string
	for _, pattern := range packageDirs {
		found, err := filepath.Glob(pattern)
		if err == nil {
			dirs = append(dirs, found...)
		}
	}
	for _, d := range filepath.SplitList(path) {
		if filepath.IsAbs(d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

func findIn(ctx context.Context, dirs []string, major int) (Binaries, error) {
	var found []Binaries
	var other []string
	seen := map[string]bool{}
	for _, d := range dirs {
		if seen[d] {
			continue
		}
		seen[d] = true
		b, err := probe(ctx, d)
		if err != nil {
			continue
		}
		if b.Major < minMajor || major > 0 && b.Major != major {
			other = append(other, fmt.Sprintf("%d.%d in %s", b.Major, b.Minor, d))
			continue
		}
		found = append(found, b)
	}
	if err := ctx.Err(); err != nil {
		return Binaries{}, fmt.Errorf("look for PostgreSQL binaries: %w", err)
	}
	if len(found) == 0 {
		want := fmt.Sprintf("PostgreSQL %d or newer", minMajor)
		if major > 0 {
			want = fmt.Sprintf("PostgreSQL %d, which made the data folder", major)
		}
		have := ""
		if len(other) > 0 {
			have = " (there is " + strings.Join(other, ", ") + ")"
		}
		return Binaries{}, fmt.Errorf("%w: %s is needed%s; install it (apt-get install postgresql) or set database.url to a server of yours", ErrNoBinaries, want, have)
	}
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].Major != found[j].Major {
			return found[i].Major > found[j].Major
		}
		return found[i].Minor > found[j].Minor
	})
	return found[0], nil
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// probe asks the binaries of a folder what they are. Anything that does not answer like PostgreSQL is passed over.
func probe(ctx context.Context, dir string) (Binaries, error) {
	b := Binaries{Dir: dir}
	for _, p := range []string{b.postgres(), b.initdb()} {
		st, err := os.Stat(p)
		if err != nil {
			return b, err
		}
		if st.IsDir() || st.Mode()&0o111 == 0 {
			return b, fmt.Errorf("%s is not executable", p)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.postgres(), "--version")
	cmd.Env = childEnv()
	out, err := cmd.Output()
	if err != nil {
		return b, fmt.Errorf("ask %s for its version: %w", b.postgres(), err)
	}
	m := versionLine.FindStringSubmatch(string(out))
	if m == nil {
		return b, fmt.Errorf("%s is not a PostgreSQL server", b.postgres())
	}
	if b.Major, err = strconv.Atoi(m[1]); err != nil {
		return b, fmt.Errorf("version of %s: %w", b.postgres(), err)
	}
	if m[2] != "" {
		if b.Minor, err = strconv.Atoi(m[2]); err != nil {
			return b, fmt.Errorf("version of %s: %w", b.postgres(), err)
		}
	}
	return b, nil
}

// childEnv is the whole environment of the children: nothing of ours, secrets least of all, is handed down.
func childEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}
