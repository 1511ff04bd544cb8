package openstack

import (
	"context"
	"crypto/md5"  //nolint:gosec // only to compare with what Glance computed
	"crypto/sha1" //nolint:gosec // only to compare with what Glance computed
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// wanted returns the images that the VIM needs to be given: those of nodes with an artifact, unless the grant names an
// image of the VIM for them; in a heal of some VNFCs, those that these are made of.
func wanted(x *lcm.Execution) []vnfd.SoftwareImage {
	var nodes map[string]bool
	if x.Op.Operation == sol003.LcmOperationTypeHeal && !whole(x) {
		nodes = sickNodes(x)
	}
	var out []vnfd.SoftwareImage
	for _, i := range x.Flavour.SoftwareImages {
		if i.File == "" || x.Grant != nil && x.Grant.Images[i.ID] != "" || nodes != nil && !nodes[i.ID] {
			continue
		}
		out = append(out, i)
	}
	return out
}

// imagesStep is the step that hands images over.
const imagesStep = "images"

// uploading tells whether the operation may have image data to hand over itself.
func uploading(x *lcm.Execution) bool {
	return x.Flavour != nil && slices.ContainsFunc(wanted(x), func(i vnfd.SoftwareImage) bool { return !i.Remote })
}

// anew tells whether the operation makes the stack's images anew: a heal of some VNFCs does so only when the instance has
// been given another VNFD since they were made.
func anew(x *lcm.Execution, s *infra) bool {
	if x.Op.Operation != sol003.LcmOperationTypeHeal || whole(x) {
		return true
	}
	return slices.ContainsFunc(patients(x), func(v sol003.VnfcResourceInfo) bool {
		was := s.vnfdOf(v.VduId)
		return was != "" && was != x.Instance.VnfdID
	})
}

// images is the step that gives the VIM the VNF's images. An image of an earlier try is found by its properties and
// used; one without data gets it.
func (d *Driver) images(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	want := wanted(x)
	if !anew(x, s) || len(want) == 0 {
		if w.Images = nil; !anew(x, s) {
			w.Images = s.Images
		}
		return lcm.Done(), saveWork(x, w)
	}
	w.Images = nil
	begun := x.Now()
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return d.patience(x, w, begun, err)
	}
	have, err := c.imagesOf(ctx, x.Instance.ID)
	if err != nil {
		p, err := d.patience(x, w, begun, err)
		return p, c.dropImages(ctx, x, err)
	}
	for _, i := range want {
		begun = x.Now()
		made, err := c.ensureImage(ctx, x, i, have)
		if err != nil {
			p, err := d.patience(x, w, begun, err)
			return p, c.dropImages(ctx, x, err)
		}
		w.Images = append(w.Images, nodeImage{Node: i.ID, ID: made.ID, Name: i.Name})
	}
	w.Broken = nil
	return lcm.Done(), saveWork(x, w)
}

// outage is a row of failures between which nothing came nearer to its end.
type outage struct {
	Since time.Time `json:"since"`           // the first one's end
	After int       `json:"after,omitempty"` // how many images were there
}

// patience waits for a VIM that fails for now, until it has done so for the time that a stack is given: the step has long for
// uploading, not for that. What failed was begun then. Errors that do not pass stay.
func (d *Driver) patience(x *lcm.Execution, w *work, begun time.Time, err error) (lcm.Progress, error) {
	if !lcm.Is(err, lcm.KindRetryable) {
		return lcm.Progress{}, err
	}
	now := x.Now()
	// A retry has its own patience; what has taken so long was handing data over.
	if w.Broken == nil || w.Broken.Since.Before(x.Begun) || len(w.Images) > w.Broken.After || now.Sub(begun) >= d.cfg.StackTimeout {
		w.Broken = &outage{Since: now, After: len(w.Images)}
	}
	left := d.cfg.StackTimeout - now.Sub(w.Broken.Since)
	if left <= 0 {
		return lcm.Progress{}, &lcm.Error{Kind: lcm.KindTerminal, Detail: detail(err), Err: err}
	}
	return lcm.Wait(max(min(max(againOf(err), time.Second), left), d.cfg.PollMin), "%s", detail(err)), saveWork(x, w)
}

