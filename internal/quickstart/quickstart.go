// Package quickstart drives one VNF through its whole life over the REST API, as an NFVO would, and shows a person each
// step as it happens: a VIM registered, a package onboarded, an instance created, instantiated, shown, terminated and
// deleted.
package quickstart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Options say what to drive.
type Options struct {
	API     string         // the server, such as http://127.0.0.1:9890
	VIM     map[string]any // the body of POST /v1.0/vims, without its outer "vim"
	Package []byte         // a CSAR
	Request map[string]any // an InstantiateVnfRequest; vimConnectionInfo is filled in
	Keep    bool           // stop once instantiated, and leave everything running
	Screen  *Screen
	// Left tells what there is in the VIM after the termination; empty when nothing.
	Left func() string
}

// Result tells what was made.
type Result struct {
	VimID, PackageID, VnfdID, InstanceID string
	Vnfcs                                int
}

// Run drives the lifecycle. An error names the step that failed and what the server said.
func Run(ctx context.Context, o Options) (*Result, error) {
	d := &driver{Options: o, http: &http.Client{Timeout: 30 * time.Second}, result: &Result{}}
	steps := []struct {
		title string
		run   func(context.Context) (string, error)
	}{
		{"register the VIM", d.registerVIM},
		{"onboard the VNF package", d.onboard},
		{"create the VNF instance", d.create},
		{"instantiate it", d.instantiate},
		{"look at what it consists of", d.show},
	}
	if !o.Keep {
		steps = append(steps, []struct {
			title string
			run   func(context.Context) (string, error)
		}{
			{"terminate it", d.terminate},
			{"delete the instance and the package", d.remove},
		}...)
	}
	for _, s := range steps {
		o.Screen.Begin(s.title)
		said, err := s.run(ctx)
		if err != nil {
			o.Screen.Fail(err)
			return nil, fmt.Errorf("%s: %w", s.title, err)
		}
		o.Screen.Done(said)
	}
	return d.result, nil
}

type driver struct {
	Options
	http   *http.Client
	result *Result
}

func (d *driver) registerVIM(ctx context.Context) (string, error) {
	var out struct {
		Vim struct {
			ID      string `json:"id"`
			Name    string `json:"name"`
			AuthURL string `json:"auth_url"`
		} `json:"vim"`
	}
	if err := d.call(ctx, http.MethodPost, "/v1.0/vims", map[string]any{"vim": d.VIM}, &out); err != nil {
		return "", err
	}
	d.result.VimID = out.Vim.ID
	return fmt.Sprintf("%s, an OpenStack at %s", out.Vim.Name, out.Vim.AuthURL), nil
}

