package pkgm_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
)

// TestSamples onboards real packages, completed as their collection says: shared definitions and an image put in, stale
// hashes recomputed.
func TestSamples(t *testing.T) {
	dir := os.Getenv("VNFM_SAMPLES")
	if dir == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
		return
	}
	common := csartest.Files(t, filepath.Join(dir, "common"))
	for _, name := range []string{"kubernetes_vnf_package", "functional", "vnflcm1", "cnf_scale"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pkgm.Config{}) // the samples share a descriptor_id
			own := csartest.Files(t, filepath.Join(dir, name))
			overlay := map[string][]byte{}
			for path, data := range common {
				if _, has := own[path]; !has {
					overlay[path] = data
				}
			}
			for _, absent := range []string{
				"Files/images/cirros-0.5.2-x86_64-disk.img", "Files/images/ubuntu-20.04-server-cloudimg-amd64.img",
				"Scripts/kubernetes_mgmt.py", "Scripts/install_k8s_cluster.sh", "Scripts/install_helm.sh",
			} {
				overlay[absent] = []byte("stands for it")
			}
			id := w.create(t)
			zip := csartest.FromDir(t, filepath.Join(dir, name), overlay, true)
			if err := w.Upload(context.Background(), user, id, bytes.NewReader(zip)); err != nil {
				t.Fatal(err)
			}
			w.work(t, id)
			s := w.shown(t, id)
			if s.OnboardingState != "ONBOARDED" {
				t.Fatalf("%+v", s.OnboardingFailureDetails)
			}
			for _, img := range s.SoftwareImages {
				if img.ImagePath != "" && !strings.HasPrefix(img.ImagePath, "/vnfpkgm/v1/vnf_packages/"+id+"/artifacts/") {
					t.Errorf("imagePath %q", img.ImagePath)
				}
			}
			files, fsys, err := w.Vnfd(context.Background(), user, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if _, err := fsys.ReadFile(f); err != nil {
					t.Error(err)
				}
			}
			_ = fsys.Close()
			for _, a := range s.AdditionalArtifacts {
				r, _, err := w.Artifact(context.Background(), user, id, a.ArtifactPath)
				if err != nil {
					t.Errorf("%s: %v", a.ArtifactPath, err)
					continue
				}
				_ = r.Close()
			}
			t.Logf("%d files, %d images, %d artifacts", len(files), len(s.SoftwareImages), len(s.AdditionalArtifacts))
		})
	}
}