// ensureImage makes sure that a node's image exists and has been given its data.
func (c *cloud) ensureImage(ctx context.Context, x *lcm.Execution, want vnfd.SoftwareImage, have []image) (*image, error) {
	var made *image
	for n := range have {
		i := &have[n]
		if i.Node != want.ID || !same(i, want) {
			continue
		}
		if made == nil && usable(i) {
			made = i
			continue
		}
		// A broken one, or a second one of a race that two tries have had.
		if err := c.deleteImage(ctx, i.ID); err != nil {
			return nil, err
		}
	}
	if made == nil {
		var err error
		if made, err = c.createImage(ctx, &imageRequest{
			Name: want.Name, Visibility: "private", ContainerFormat: want.ContainerFormat, DiskFormat: want.DiskFormat,
			MinDisk: want.MinDisk / 1e9, MinRAM: want.MinRAM / 1e6, Tags: []string{mark(x.Instance.ID)},
			Instance: x.Instance.ID, Node: want.ID, Version: want.Version, Digest: digestOf(want),
		}); err != nil {
			return nil, err
		}
		x.Log.Info("image created", "image", made.ID, "name", want.Name, "node", want.ID)
	}
	return made, c.feedImage(ctx, x, want, made)
}

// digestOf is an image's checksum as the VNFD gives it; "" when it gives none.
func digestOf(i vnfd.SoftwareImage) string {
	if i.Checksum.Hash == "" {
		return ""
	}
	return plainAlgorithm(i.Checksum.Algorithm) + ":" + strings.ToLower(i.Checksum.Hash)
}

// same tells whether an image was made for what is wanted and not for what another VNFD says of the node.
func same(i *image, want vnfd.SoftwareImage) bool {
	return i.Name == want.Name && (i.Digest == "" || i.Digest == digestOf(want))
}

// usable tells whether an image is there or can still become so.
func usable(i *image) bool {
	switch i.Status {
	case "queued", "uploading", "importing", "saving", "active":
		return i.ImportFailed == ""
	}
	return false
}

