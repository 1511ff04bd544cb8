package vimsim

import (
	"context"
	"crypto/md5" //nolint:gosec // Glance's legacy checksum
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// keptBytes is how much of an image's content is kept for download; more is
// hashed and counted only.
const keptBytes = 1 << 20

var imageReadOnly = []string{"id", "status", "owner", "size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at", "file", "self", "schema", "virtual_size"}

func (c *Cloud) makeSeedImage(name, owner string) {
	data := []byte(strings.Repeat(name+"\n", 64))
	d := c.newImage(owner, doc{"name": name, "visibility": "public", "disk_format": "qcow2", "container_format": "bare"})
	m, s := md5.Sum(data), sha512.Sum512(data) //nolint:gosec // legacy checksum
	c.images.put(str(d, "id"), with(d, "status", "active", "size", int64(len(data)), "checksum", hex.EncodeToString(m[:]), "os_hash_algo", "sha512", "os_hash_value", hex.EncodeToString(s[:])))
	c.blobs[str(d, "id")] = data
}

// newImage makes a queued image; callers hold mu.
func (c *Cloud) newImage(owner string, q doc) doc {
	id := str(q, "id")
	if id == "" {
		id = newID()
	}
	now := c.now()
	d := doc{
		"id": id, "name": nil, "visibility": "shared", "container_format": nil, "disk_format": nil, "min_disk": int64(0), "min_ram": int64(0),
		"protected": false, "os_hidden": false, "tags": []any{}, "virtual_size": nil, "size": nil, "checksum": nil, "os_hash_algo": nil, "os_hash_value": nil,
	}
	for k, v := range q {
		d[k] = v
	}
	d["id"], d["status"], d["owner"], d["created_at"], d["updated_at"] = id, "queued", owner, now, now
	d["self"], d["file"], d["schema"] = "/v2/images/"+id, "/v2/images/"+id+"/file", "/v2/schemas/image"
	c.images.put(id, d)
	return d
}

func (c *Cloud) setImage(id string, kv ...any) bool {
	d, found := c.images.get(id)
	if found {
		c.images.put(id, with(with(d, kv...), "updated_at", c.now()))
	}
	return found
}

func imageVisible(d doc, project string) bool {
	return str(d, "owner") == project || str(d, "visibility") == "public" || str(d, "visibility") == "community"
}

// findImage resolves a name or id as Heat does; the error has Heat's wording.
func (c *Cloud) findImage(project, nameOrID string) (doc, error) {
	if d, found := c.images.get(nameOrID); found && imageVisible(d, project) {
		return d, nil
	}
	l := c.images.list(func(d doc) bool { return str(d, "name") == nameOrID && imageVisible(d, project) })
	switch len(l) {
	case 0:
		return nil, fmt.Errorf("No images matching {'name': '%s'}.", nameOrID)
	case 1:
		return l[0], nil
	}
	return nil, fmt.Errorf("No images unique match found for {'name': '%s'}.", nameOrID)
}

func (c *Cloud) routeGlance(r chi.Router) {
	open := func(f handlerFunc) http.HandlerFunc { return c.handle(glanceShape, true, f) }
	authed := func(f handlerFunc) http.HandlerFunc { return c.handle(glanceShape, false, f) }
	versions := open(func(r *request) (reply, error) {
		return status(300, doc{"versions": []doc{{"id": "v2.15", "status": "CURRENT", "links": []doc{{"rel": "self", "href": r.root + "/image/v2/"}}}}})
	})
	r.Get("/image", versions)
	r.Get("/image/v2", versions)
	r.Get("/image/versions", versions)
	const base = "/image/v2/images"
	r.Get("/image/v2/info/import", authed(func(*request) (reply, error) {
		return ok(doc{"import-methods": doc{"description": "Import methods available.", "type": "array", "value": []string{"web-download"}}})
	}))
	r.Get("/image/v2/schemas/image", authed(func(*request) (reply, error) {
		return ok(doc{"name": "image", "properties": doc{}, "additionalProperties": doc{"type": "string"}})
	}))
	r.Get(base, authed(c.listImages))
	r.Post(base, authed(c.createImage))
	r.Get(base+"/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d, err := c.visibleImage(r)
		if err != nil {
			return reply{}, err
		}
		return ok(public(d))
	}))
	r.Patch(base+"/{id}", authed(c.patchImage))
	r.Delete(base+"/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d, err := c.visibleImage(r)
		if err != nil {
			return reply{}, err
		}
		if d["protected"] == true {
			return reply{}, fail(403, "", "Image "+r.arg("id")+" is protected and cannot be deleted.")
		}
		c.images.del(r.arg("id"))
		delete(c.blobs, r.arg("id"))
		return status(204, nil)
	}))
	r.Put(base+"/{id}/file", authed(c.uploadImage))
	r.Get(base+"/{id}/file", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d, err := c.visibleImage(r)
		if err != nil {
			return reply{}, err
		}
		b := c.blobs[r.arg("id")]
		if str(d, "status") != "active" || b == nil {
			return status(204, nil)
		}
		return reply{status: 200, raw: b, header: http.Header{"Content-Type": {"application/octet-stream"}, "Content-Md5": {str(d, "checksum")}}}, nil
	}))
	r.Post(base+"/{id}/import", authed(c.importImage))
	r.Put(base+"/{id}/tags/{tag}", authed(func(r *request) (reply, error) { return c.tagImage(r, true) }))
	r.Delete(base+"/{id}/tags/{tag}", authed(func(r *request) (reply, error) { return c.tagImage(r, false) }))
}

