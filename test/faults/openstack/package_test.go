package openstack

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"maps"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// packages are the ids of the VNFDs of the package and of one that differs from it by the image of VDU2.
type packages struct{ first, second string }

const (
	imageFile   = "Files/images/data.img"
	firstVnfd   = "6a1c8a4e-52f7-4a77-9c36-0d5b1f3c7e01"
	secondVnfd  = "6a1c8a4e-52f7-4a77-9c36-0d5b1f3c7e02"
	firstImage  = "fragile-data"
	secondImage = "fragile-data-of-2"
)

// onboarded onboards both packages.
func onboarded(ctx context.Context, t *testing.T, api *harness.Client) packages {
	t.Helper()
	first := csartest.Files(t, "testdata/package")
	shipped, err := deploy.Files("multi-port")
	if err != nil {
		t.Fatal(err)
	}
	const types = "Definitions/sol001_types.yaml"
	first[types] = shipped[types]

	second := maps.Clone(first)
	second[imageFile] = []byte("another image of a VNF that is made to fail\n")
	digest := func(data []byte) []byte {
		sum := sha512.Sum512(data)
		return []byte(hex.EncodeToString(sum[:]))
	}
	for path, data := range first {
		data = bytes.ReplaceAll(data, []byte(firstVnfd), []byte(secondVnfd))
		data = bytes.ReplaceAll(data, []byte("name: "+firstImage), []byte("name: "+secondImage))
		if path != imageFile {
			second[path] = bytes.ReplaceAll(data, digest(first[imageFile]), digest(second[imageFile]))
		}
	}
	for _, files := range []map[string][]byte{first, second} {
		if _, err := api.Onboard(ctx, csartest.Zip(t, files)); err != nil {
			t.Fatal(err)
		}
	}
	return packages{firstVnfd, secondVnfd}
}