// feedImage hands over the data of an image that waits for it.
func (c *cloud) feedImage(ctx context.Context, x *lcm.Execution, want vnfd.SoftwareImage, made *image) error {
	if made.Status != "queued" {
		return nil
	}
	if want.Remote {
		if made.ImportTask != "" {
			return nil
		}
		return c.importImage(ctx, made.ID, want.File)
	}
	files, err := x.Files(ctx)
	if err != nil {
		return fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	f, err := files.Open(want.File)
	if err != nil {
		kind := lcm.KindRetryable // the package's content could not be read just now
		if errors.Is(err, fs.ErrNotExist) {
			kind = lcm.KindTerminal
		}
		return lcm.Errorf(kind, "image file %s of node %s: %w", want.File, want.ID, err)
	}
	defer func() { _ = f.Close() }()
	return c.uploadImage(ctx, made.ID, f)
}

// imagesActive is the step that waits until the images are active and compares their checksums with the VNFD's.
func (d *Driver) imagesActive(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil || len(w.Images) == 0 {
		return lcm.Done(), err
	}
	s, err := loadInfra(x.Instance)
	if err != nil || !anew(x, s) {
		return lcm.Done(), err
	}
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	for _, want := range wanted(x) {
		made, ok := w.image(want.ID)
		if !ok {
			continue
		}
		i, err := c.image(ctx, made.ID)
		if err != nil {
			return lcm.Progress{}, err
		}
		if i == nil || !usable(i) {
			state, why := "deleted", ""
			if i != nil {
				if state = i.Status; i.ImportFailed != "" {
					why = ": the import failed in " + i.ImportFailed
				}
			}
			return lcm.Progress{}, c.dropImages(ctx, x, lcm.Errorf(lcm.KindTerminal, "Create image failed Image %s is %s%s", made.ID, state, why))
		}
		if i.Status != "active" {
			if x.Now().Sub(x.Begun) >= d.cfg.ImageTimeout {
				return lcm.Progress{}, c.dropImages(ctx, x, lcm.Errorf(lcm.KindTerminal,
					"Create image failed Image %s could not get active within %g seconds", made.ID, d.cfg.ImageTimeout.Seconds()))
			}
			// An upload that broke has left it without its data.
			if i.Status == "queued" && !want.Remote {
				done, ok := c.account.throttle.upload()
				if !ok {
					return lcm.Wait(d.pause(x), "image %s (%s) waits to be handed over", want.Name, made.ID), nil
				}
				defer done()
			}
			if err := c.feedImage(ctx, x, want, i); err != nil {
				return lcm.Progress{}, err
			}
			return lcm.Wait(d.pause(x), "image %s (%s) is %s", want.Name, made.ID, i.Status), nil
		}
		if err := c.verifyImage(ctx, x, want, i); err != nil {
			return lcm.Progress{}, c.dropImages(ctx, x, err)
		}
	}
	return lcm.Done(), nil
}

// verifyImage compares an image with the VNFD's checksum: Glance's hash if it is of the same algorithm, else the
// package's file is hashed with both. What Glance has downloaded itself can only be compared in the first case.
func (c *cloud) verifyImage(ctx context.Context, x *lcm.Execution, want vnfd.SoftwareImage, made *image) error {
	algo, given := plainAlgorithm(want.Checksum.Algorithm), strings.ToLower(want.Checksum.Hash)
	glance := plainAlgorithm(made.HashAlgo)
	if given == "" {
		return nil
	}
	if algo == glance && made.HashValue != "" {
		if !strings.EqualFold(made.HashValue, given) {
			return mismatch(made.ID, "Glance calculated", made.HashAlgo, made.HashValue, want)
		}
		return nil
	}
	if want.Remote {
		x.Log.Warn("the checksum of an image from a URL cannot be compared: Glance uses another algorithm",
			"image", made.ID, "vnfd", want.Checksum.Algorithm, "glance", made.HashAlgo)
		return nil
	}
	sums, err := digests(ctx, x, want.File, algo, glance)
	if err != nil {
		return err
	}
	if sum, ok := sums[algo]; ok && sum != given {
		return mismatch(made.ID, "Calculated", want.Checksum.Algorithm, sum, want)
	}
	if sum, ok := sums[glance]; ok && made.HashValue != "" && !strings.EqualFold(sum, made.HashValue) {
		return lcm.Errorf(lcm.KindTerminal, "Image %s checksum verification failed. Glance calculated checksum is %s:%s. Checksum of %s is %s:%s.",
			made.ID, made.HashAlgo, made.HashValue, want.File, glance, sum)
	}
	return nil
}

func mismatch(id, who, algo, sum string, want vnfd.SoftwareImage) error {
	return lcm.Errorf(lcm.KindTerminal, "Image %s checksum verification failed. %s checksum is %s:%s. Checksum in VNFD is %s:%s.",
		id, who, algo, sum, want.Checksum.Algorithm, want.Checksum.Hash)
}

// plainAlgorithm is an algorithm's name as Glance writes it.
func plainAlgorithm(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "-", ""))
}