func (c *Cloud) visibleImage(r *request) (doc, error) {
	d, found := c.images.get(r.arg("id"))
	if !found || !imageVisible(d, r.s.project.id) && !r.s.admin() {
		return nil, fail(404, "", "No image found with ID "+r.arg("id"))
	}
	return d, nil
}

func (c *Cloud) listImages(r *request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := r.URL.Query()
	l := c.images.list(func(d doc) bool {
		if !imageVisible(d, r.s.project.id) {
			return false
		}
		tags, _ := d["tags"].([]any)
		for _, t := range q["tag"] {
			if !slices.Contains(tags, any(t)) {
				return false
			}
		}
		if n := q.Get("name"); n != "" {
			if list, isIn := strings.CutPrefix(n, "in:"); isIn {
				if !slices.Contains(strings.Split(list, ","), str(d, "name")) {
					return false
				}
			} else if str(d, "name") != n {
				return false
			}
		}
		return true
	})
	// Glance lists the newest first unless told otherwise.
	if !strings.HasSuffix(q.Get("sort"), ":asc") && q.Get("sort_dir") != "asc" {
		slices.Reverse(l)
	}
	l = filter(l, q, "tag", "name", "sort", "member_status", "size_min", "size_max", "created_at", "updated_at")
	if q.Get("limit") == "" {
		q.Set("limit", "25")
	}
	l, more, err := page(l, q, "id")
	if err != nil {
		return reply{}, err
	}
	out := make([]doc, len(l))
	for i, d := range l {
		out[i] = public(d)
	}
	first := r.URL.Query()
	first.Del("marker")
	link := func(v url.Values) string {
		if len(v) == 0 {
			return "/v2/images"
		}
		return "/v2/images?" + v.Encode()
	}
	body := doc{"images": out, "first": link(first), "schema": "/v2/schemas/images"}
	if more {
		first.Set("marker", str(l[len(l)-1], "id"))
		body["next"] = link(first)
	}
	return ok(body)
}

