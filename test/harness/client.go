package harness

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

// Client drives one node's API.
type Client struct {
	URL   string
	Token string // sent as X-Auth-Token when not empty
	HTTP  *http.Client
}

// NewClient makes a client of the API at url.
func NewClient(url string) *Client {
	tr := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	tr.MaxIdleConnsPerHost = 256
	return &Client{URL: url, HTTP: &http.Client{Transport: tr, Timeout: 10 * time.Minute}}
}

// Response is an answer that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// StatusError is an answer of 400 and more.
type StatusError struct {
	Method, Path string
	Status       int
	Detail       string // the problem's detail, else the whole body
}

// Error words the answer.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s answers %d: %s", e.Method, e.Path, e.Status, e.Detail)
}

// Send sends a request and reads the answer, whatever its status. contentType "" sends none.
func (c *Client) Send(ctx context.Context, method, path, contentType string, body []byte) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.Token != "" {
		req.Header.Set("X-Auth-Token", c.Token)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: raw}, nil
}

// Call sends in as JSON (nothing when nil) and decodes the answer into out (ignored when nil). An answer of 400 and more
// is a *[StatusError].
func (c *Client) Call(ctx context.Context, method, path string, in, out any) (*Response, error) {
	var body []byte
	contentType := ""
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		contentType = "application/json"
	}
	r, err := c.Send(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	if r.Status >= 400 {
		return r, &StatusError{Method: method, Path: path, Status: r.Status, Detail: Detail(r.Body)}
	}
	if out != nil && len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, out); err != nil {
			return r, fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
		}
	}
	return r, nil
}

// Detail finds the words of an error's body: RFC 7807's or those of the VIM API.
func Detail(body []byte) string {
	var p struct {
		Detail      string
		TackerError struct{ Message string }
	}
	if json.Unmarshal(body, &p) == nil && p.Detail+p.TackerError.Message != "" {
		return p.Detail + p.TackerError.Message
	}
	return strings.TrimSpace(string(body))
}

const (
	packagesPath  = "/vnfpkgm/v1/vnf_packages"
	instancesPath = "/vnflcm/v1/vnf_instances"
	opOccsPath    = "/vnflcm/v1/vnf_lcm_op_occs"
	vimsPath      = "/v1.0/vims.json"

	subscriptionsPath = "/vnflcm/v1/subscriptions"
)

