package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
)

// TestSample writes every sample package with its requests.
func TestSample(t *testing.T) {
	t.Parallel()
	call := func(args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		code := run(t.Context(), append([]string{"sample"}, args...), &out, &errOut)
		return code, out.String(), errOut.String()
	}
	if code, out, said := call(); code != exitOK || out != strings.Join(deploy.Names(), "\n")+"\n" {
		t.Errorf("exit code %d, %q, %q", code, out, said)
	}
	for _, name := range deploy.Names() {
		dir := t.TempDir()
		code, out, said := call(name, "--dir", dir)
		files := strings.Fields(out)
		if code != exitOK || len(files) != 1+len(deploy.Flavours(name)) || files[0] != filepath.Join(dir, name+".zip") {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, said)
			continue
		}
		want, err := deploy.Package(name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(raw, want) {
			t.Errorf("%s is not the package (error: %v)", files[0], err)
		}
		for _, file := range files[1:] {
			raw, err := os.ReadFile(file)
			if err != nil || !json.Valid(raw) {
				t.Errorf("%s is no request (error: %v): %s", file, err, raw)
			}
		}
	}
	if code, out, said := call("none"); code != exitError || out != "" || !strings.Contains(said, "web-cnf") {
		t.Errorf("a package that there is not: exit code %d, %q, %q", code, out, said)
	}
}