func (c *Cloud) createImage(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	for k := range q {
		if k != "id" && k != "owner" && slices.Contains(imageReadOnly, k) {
			return reply{}, fail(403, "", "Attribute '"+k+"' is read-only.")
		}
	}
	if v, given := q["visibility"]; given && !slices.Contains([]any{"public", "private", "shared", "community"}, v) {
		return reply{}, fail(400, "", "Provided object does not match schema 'image': "+hot.String(v)+" is not one of ['community', 'public', 'private', 'shared']")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, dup := c.images.get(str(q, "id")); dup {
		return reply{}, fail(409, "", "Image ID "+str(q, "id")+" already exists!")
	}
	d := c.newImage(r.s.project.id, q)
	return reply{status: 201, body: public(d), header: http.Header{
		"Location":                       {r.root + "/image/v2/images/" + str(d, "id")},
		"Openstack-Image-Import-Methods": {"web-download"},
	}}, nil
}

func (c *Cloud) patchImage(r *request) (reply, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/openstack-images-v2") {
		return reply{}, fail(415, "", "Unsupported Content-Type: "+r.Header.Get("Content-Type"))
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return reply{}, fail(400, "", "The request body could not be read.")
	}
	var ops []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(b, &ops); err != nil {
		return reply{}, fail(400, "", "Request body must be a JSON array of operation objects.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.visibleImage(r)
	if err != nil {
		return reply{}, err
	}
	d = with(d)
	for _, o := range ops {
		k := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(o.Path, "/"))
		if slices.Contains(imageReadOnly, k) {
			return reply{}, fail(403, "", "Attribute '"+k+"' is read-only.")
		}
		_, have := d[k]
		switch o.Op {
		case "add":
			d[k] = hot.Normalize(o.Value)
		case "replace", "remove":
			if !have {
				return reply{}, fail(409, "", "Property "+k+" does not exist.")
			}
			if d[k] = hot.Normalize(o.Value); o.Op == "remove" {
				delete(d, k)
			}
		default:
			return reply{}, fail(400, "", "Operations must be one of add, remove, replace.")
		}
	}
	d["updated_at"] = c.now()
	c.images.put(str(d, "id"), d)
	return ok(public(d))
}

// imageFault applies a fault on image data; it returns a reason to fail.
func (c *Cloud) imageFault(ctx context.Context, name string) string {
	c.mu.Lock()
	f := c.engineFault("OS::Glance::Image", "create", name)
	lat, known := c.latency["glance"]
	if !known {
		lat = c.latency["*"]
	}
	c.mu.Unlock()
	if f != nil {
		switch f.Effect {
		case EffectSlow:
			lat += time.Duration(f.Delay)
		case EffectHang:
			select {
			case <-f.gone:
			case <-ctx.Done():
				return context.Cause(ctx).Error()
			}
		default:
			return orText(f.Reason, "An injected fault.")
		}
	}
	if err := c.sleep(ctx, lat); err != nil {
		return err.Error()
	}
	return ""
}

func orText(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

// store reads an image's data and makes it active.
func (c *Cloud) store(id string, data io.Reader) error {
	m, s := md5.New(), sha512.New() //nolint:gosec // legacy checksum
	head := &headBuffer{}
	n, err := io.Copy(io.MultiWriter(m, s, head), data)
	if err != nil {
		return fmt.Errorf("read the data of image %s: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setImage(id, "status", "active", "size", n, "checksum", hex.EncodeToString(m.Sum(nil)), "os_hash_algo", "sha512", "os_hash_value", hex.EncodeToString(s.Sum(nil))) && n <= keptBytes {
		c.blobs[id] = head.b
	}
	return nil
}

type headBuffer struct{ b []byte }

func (h *headBuffer) Write(p []byte) (int, error) {
	if room := keptBytes - len(h.b); room > 0 {
		h.b = append(h.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (c *Cloud) claim(r *request, to string) (doc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.visibleImage(r)
	if err != nil {
		return nil, err
	}
	if d["container_format"] == nil || d["disk_format"] == nil {
		return nil, fail(400, "", "Properties disk_format, container_format must be set prior to saving data.")
	}
	if st := str(d, "status"); st != "queued" {
		return nil, fail(409, "", "Image status transition from "+st+" to "+to+" is not allowed")
	}
	c.setImage(str(d, "id"), "status", to)
	return d, nil
}

func (c *Cloud) uploadImage(r *request) (reply, error) {
	if ct := r.Header.Get("Content-Type"); ct != "application/octet-stream" {
		return reply{}, fail(415, "", "Unsupported Media Type")
	}
	d, err := c.claim(r, "saving")
	if err != nil {
		return reply{}, err
	}
	id := str(d, "id")
	if why := c.imageFault(r.Context(), str(d, "name")); why != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.setImage(id, "status", "killed")
		return reply{}, fail(500, "", why)
	}
	if err := c.store(id, r.Body); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.setImage(id, "status", "queued")
		return reply{}, fail(400, "", err.Error())
	}
	return status(204, nil)
}

func (c *Cloud) importImage(r *request) (reply, error) {
	q, err := r.json()
	if err != nil {
		return reply{}, err
	}
	m := sub(q, "method")
	if str(m, "name") != "web-download" {
		return reply{}, fail(400, "", "Unknown import method name '"+str(m, "name")+"'.")
	}
	u, err := url.Parse(str(m, "uri"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return reply{}, fail(400, "", "Invalid uri filtering scheme: "+str(m, "uri"))
	}
	d, err := c.claim(r, "importing")
	if err != nil {
		return reply{}, err
	}
	id, name := str(d, "id"), str(d, "name")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goFunc(func() {
		if err := c.download(id, name, u.String()); err != nil {
			c.log.Info("image import failed", "image", id, "uri", u.Redacted(), "err", err)
			c.mu.Lock()
			defer c.mu.Unlock()
			// Glance puts a failed import back to queued, and names the store that has nothing.
			c.setImage(id, "status", "queued", "os_glance_failed_import", "file")
		}
	})
	return status(202, nil)
}

func (c *Cloud) download(id, name, uri string) error {
	if why := c.imageFault(c.ctx, name); why != "" {
		return fmt.Errorf("import image %s: %s", id, why)
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, uri, nil)
	if err != nil {
		return fmt.Errorf("import image %s: %w", id, err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return fmt.Errorf("import image %s: %w", id, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("import image %s: %s answered %s", id, uri, resp.Status)
	}
	return c.store(id, resp.Body)
}

func (c *Cloud) tagImage(r *request, add bool) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.visibleImage(r)
	if err != nil {
		return reply{}, err
	}
	tags, _ := d["tags"].([]any)
	t := any(r.arg("tag"))
	have := slices.Contains(tags, t)
	switch {
	case add && !have:
		c.setImage(str(d, "id"), "tags", append(slices.Clone(tags), t))
	case !add && !have:
		return reply{}, fail(404, "", "Tag "+r.arg("tag")+" was not found")
	case !add:
		c.setImage(str(d, "id"), "tags", slices.DeleteFunc(slices.Clone(tags), func(x any) bool { return x == t }))
	}
	return status(204, nil)
}
