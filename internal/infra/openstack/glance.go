package openstack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// image is a Glance image as far as the driver looks at it.
type image struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Created      string `json:"created_at"`
	HashAlgo     string `json:"os_hash_algo"`
	HashValue    string `json:"os_hash_value"`
	Instance     string `json:"vnfm_instance_id"`
	Node         string `json:"vnfm_node"`
	Digest       string `json:"vnfm_digest"`
	ImportFailed string `json:"os_glance_failed_import"`
	ImportTask   string `json:"os_glance_import_task"`
}

// imageRequest is the body that creates an image. Sizes are Glance's: min_disk in GB, min_ram in MB.
type imageRequest struct {
	Name            string   `json:"name"`
	Visibility      string   `json:"visibility"`
	ContainerFormat string   `json:"container_format,omitempty"`
	DiskFormat      string   `json:"disk_format,omitempty"`
	MinDisk         int64    `json:"min_disk"`
	MinRAM          int64    `json:"min_ram"`
	Tags            []string `json:"tags"`
	Instance        string   `json:"vnfm_instance_id"`
	Node            string   `json:"vnfm_node"`
	Version         string   `json:"vnfm_version,omitempty"`
	Digest          string   `json:"vnfm_digest,omitempty"` // as the VNFD gives it: algorithm:hash
}

// callGlance makes one call to Glance. A status that is not in ok is an error, classed.
func (c *cloud) callGlance(ctx context.Context, doing, method string, body, answer any, ok []int, path ...string) (int, error) {
	glance, err := c.glance(ctx)
	if err != nil {
		return 0, err
	}
	return c.exchange(ctx, glance, doing, method, body, answer, ok, path)
}

// listImages returns all images that the query selects.
func (c *cloud) listImages(ctx context.Context, doing string, query url.Values) ([]image, error) {
	var all []image
	query.Set("limit", "100")
	for {
		var page struct {
			Images []image `json:"images"`
			Next   string  `json:"next"`
		}
		if _, err := c.callGlance(ctx, doing, http.MethodGet, nil, &page, []int{http.StatusOK}, "images?"+query.Encode()); err != nil {
			return nil, err
		}
		all = append(all, page.Images...)
		if page.Next == "" || len(page.Images) == 0 {
			return all, nil
		}
		query.Set("marker", page.Images[len(page.Images)-1].ID)
	}
}

// imagesOf returns the images made for an instance, the oldest first.
func (c *cloud) imagesOf(ctx context.Context, instanceID string) ([]image, error) {
	all, err := c.listImages(ctx, "look for the images of VNF instance "+instanceID, url.Values{"tag": {mark(instanceID)}})
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(all, func(i image) bool { return i.Instance != instanceID })
	slices.SortFunc(own, func(a, b image) int {
		if n := strings.Compare(a.Created, b.Created); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	return own, nil
}

// imagesNamed returns the active images of a name.
func (c *cloud) imagesNamed(ctx context.Context, name string) ([]image, error) {
	all, err := c.listImages(ctx, "look for image "+name, url.Values{"name": {name}, "status": {"active"}})
	return slices.DeleteFunc(all, func(i image) bool { return i.Name != name }), err
}

// image reads an image, nil when there is none.
func (c *cloud) image(ctx context.Context, id string) (*image, error) {
	one := new(image)
	status, err := c.callGlance(ctx, "read image "+id, http.MethodGet, nil, one, []int{http.StatusOK}, "images", id)
	if status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return one, nil
}

func (c *cloud) createImage(ctx context.Context, r *imageRequest) (*image, error) {
	one := new(image)
	_, err := c.callGlance(ctx, "create image "+r.Name, http.MethodPost, r, one, []int{http.StatusCreated}, "images")
	return one, err
}

// uploadImage streams an image's data. One that has its data already is fine. It may take long, but not stand still.
func (c *cloud) uploadImage(ctx context.Context, id string, data io.Reader) error {
	glance, err := c.glance(ctx)
	if err != nil {
		return err
	}
	still := max(c.driver.cfg.CallTimeout, c.driver.cfg.ImageTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := &lcm.Error{Kind: lcm.KindRetryable, Detail: "VIM " + c.name + ": cannot upload image " + id + ": no progress for " + still.String()}
	timer := time.AfterFunc(still, func() { cancel(stalled) })
	timer.Stop() // until its turn has come
	defer timer.Stop()
	ctx = context.WithValue(ctx, uploadKey{}, func() { timer.Reset(still) })
	resp, err := glance.Put(ctx, glance.ServiceURL("images", id, "file"), watched{data, timer, still}, nil, &gophercloud.RequestOpts{
		MoreHeaders: map[string]string{"Content-Type": "application/octet-stream"},
		OkCodes:     []int{http.StatusNoContent, http.StatusConflict},
	})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), stalled):
		return stalled
	case err != nil:
		return c.wrap("upload image "+id, unwrapped(err))
	}
	return resp.Body.Close()
}

// watched puts a timer off whenever somebody reads on.
type watched struct {
	io.Reader
	timer *time.Timer
	still time.Duration
}

// Read implements io.Reader.
func (w watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.still)
	return w.Reader.Read(p)
}

// importImage asks Glance to download an image's data itself. An import under way is fine.
func (c *cloud) importImage(ctx context.Context, id, uri string) error {
	body := map[string]any{"method": map[string]any{"name": "web-download", "uri": uri}}
	_, err := c.callGlance(ctx, "import image "+id, http.MethodPost, body, nil, []int{http.StatusAccepted, http.StatusConflict}, "images", id, "import")
	return err
}

// deleteImage deletes an image; one that is gone is fine.
func (c *cloud) deleteImage(ctx context.Context, id string) error {
	_, err := c.callGlance(ctx, "delete image "+id, http.MethodDelete, nil, nil, []int{http.StatusNoContent, http.StatusNotFound}, "images", id)
	return err
}
