package openstack_test

import (
	"crypto/sha512"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// image makes an image without data, which the case's end deletes.
func (c *target) image(t *testing.T, more ...any) doc {
	t.Helper()
	d := c.glance.do(t, http.MethodPost, "images", with(doc{
		"name": "contract-" + unique(), "visibility": "private", "container_format": "bare", "disk_format": "raw", "min_disk": 0, "min_ram": 0,
	}, more...)).is(t, http.StatusCreated).doc
	t.Cleanup(func() {
		c.glance.do(t, http.MethodDelete, "images/"+text(d, "id"), nil).is(t, http.StatusNoContent, http.StatusNotFound)
	})
	return d
}

// TestImages: an image is made, given its data, found by tag and name, and deleted.
func TestImages(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		tag := "contract-" + unique()
		d := c.image(t, "tags", []string{tag}, "vnfm_node", "vdu", "min_disk", 1)
		id := text(d, "id")
		same(t, "state at first", text(d, "status"), "queued")
		same(t, "a property of ours", text(d, "vnfm_node"), "vdu")
		same(t, "owner", text(d, "owner"), c.project)
		same(t, "hash before there is data", at(d, "os_hash_value"), nil)

		data := []byte("the data of an image")
		c.glance.do(t, http.MethodPut, "images/"+id+"/file", data).is(t, http.StatusNoContent)
		d = c.glance.get(t, "images/"+id).doc
		sum := sha512.Sum512(data)
		same(t, "state", text(d, "status"), "active")
		same(t, "hash's algorithm", text(d, "os_hash_algo"), "sha512")
		same(t, "hash", text(d, "os_hash_value"), hex.EncodeToString(sum[:]))
		same(t, "size", at(d, "size"), any(float64(len(data))))
		c.glance.do(t, http.MethodPut, "images/"+id+"/file", data).is(t, http.StatusConflict)

		for _, query := range []string{"tag=" + tag, "name=" + text(d, "name"), "name=" + text(d, "name") + "&status=active", "tag=" + tag + "&limit=1"} {
			same(t, "?"+query, text(one(t, c.glance.get(t, "images?"+query), "images"), "id"), id)
		}
		for _, query := range []string{"tag=" + tag + "x", "name=" + text(d, "name") + "&status=queued", "name=none-" + tag} {
			if l := list(c.glance.get(t, "images?"+query).doc, "images"); len(l) > 0 {
				t.Errorf("?%s finds %v", query, l)
			}
		}
		// Names are not unique. Pages lead on.
		second := c.image(t, "tags", []string{tag}, "name", text(d, "name"))
		page := c.glance.get(t, "images?tag="+tag+"&limit=1")
		first := one(t, page, "images")
		if text(page.doc, "next") == "" {
			t.Error("the first page has no next one")
		}
		next := one(t, c.glance.get(t, "images?tag="+tag+"&limit=1&marker="+text(first, "id")), "images")
		if text(first, "id") == text(next, "id") {
			t.Error("both pages have the same image")
		}
		same(t, "the second image", text(second, "status"), "queued")

		c.glance.do(t, http.MethodDelete, "images/"+id, nil).is(t, http.StatusNoContent)
		c.glance.do(t, http.MethodGet, "images/"+id, nil).is(t, http.StatusNotFound)
		c.glance.do(t, http.MethodDelete, "images/"+id, nil).is(t, http.StatusNotFound)
		// Without formats there is nowhere to put data.
		bare := c.glance.do(t, http.MethodPost, "images", doc{"name": tag}).is(t, http.StatusCreated).doc
		t.Cleanup(func() { c.glance.do(t, http.MethodDelete, "images/"+text(bare, "id"), nil) })
		c.glance.do(t, http.MethodPut, "images/"+text(bare, "id")+"/file", data).is(t, http.StatusBadRequest)
		c.glance.do(t, http.MethodPost, "images", doc{"name": tag, "visibility": "nobody"}).is(t, http.StatusBadRequest)
	})
}

// TestImageImport: Glance downloads an image itself, or says that it could not.
func TestImageImport(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		data := []byte("what a server has")
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/image" {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(data)
		})
		server := httptest.NewUnstartedServer(handler)
		if c.real() { // Glance downloads from the usual ports of hosts only, and from none of its own
			_ = server.Listener.Close()
			server.Listener = outside(t)
		}
		server.Start()
		t.Cleanup(server.Close)
		load := func(id, uri string) *answer {
			return c.glance.do(t, http.MethodPost, "images/"+id+"/import", doc{"method": doc{"name": "web-download", "uri": uri}})
		}
		id := text(c.image(t), "id")
		load(id, "ftp://127.0.0.1/image").is(t, http.StatusBadRequest)
		if c.real() {
			load(id, "http://127.0.0.1:8/image").says(t, http.StatusBadRequest, "URI for web-download does not pass filtering: http://127.0.0.1:8/image")
		}
		load(id, server.URL+"/image").is(t, http.StatusAccepted)
		var d doc
		c.eventually(t, "the image is active", func() bool {
			d = c.glance.get(t, "images/"+id).doc
			return text(d, "status") == "active"
		}, func() any { return d })
		sum := sha512.Sum512(data)
		same(t, "hash", text(d, "os_hash_value"), hex.EncodeToString(sum[:]))
		load(id, server.URL+"/image").is(t, http.StatusConflict)

		// What is not there leaves the image as it was, with a word about it.
		id = text(c.image(t), "id")
		load(id, server.URL+"/none").is(t, http.StatusAccepted)
		c.eventually(t, "the import has failed", func() bool {
			d = c.glance.get(t, "images/"+id).doc
			return text(d, "os_glance_failed_import") != ""
		}, func() any { return d })
		same(t, "state", text(d, "status"), "queued")
	})
}

// outside listens where others reach this machine, on the port of HTTP.
func outside(t *testing.T) net.Listener {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() || n.IP.To4() == nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(n.IP.String(), "80"))
		if err != nil {
			t.Fatalf("listen where Glance downloads from: %v", err)
		}
		return l
	}
	t.Fatal("this machine has no address but its own")
	return nil
}

// TestImageInUse: an image that servers are made of can be deleted; they stay.
func TestImageInUse(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		id := text(c.image(t), "id")
		c.glance.do(t, http.MethodPut, "images/"+id+"/file", []byte("data")).is(t, http.StatusNoContent)
		s := c.made(t, hot(plugged, "parameters", doc{"image": id}))
		server := s.physical(t, "vdu")
		same(t, "the server's image", text(c.server(t, server), "image", "id"), id)
		c.glance.do(t, http.MethodDelete, "images/"+id, nil).is(t, http.StatusNoContent)
		same(t, "the server", text(c.server(t, server), "status"), "ACTIVE")
		// An update that still names it is refused.
		c.heat.do(t, http.MethodPut, s.path(), hot(plugged, "parameters", doc{"image": id, "network": net1})).
			says(t, http.StatusBadRequest, "No images matching {'name': '"+id+"'}.")
	})
}
