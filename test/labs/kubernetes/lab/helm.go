package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// helmSource is where the module stands that pins helm, below the root of ours.
const helmSource = "test/labs/kubernetes/helm"

// helmPackage is the program in it.
const helmPackage = "helm.sh/helm/v4/cmd/helm"

// Helm returns the path of a helm of the version that is pinned. Like [Binary] it is built once a machine, which takes minutes.
func Helm(ctx context.Context, log *slog.Logger) (string, error) {
	return kept(ctx, helmSource, "helm-", func(dir, path string) error { return buildHelm(ctx, log, dir, path) })
}

var helmRequirement = regexp.MustCompile(`(?m)^\s*helm\.sh/helm/v4 (v\S+)`)

func buildHelm(ctx context.Context, log *slog.Logger, dir, path string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	version := helmRequirement.FindSubmatch(raw)
	if version == nil {
		return fmt.Errorf("%s/go.mod requires no helm", dir)
	}
	log.Info("building helm; the first time this takes minutes", "version", string(version[1]), "file", path)
	begun := time.Now()
	part := path + ".part"
	flags := "-s -w -X helm.sh/helm/v4/internal/version.version=" + string(version[1])
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", part, helmPackage) //nolint:gosec // ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build helm in %s: %w\n%s", dir, err, tail(out, 40))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	log.Info("built helm", "took", time.Since(begun).Round(time.Second))
	return nil
}
