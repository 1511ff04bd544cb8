package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// params are the additionalParams that the driver goes by.
type params struct {
	Files     []string
	Namespace string
	Mapping   map[string]mapped // by VDU; nil: by the names that the VNFD gives

	// Of VNFs that are made of Helm charts, the releases and, by aspect, the value of a chart that is the number of replicas.
	Charts   []chart
	Replicas map[string]string

	helm   bool
	digest string // SHA-256 of the files, once they have been read
	// Once the charts have been rendered, the releases that they make, and their hooks.
	releases []release
	hooks    []object
}

// mapped is the workload that a VDU is.
type mapped struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Release string `json:"helmreleasename"`
}

// filesKey is the parameter that names the definition files.
const filesKey = "lcm-kubernetes-def-files"

// paramsOf reads the additionalParams that the instance has been instantiated with. Terminal: one is of another type.
func paramsOf(x *lcm.Execution) (*params, error) {
	given := requestOf(x).AdditionalParams
	p := &params{}
	for key, into := range map[string]any{
		filesKey: &p.Files, namespaceKey: &p.Namespace, "vdu_mapping": &p.Mapping, chartsKey: &p.Charts, replicasKey: &p.Replicas,
	} {
		v, ok := given[key]
		if !ok || v == nil {
			continue
		}
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "additionalParams.%s is not of the right type: %w", key, err)
		}
	}
	if p.helm = isTrue(given[helmKey]); p.helm {
		return p, p.complete(x)
	}
	if len(p.Files) == 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "additionalParams.%s is missing: it lists the manifests of the VNF, by their paths in the package or by URL", filesKey)
	}
	return p, nil
}

// requestOf returns what the instance was instantiated with, or is to be.
func requestOf(x *lcm.Execution) *sol003.InstantiateVnfRequest {
	if x.Instance.Request != nil {
		return x.Instance.Request
	}
	req := new(sol003.InstantiateVnfRequest)
	if x.Op.Operation == sol003.LcmOperationTypeInstantiate && x.Params(req) == nil {
		return req
	}
	if x.Instance.Info != nil {
		req.AdditionalParams, req.InstantiationLevelId = x.Instance.Info.AdditionalParams, x.Instance.Info.InstantiationLevelId
	}
	return req
}

// read returns the objects of the definition files, in their order. Terminal: a file is none of the package's artifacts, or
// cannot be read.
func (d *Driver) read(ctx context.Context, x *lcm.Execution, p *params) ([]manifest, error) {
	content, err := x.Files(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	var out []manifest
	left := fresh()
	sum := sha256.New()
	shown := make([]string, len(p.Files))
	for n, name := range p.Files {
		shown[n] = label(name)
		raw, err := d.file(ctx, x, content, name)
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(sum, "%d:", len(raw))
		_, _ = sum.Write(raw)
		found, err := left.parse(shown[n], raw)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "there is no object in %s", strings.Join(shown, ", "))
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// label is what a file is called in messages, and in what is kept: an address may hold secrets.
func label(name string) string {
	if strings.Contains(name, "://") {
		return outbound.Shown(name)
	}
	return name
}

// file reads one definition file.
func (d *Driver) file(ctx context.Context, x *lcm.Execution, content lcm.PackageFS, name string) ([]byte, error) {
	if strings.Contains(name, "://") {
		if d.cfg.Fetch == nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "CNF definition file %s: no host is allowed to fetch from (kubernetes.uri_hosts)", outbound.Shown(name))
		}
		return d.cfg.Fetch.Fetch(ctx, name)
	}
	missing := lcm.Errorf(lcm.KindTerminal, "CNF definition file with path %s is not found in vnf_artifacts.", name)
	if x.Package != nil && !slices.ContainsFunc(x.Package.Artifacts, func(a sol003.VnfPackageArtifactInfo) bool { return a.ArtifactPath == name }) {
		return nil, missing
	}
	raw, err := content.ReadFile(path.Clean(name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("read %s of the package: %w", name, err)
	}
	return raw, nil
}