// Onboard creates a package, uploads the zip and waits until it is onboarded. The error has the package's
// onboardingFailureDetails when it was refused.
func (c *Client) Onboard(ctx context.Context, zip []byte) (*sol003.VnfPkgInfo, error) {
	p, err := c.CreatePackage(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Upload(ctx, p.Id, zip); err != nil {
		return nil, err
	}
	return c.AwaitOnboarded(ctx, p.Id)
}

// CreatePackage creates an empty package.
func (c *Client) CreatePackage(ctx context.Context) (*sol003.VnfPkgInfo, error) {
	p := new(sol003.VnfPkgInfo)
	_, err := c.Call(ctx, http.MethodPost, packagesPath, map[string]any{}, p)
	return p, err
}

// Upload uploads a package's content.
func (c *Client) Upload(ctx context.Context, id string, zip []byte) error {
	path := packagesPath + "/" + id + "/package_content"
	r, err := c.Send(ctx, http.MethodPut, path, "application/zip", zip)
	if err == nil && r.Status != http.StatusAccepted {
		err = &StatusError{Method: http.MethodPut, Path: path, Status: r.Status, Detail: Detail(r.Body)}
	}
	return err
}

// ErrRefused is in the chain of the error when a package went back to CREATED.
var ErrRefused = errors.New("the package was refused")

// AwaitOnboarded waits until an uploaded package is onboarded or refused. Connection errors are waited out.
func (c *Client) AwaitOnboarded(ctx context.Context, id string) (*sol003.VnfPkgInfo, error) {
	p := new(sol003.VnfPkgInfo)
	err := Await(ctx, "package "+id+" is onboarded", func(ctx context.Context) (bool, error) {
		*p = sol003.VnfPkgInfo{}
		if _, err := c.Call(ctx, http.MethodGet, packagesPath+"/"+id, nil, p); err != nil {
			return false, lasting(err)
		}
		if p.OnboardingState == sol003.PackageOnboardingStateTypeCreated {
			detail := "no reason given"
			if p.OnboardingFailureDetails != nil {
				detail = p.OnboardingFailureDetails.Detail
			}
			return false, fmt.Errorf("%w: %s", ErrRefused, detail)
		}
		return p.OnboardingState == sol003.PackageOnboardingStateTypeOnboarded, nil
	})
	return p, err
}

// DeletePackage disables a package and deletes it.
func (c *Client) DeletePackage(ctx context.Context, id string) error {
	if _, err := c.Call(ctx, http.MethodPatch, packagesPath+"/"+id, map[string]any{"operationalState": "DISABLED"}, nil); err != nil {
		return err
	}
	_, err := c.Call(ctx, http.MethodDelete, packagesPath+"/"+id, nil, nil)
	return err
}

// RegisterVIM registers the simulated OpenStack at authURL as python-tackerclient does, and returns the VIM's id.
func (c *Client) RegisterVIM(ctx context.Context, name, authURL string) (string, error) {
	return c.Register(ctx, name, OpenStack{AuthURL: authURL, User: User, Password: Password, Project: Project})
}

// Register registers an account of an OpenStack as python-tackerclient does, and returns the VIM's id.
func (c *Client) Register(ctx context.Context, name string, o OpenStack) (string, error) {
	var out struct {
		Vim struct {
			ID string `json:"id"`
		} `json:"vim"`
	}
	_, err := c.Call(ctx, http.MethodPost, vimsPath, map[string]any{"vim": map[string]any{
		"auth_url": o.AuthURL, "type": "openstack",
		"vim_project": map[string]any{"name": o.Project, "project_domain_name": "Default"},
		"auth_cred":   map[string]any{"username": o.User, "password": o.Password, "user_domain_name": "Default", "cert_verify": "True"},
		"name":        name, "is_default": false,
	}}, &out)
	return out.Vim.ID, err
}

// CreateInstance creates a VNF instance.
func (c *Client) CreateInstance(ctx context.Context, vnfdID string) (*sol003.VnfInstance, error) {
	i := new(sol003.VnfInstance)
	_, err := c.Call(ctx, http.MethodPost, instancesPath, map[string]any{"vnfdId": vnfdID}, i)
	return i, err
}

// Instance reads a VNF instance.
func (c *Client) Instance(ctx context.Context, id string) (*sol003.VnfInstance, error) {
	i := new(sol003.VnfInstance)
	_, err := c.Call(ctx, http.MethodGet, instancesPath+"/"+id, nil, i)
	return i, err
}

// DeleteInstance deletes a VNF instance.
func (c *Client) DeleteInstance(ctx context.Context, id string) error {
	_, err := c.Call(ctx, http.MethodDelete, instancesPath+"/"+id, nil, nil)
	return err
}

// Instantiate asks for an instantiation on a VIM and returns the op occ's id. The request lacks vimConnectionInfo.
func (c *Client) Instantiate(ctx context.Context, id, vimID string, request map[string]any) (string, error) {
	return c.Task(ctx, id, "instantiate", OnVIM(request, vimID))
}

// OnVIM returns a copy of an InstantiateVnfRequest with the VIM filled in.
func OnVIM(request map[string]any, vimID string) map[string]any {
	out := map[string]any{"vimConnectionInfo": []any{map[string]any{"id": "vim-of-the-test", "vimId": vimID, "vimType": "openstack"}}}
	for k, v := range request {
		out[k] = v
	}
	return out
}

// Terminate asks for a forceful termination and returns the op occ's id.
func (c *Client) Terminate(ctx context.Context, id string) (string, error) {
	return c.Task(ctx, id, "terminate", map[string]any{"terminationType": "FORCEFUL"})
}

// Task asks for a task of an instance (scale, heal, …) and returns the op occ's id.
func (c *Client) Task(ctx context.Context, id, task string, body any) (string, error) {
	return c.operation(ctx, http.MethodPost, instancesPath+"/"+id+"/"+task, body)
}

// Modify asks for a merge patch of an instance and returns the op occ's id.
func (c *Client) Modify(ctx context.Context, id string, patch any) (string, error) {
	return c.operation(ctx, http.MethodPatch, instancesPath+"/"+id, patch)
}

func (c *Client) operation(ctx context.Context, method, path string, body any) (string, error) {
	r, err := c.Call(ctx, method, path, body, nil)
	if err != nil {
		return "", err
	}
	location := r.Header.Get("Location")
	_, op, ok := strings.Cut(location, opOccsPath+"/")
	if r.Status != http.StatusAccepted || !ok {
		return "", fmt.Errorf("%s %s: status %d, Location %q", method, path, r.Status, location)
	}
	return op, nil
}

// OpOccTask asks for a task of an op occ: retry, rollback, fail or cancel. body is nil for all but cancel.
func (c *Client) OpOccTask(ctx context.Context, opOcc, task string, body any) error {
	_, err := c.Call(ctx, http.MethodPost, opOccsPath+"/"+opOcc+"/"+task, body, nil)
	return err
}

// Subscribe subscribes a callback to all notifications and returns the subscription's id.
func (c *Client) Subscribe(ctx context.Context, callback string) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	_, err := c.Call(ctx, http.MethodPost, subscriptionsPath, map[string]any{"callbackUri": callback}, &out)
	return out.ID, err
}

// OpOcc reads an op occ.
func (c *Client) OpOcc(ctx context.Context, id string) (*sol003.VnfLcmOpOcc, error) {
	o := new(sol003.VnfLcmOpOcc)
	_, err := c.Call(ctx, http.MethodGet, opOccsPath+"/"+id, nil, o)
	return o, err
}

// OpOccs lists the op occs of an instance.
func (c *Client) OpOccs(ctx context.Context, instanceID string) ([]sol003.VnfLcmOpOcc, error) {
	var out []sol003.VnfLcmOpOcc
	_, err := c.Call(ctx, http.MethodGet, opOccsPath+"?filter=(eq,vnfInstanceId,"+instanceID+")", nil, &out)
	return out, err
}

// AwaitOpOcc waits until an operation has come to a state in which nothing goes on. Connection errors are waited out.
func (c *Client) AwaitOpOcc(ctx context.Context, id string) (*sol003.VnfLcmOpOcc, error) {
	var op *sol003.VnfLcmOpOcc
	err := Await(ctx, "op occ "+id+" has ended", func(ctx context.Context) (bool, error) {
		got, err := c.OpOcc(ctx, id)
		if err != nil {
			return false, lasting(err)
		}
		op = got
		switch op.OperationState {
		case sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateRollingBack:
			return false, nil
		}
		return true, nil
	})
	return op, err
}

// lasting returns err unless it is one that passes: no connection, or a server that is about to end.
func lasting(err error) error {
	var status *StatusError
	var decode *json.SyntaxError
	if errors.As(err, &status) && status.Status != http.StatusServiceUnavailable || errors.As(err, &decode) {
		return err
	}
	return nil
}