// digests hashes a file of the package once with all the algorithms that are known, by name.
func digests(ctx context.Context, x *lcm.Execution, file string, algorithms ...string) (map[string]string, error) {
	hashes := map[string]hash.Hash{}
	var writers []io.Writer
	for _, a := range algorithms {
		var h hash.Hash
		switch a {
		case "md5":
			h = md5.New() //nolint:gosec // see above
		case "sha1":
			h = sha1.New() //nolint:gosec // see above
		case "sha224":
			h = sha256.New224()
		case "sha256":
			h = sha256.New()
		case "sha384":
			h = sha512.New384()
		case "sha512":
			h = sha512.New()
		default:
			continue
		}
		hashes[a] = h
		writers = append(writers, h)
	}
	files, err := x.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the VNF package: %w", err)
	}
	defer func() { _ = files.Close() }()
	f, err := files.Open(file)
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "image file %s: %w", file, err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(io.MultiWriter(writers...), contextReader{ctx, f}); err != nil {
		return nil, fmt.Errorf("hash %s: %w", file, err)
	}
	out := map[string]string{}
	for a, h := range hashes {
		out[a] = hex.EncodeToString(h.Sum(nil))
	}
	return out, nil
}

// contextReader reads until the context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// dropImages deletes what the operation has made when err ends it, as the reference does; it returns err. What cannot
// be deleted now is found by the next try or the termination.
func (c *cloud) dropImages(ctx context.Context, x *lcm.Execution, err error) error {
	if !lcm.Is(err, lcm.KindTerminal) {
		return err
	}
	s, e := loadInfra(x.Instance)
	if e == nil {
		e = c.deleteImagesExcept(ctx, x.Instance.ID, s.Images)
	}
	if e != nil {
		x.Log.Warn("images are left in the VIM for now", "error", e)
	}
	return &lcm.Error{
		Kind: lcm.KindTerminal, Err: err,
		Detail: fmt.Sprintf("Vnf '%s' failed during pre-instantiation due to error: %s", x.Instance.ID, detail(err)),
	}
}

// deleteImagesExcept deletes the images made for an instance but those.
func (c *cloud) deleteImagesExcept(ctx context.Context, instanceID string, keep []nodeImage) error {
	found, err := c.imagesOf(ctx, instanceID)
	for _, i := range found {
		if !slices.ContainsFunc(keep, func(k nodeImage) bool { return k.ID == i.ID }) {
			err = errors.Join(err, c.deleteImage(ctx, i.ID))
		}
	}
	return err
}

// imagesTidy is the step that deletes the images that the operation has put others in the place of, and records those that
// there are now.
func (d *Driver) imagesTidy(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	keep := slices.Clone(w.Images)
	for _, old := range s.Images { // one that servers which were not healed are made of stays
		_, replaced := w.image(old.Node)
		stays := !replaced && x.Op.Operation == sol003.LcmOperationTypeHeal || strings.Contains(string(w.Parameters), old.ID)
		if stays && !slices.Contains(keep, old) {
			keep = append(keep, old)
		}
	}
	if anew(x, s) {
		if err := c.deleteImagesExcept(ctx, x.Instance.ID, keep); err != nil {
			return lcm.Progress{}, err
		}
	}
	s.Parameters, s.Images = w.Parameters, keep
	if x.Op.Operation != sol003.LcmOperationTypeHeal {
		s.VnfdID, s.Renewed = x.Instance.VnfdID, nil
	}
	for _, v := range patients(x) {
		if s.Renewed == nil {
			s.Renewed = map[string]string{}
		}
		s.Renewed[v.VduId] = x.Instance.VnfdID
	}
	return lcm.Done(), saveInfra(x.Instance, s)
}

// imagesDelete is the step that deletes the images made for the instance, whether recorded or not.
func (d *Driver) imagesDelete(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	c, err := d.connect(ctx, x.Target)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	for _, i := range s.Images {
		if err := c.deleteImage(ctx, i.ID); err != nil {
			return lcm.Progress{}, fmt.Errorf("delete image %s: %w", i.ID, err)
		}
	}
	if err := c.deleteImagesExcept(ctx, x.Instance.ID, nil); err != nil {
		return lcm.Progress{}, err
	}
	if x.Op.Operation == sol003.LcmOperationTypeHeal { // what is made now is another stack
		s.StackID, s.Images = "", nil
		return lcm.Done(), saveInfra(x.Instance, s)
	}
	return lcm.Done(), nil
}
