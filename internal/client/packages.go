package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const packagesPath = "/vnfpkgm/v1/vnf_packages"

// PackageQuery selects VNF packages and their attributes (SOL013 §5.2, §5.3).
type PackageQuery struct {
	Filter, Fields, ExcludeFields string
	AllFields, ExcludeDefault     bool
}

func (q PackageQuery) encode() string {
	var parts []string
	if q.AllFields {
		parts = append(parts, "all_fields")
	}
	if q.ExcludeDefault {
		parts = append(parts, "exclude_default")
	}
	values := url.Values{}
	set(values, "filter", q.Filter)
	set(values, "fields", q.Fields)
	set(values, "exclude_fields", q.ExcludeFields)
	if len(values) > 0 {
		parts = append(parts, values.Encode())
	}
	return strings.Join(parts, "&")
}

// CreatePackage creates a VNF package resource (SOL005 v2.6.1 §9.4.2.3.1). UserData may be nil.
func (c *Client) CreatePackage(ctx context.Context, userData *Object) (*Object, error) {
	body := NewObject()
	if userData != nil {
		body.Set("userDefinedData", userData)
	}
	return c.object(ctx, request{method: http.MethodPost, path: packagesPath, body: body})
}

// Packages lists VNF packages (§9.4.2.3.2), all pages.
func (c *Client) Packages(ctx context.Context, q PackageQuery) ([]*Object, error) {
	return c.list(ctx, request{method: http.MethodGet, path: packagesPath, query: q.encode()}, "vnf_packages")
}

// Package reads one VNF package (§9.4.3.3.2).
func (c *Client) Package(ctx context.Context, id string) (*Object, error) {
	return c.object(ctx, request{method: http.MethodGet, path: packagesPath + "/" + seg(id)})
}

// UpdatePackage changes a package's operational state and user data (§9.4.3.3.4) and returns the modifications.
func (c *Client) UpdatePackage(ctx context.Context, id, operationalState string, userData *Object) (*Object, error) {
	body := NewObject()
	if userData != nil {
		body.Set("userDefinedData", userData)
	}
	if operationalState != "" {
		body.Set("operationalState", operationalState)
	}
	return c.object(ctx, request{method: http.MethodPatch, path: packagesPath + "/" + seg(id), body: body})
}

// DeletePackage deletes a VNF package (§9.4.3.3.5).
func (c *Client) DeletePackage(ctx context.Context, id string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, path: packagesPath + "/" + seg(id)})
	return err
}

// UploadPackage sends a package's CSAR file (§9.4.5.3.3).
func (c *Client) UploadPackage(ctx context.Context, id, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return &InputError{Reason: fmt.Sprintf("File %s does not exist or user does not have read privileges to it", file)}
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at %s: %w", file, err)
	}
	if !st.Mode().IsRegular() {
		return &InputError{Reason: fmt.Sprintf("%s is not a file", file)}
	}
	_, err = c.call(ctx, request{
		method: http.MethodPut, path: packagesPath + "/" + seg(id) + "/package_content",
		// The transport closes what it sends; a request may have to be sent again.
		stream: keepOpen{f}, length: st.Size(), contentType: "application/zip",
	})
	return err
}

// keepOpen hides a file's Close.
type keepOpen struct{ io.ReadSeeker }

// UploadFromURI has the server fetch a package (§9.4.6.3.1).
func (c *Client) UploadFromURI(ctx context.Context, id, uri, user, password string) error {
	body := NewObject().Set("addressInformation", uri)
	if user != "" {
		body.Set("userName", user)
	}
	if password != "" {
		body.Set("password", password)
	}
	_, err := c.call(ctx, request{method: http.MethodPost, path: packagesPath + "/" + seg(id) + "/package_content/upload_from_uri", body: body})
	return err
}

// WaitOnboarded looks until a package is ONBOARDED. A package that falls back to CREATED is an error that says why.
func (c *Client) WaitOnboarded(ctx context.Context, id string, p Progress) error {
	began := c.now()
	pause := pauses{}
	for {
		o, err := c.Package(ctx, id)
		if err != nil {
			return err
		}
		state := o.Text("onboardingState")
		p.Update(state, fmt.Sprintf("VNF package %s: %s", id, state), c.now().Sub(began))
		switch state {
		case "ONBOARDED":
			p.Done()
			return nil
		case "CREATED", "ERROR":
			p.Done()
			why := "the server gave no reason"
			if d, ok := o.Values["onboardingFailureDetails"].(*Object); ok && d.Text("detail") != "" {
				why = d.Text("detail")
			}
			return fmt.Errorf("onboarding of VNF package %s failed: %s", id, why)
		}
		if err := c.sleep(ctx, pause.next(state)); err != nil {
			return err
		}
	}
}

// DownloadPackage writes a package's CSAR to w (§9.4.5.3.2).
func (c *Client) DownloadPackage(ctx context.Context, id string, w io.Writer) error {
	return c.download(ctx, packagesPath+"/"+seg(id)+"/package_content", "application/zip", w)
}

// DownloadVNFD writes a package's VNFD to w (§9.4.4.3.2); accept is text/plain, application/zip or both.
func (c *Client) DownloadVNFD(ctx context.Context, id, accept string, w io.Writer) error {
	if accept == "both" {
		accept = "text/plain,application/zip"
	}
	return c.download(ctx, packagesPath+"/"+seg(id)+"/vnfd", accept, w)
}

// DownloadArtifact writes one file of a package to w (§9.4.7.3.2).
func (c *Client) DownloadArtifact(ctx context.Context, id, artifact string, w io.Writer) error {
	parts := strings.Split(artifact, "/")
	for i := range parts {
		parts[i] = seg(parts[i])
	}
	return c.download(ctx, packagesPath+"/"+seg(id)+"/artifacts/"+strings.Join(parts, "/"), "*/*", w)
}

func (c *Client) download(ctx context.Context, path, accept string, w io.Writer) error {
	resp, err := c.open(ctx, request{method: http.MethodGet, path: path, accept: accept})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(w, resp.Body)
	if err != nil {
		return fmt.Errorf("download %s (after %d bytes): %w", path, n, err)
	}
	if resp.ContentLength >= 0 && n != resp.ContentLength {
		return fmt.Errorf("download %s: %d bytes of %d came", path, n, resp.ContentLength)
	}
	return nil
}

// SaveFile runs a download into a file, which appears under its name only when it is whole. An empty name is w.
func SaveFile(name string, w io.Writer, download func(io.Writer) error) error {
	if name == "" {
		return download(w)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".download-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := errors.Join(download(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// pauses grow while nothing changes: quick answers to quick operations, few questions about slow ones.
type pauses struct {
	last string
	d    time.Duration
}

func (p *pauses) next(state string) time.Duration {
	if state != p.last || p.d == 0 {
		p.last, p.d = state, 100*time.Millisecond
		return p.d
	}
	p.d = min(p.d*3/2, 2*time.Second)
	return p.d
}