func (d *driver) onboard(ctx context.Context) (string, error) {
	var pkg sol003.VnfPkgInfo
	if err := d.call(ctx, http.MethodPost, "/vnfpkgm/v1/vnf_packages", map[string]any{}, &pkg); err != nil {
		return "", err
	}
	d.result.PackageID = pkg.Id
	path := "/vnfpkgm/v1/vnf_packages/" + pkg.Id
	if err := d.send(ctx, http.MethodPut, path+"/package_content", "application/zip", d.Package, nil, nil); err != nil {
		return "", err
	}
	for {
		if err := d.call(ctx, http.MethodGet, path, nil, &pkg); err != nil {
			return "", err
		}
		switch pkg.OnboardingState {
		case sol003.PackageOnboardingStateTypeOnboarded:
			d.result.VnfdID = pkg.VnfdId
			return fmt.Sprintf("%s %s by %s, VNFD %s", pkg.VnfProductName, pkg.VnfSoftwareVersion, pkg.VnfProvider, pkg.VnfdId), nil
		case sol003.PackageOnboardingStateTypeCreated:
			return "", fmt.Errorf("the package was refused: %s", pkg.OnboardingFailureDetails.Detail)
		default:
			d.Screen.Note(string(pkg.OnboardingState))
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func (d *driver) create(ctx context.Context) (string, error) {
	var vnf sol003.VnfInstance
	err := d.call(ctx, http.MethodPost, "/vnflcm/v1/vnf_instances", sol003.CreateVnfRequest{VnfdId: d.result.VnfdID, VnfInstanceName: "quickstart"}, &vnf)
	d.result.InstanceID = vnf.Id
	return vnf.Id, err
}

func (d *driver) instance() string { return "/vnflcm/v1/vnf_instances/" + d.result.InstanceID }

func (d *driver) instantiate(ctx context.Context) (string, error) {
	req := map[string]any{"vimConnectionInfo": []any{map[string]any{"id": "quickstart", "vimId": d.result.VimID, "vimType": "openstack"}}}
	for k, v := range d.Request {
		req[k] = v
	}
	return d.operation(ctx, d.instance()+"/instantiate", req)
}

func (d *driver) terminate(ctx context.Context) (string, error) {
	said, err := d.operation(ctx, d.instance()+"/terminate", map[string]any{"terminationType": "FORCEFUL"})
	if err == nil && d.Left != nil {
		if left := d.Left(); left != "" {
			return "", fmt.Errorf("the VIM still has %s", left)
		}
		said += "; nothing is left in the VIM"
	}
	return said, err
}

// operation starts an LCM operation and follows its occurrence to the end.
func (d *driver) operation(ctx context.Context, path string, body any) (string, error) {
	header := http.Header{}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	if err := d.send(ctx, http.MethodPost, path, "application/json", raw, nil, header); err != nil {
		return "", err
	}
	_, opOcc, ok := strings.Cut(header.Get("Location"), "/vnflcm/v1/")
	if !ok {
		return "", errors.New("the answer has no Location of the op occ")
	}
	begun := time.Now()
	for {
		var op sol003.VnfLcmOpOcc
		if err := d.call(ctx, http.MethodGet, "/vnflcm/v1/"+opOcc, nil, &op); err != nil {
			return "", err
		}
		switch op.OperationState {
		case sol003.LcmOperationStateCompleted:
			n := 0
			if op.ResourceChanges != nil {
				n = len(op.ResourceChanges.AffectedVnfcs)
			}
			return fmt.Sprintf("%d VNFCs in %.1f s", n, time.Since(begun).Seconds()), nil
		case sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing:
			d.Screen.Note(string(op.OperationState))
		default:
			detail := "no reason given"
			if op.Error != nil {
				detail = op.Error.Detail
			}
			return "", fmt.Errorf("%s ended in %s: %s", op.Operation, op.OperationState, detail)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func (d *driver) show(ctx context.Context) (string, error) {
	var vnf sol003.VnfInstance
	if err := d.call(ctx, http.MethodGet, d.instance(), nil, &vnf); err != nil {
		return "", err
	}
	if vnf.InstantiatedVnfInfo == nil {
		return "", errors.New("the instance is not instantiated")
	}
	byVDU := map[string]int{}
	var order []string
	for _, v := range vnf.InstantiatedVnfInfo.VnfcResourceInfo {
		if byVDU[v.VduId]++; byVDU[v.VduId] == 1 {
			order = append(order, v.VduId)
		}
		d.Screen.Line(fmt.Sprintf("%-12s server %s", v.VduId, v.ComputeResource.ResourceId))
	}
	d.result.Vnfcs = len(vnf.InstantiatedVnfInfo.VnfcResourceInfo)
	parts := make([]string, len(order))
	for n, vdu := range order {
		parts[n] = fmt.Sprintf("%d × %s", byVDU[vdu], vdu)
	}
	return "flavour " + vnf.InstantiatedVnfInfo.FlavourId + ": " + strings.Join(parts, ", "), nil
}

func (d *driver) remove(ctx context.Context) (string, error) {
	if err := d.call(ctx, http.MethodDelete, d.instance(), nil, nil); err != nil {
		return "", err
	}
	path := "/vnfpkgm/v1/vnf_packages/" + d.result.PackageID
	if err := d.call(ctx, http.MethodPatch, path, sol003.VnfPkgInfoModifications{OperationalState: sol003.PackageOperationalStateTypeDisabled}, nil); err != nil {
		return "", err
	}
	return "gone", d.call(ctx, http.MethodDelete, path, nil, nil)
}

func (d *driver) call(ctx context.Context, method, path string, body, out any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return d.send(ctx, method, path, "application/json", raw, out, nil)
}

// send sends one request; an answer of 400 and more becomes an error with the problem's detail.
func (d *driver) send(ctx context.Context, method, path, contentType string, body []byte, out any, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, method, d.API+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 400 {
		return fmt.Errorf("%s %s answers %s: %s", method, path, resp.Status, problem(raw))
	}
	for k, v := range resp.Header {
		if header != nil {
			header[k] = v
		}
	}
	if out == nil || len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// problem finds the words in an error's body: RFC 7807's or the vims API's.
func problem(raw []byte) string {
	var p struct {
		Detail      string
		TackerError struct{ Message string }
	}
	if json.Unmarshal(raw, &p) != nil || p.Detail+p.TackerError.Message == "" {
		return strings.TrimSpace(string(raw))
	}
	return p.Detail + p.TackerError.Message
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
