package httpapi

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// parseRange reads a Range header of one range of bytes (RFC 9110 §14.1.2) of content of a size: from where and how
// much. whole: there is no range. Errors: invalid for several ranges, range for one that cannot be satisfied.
func parseRange(header string, size int64) (start, length int64, whole bool, err error) {
	if header == "" {
		return 0, size, true, nil
	}
	unknown := lcm.Errorf(lcm.KindRange, "The byte range passed in the 'Range' header did not match any available byte range in the VNF package file")
	text, ok := strings.CutPrefix(strings.TrimSpace(header), "bytes=")
	if !ok {
		return 0, 0, false, unknown
	}
	if strings.Contains(text, ",") {
		return 0, 0, false, lcm.Errorf(lcm.KindInvalid, "The 'Range' header has several ranges; only one is supported.")
	}
	first, last, ok := strings.Cut(strings.TrimSpace(text), "-")
	from, errFrom := strconv.ParseUint(first, 10, 63)
	to, errTo := strconv.ParseUint(last, 10, 63)
	begin, end := int64(from), int64(to) //nolint:gosec // ParseUint was asked for 63 bits
	switch {
	case !ok, first == "" && last == "", first != "" && errFrom != nil, last != "" && errTo != nil:
		return 0, 0, false, unknown
	case first == "": // the last bytes
		if end == 0 || size == 0 {
			return 0, 0, false, unknown
		}
		n := min(end, size)
		return size - n, n, false, nil
	case begin >= size:
		return 0, 0, false, lcm.Errorf(lcm.KindRange,
			"Invalid start position in Range header. Start position MUST be in the inclusive range[0, %d].", size-1)
	case last == "":
		return begin, size - begin, false, nil
	case end < begin:
		return 0, 0, false, unknown
	default:
		return begin, min(end, size-1) - begin + 1, false, nil
	}
}

// download answers content or the part of it that the Range header names (SOL003 v2.6.1 §10.4.5.3.2), and closes it.
func (s *server) download(ctx context.Context, content io.ReadSeekCloser, size int64, contentType, rangeHeader string) (response, error) {
	c := callOf(ctx)
	if c.req.Header.Get("If-Range") != "" {
		rangeHeader = "" // nothing here has a validator that could match
	}
	start, length, whole, err := parseRange(rangeHeader, size)
	if err == nil && start > 0 {
		_, err = content.Seek(start, io.SeekStart)
	}
	if err != nil {
		if lcm.Is(err, lcm.KindRange) {
			c.header.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		}
		return response{}, errors.Join(err, content.Close())
	}
	return response{writerFunc(func(w http.ResponseWriter) error {
		defer func() { _ = content.Close() }()
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Accept-Ranges", "bytes")
		h.Set("Content-Length", strconv.FormatInt(length, 10))
		status := http.StatusOK
		if !whole {
			status = http.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, start+length-1, size))
		}
		w.WriteHeader(status)
		out := s.patientWriter(w)
		defer out.done()
		if _, err := io.CopyN(out, content, length); err != nil {
			s.broken(ctx, status, err)
		}
		return nil
	})}, nil
}

// broken cuts the connection of a response that cannot be finished, so that nobody takes a part for the whole.
func (s *server) broken(ctx context.Context, status int, err error) {
	s.cfg.Log.LogAttrs(ctx, errorLevel(http.StatusServiceUnavailable), "download broke off", requestAttrs(callOf(ctx).req, status, err)...)
	panic(http.ErrAbortHandler)
}

// patientWriter writes for as long as the other side takes something.
type patientWriter struct {
	w     io.Writer
	set   func(time.Time) error
	stall time.Duration
}

func (s *server) patientWriter(w http.ResponseWriter) *patientWriter {
	return &patientWriter{w: w, set: http.NewResponseController(w).SetWriteDeadline, stall: s.cfg.Stall}
}

func (p *patientWriter) Write(b []byte) (int, error) {
	extend(p.set, p.stall)
	return p.w.Write(b)
}

// done takes the deadline off: the connection may serve further requests.
func (p *patientWriter) done() { _ = p.set(time.Time{}) }

// artifactTypes are the content types of artifacts by extension: a table of our own, since what the machine knows
// differs from machine to machine.
var artifactTypes = map[string]string{
	".sh": "text/x-sh", ".py": "text/x-python", ".txt": "text/plain", ".json": "application/json", ".xml": "application/xml",
	".zip": "application/zip", ".csar": "application/zip", ".tar": "application/x-tar", ".gz": "application/gzip", ".tgz": "application/gzip",
	".yaml": "application/yaml", ".yml": "application/yaml",
}

func artifactType(name string) string {
	if t, ok := artifactTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}

// acceptedTypes are the representations of a VNFD that a caller takes.
type acceptedTypes struct{ text, zip bool }

// vnfdTypes reads the Accept header of a request for a VNFD; a zip when there is none.
func vnfdTypes(accept string) (acceptedTypes, error) {
	if strings.TrimSpace(accept) == "" {
		return acceptedTypes{zip: true}, nil
	}
	var a acceptedTypes
	for part := range strings.SplitSeq(accept, ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		switch t {
		case "text/plain", "text/*":
			a.text = true
		case "application/zip", "application/*", "*/*":
			a.zip = true
		}
	}
	if !a.text && !a.zip {
		return a, lcm.Errorf(lcm.KindNotAccepted, "Accept header %s is invalid, it should be one of these values: application/zip,text/plain", clip(accept))
	}
	return a, nil
}

// vnfd answers a VNFD as its one YAML file, or as a zip of its files, and closes the package.
func (s *server) vnfd(ctx context.Context, wanted acceptedTypes, files []string, content lcm.PackageFS) (response, error) {
	var yaml []string
	for _, f := range files {
		if ext := strings.ToLower(path.Ext(f)); ext == ".yaml" || ext == ".yml" {
			yaml = append(yaml, f)
		}
	}
	switch {
	case wanted.text && len(yaml) == 1:
		raw, err := content.ReadFile(yaml[0])
		if err = errors.Join(err, content.Close()); err != nil {
			return response{}, fmt.Errorf("read %s of the VNFD: %w", yaml[0], err)
		}
		return response{&reply{status: http.StatusOK, contentType: "text/plain", body: raw}}, nil
	case !wanted.zip:
		err := lcm.Errorf(lcm.KindInvalid, "VNFD is implemented as multiple yaml files, Accept header should be 'application/zip'.")
		return response{}, errors.Join(err, content.Close())
	}
	return response{writerFunc(func(w http.ResponseWriter) error {
		defer func() { _ = content.Close() }()
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusOK)
		out := s.patientWriter(w)
		defer out.done()
		if err := writeZip(out, files, content); err != nil {
			s.broken(ctx, http.StatusOK, err)
		}
		return nil
	})}, nil
}

// writeZip writes the files under their paths, in the order of the paths: the same files give the same bytes.
func writeZip(w io.Writer, files []string, content lcm.PackageFS) error {
	z := zip.NewWriter(w)
	sorted := slices.Sorted(slices.Values(files))
	for _, name := range slices.Compact(sorted) {
		if err := zipFile(z, name, content); err != nil {
			return fmt.Errorf("zip %s of the VNFD: %w", name, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("zip the VNFD: %w", err)
	}
	return nil
}

func zipFile(z *zip.Writer, name string, content lcm.PackageFS) error {
	in, err := content.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
