package harness

import (
	"crypto/sha512"
	"embed"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
)

// SamplesEnv names the folder of real-world VNF packages that this project did not write.
const SamplesEnv = "VNFM_SAMPLES"

//go:embed testdata
var completions embed.FS

// Sample is a package from outside, completed to a CSAR.
type Sample struct {
	Zip    []byte
	VnfdID string // made anew each time
}

var (
	descriptorID = regexp.MustCompile(`descriptor_id: ([0-9a-f-]{36})`)
	imageFile    = regexp.MustCompile(`file: \.\./(Files/images/\S+)`)
	imageHash    = regexp.MustCompile(`(algorithm: sha-512\s+hash: )[0-9a-f]{128}`)
)

// SamplePackage completes the package of that name from the folder that [SamplesEnv] names: the standard's type
// definitions, an image file with its digest, scripts and a user data class of our own, a fresh descriptor id and the
// digests in TOSCA.meta. It is nil, and the test log says so, when the variable is not set.
func SamplePackage(t testing.TB, name string) *Sample {
	t.Helper()
	root := os.Getenv(SamplesEnv)
	if root == "" {
		t.Logf("%s is not set: the package %s from outside is not tried", SamplesEnv, name)
		return nil
	}
	files := csartest.Files(t, filepath.Join(root, name))
	for p, data := range csartest.Files(t, filepath.Join(root, "common", "Definitions")) {
		files[path.Join("Definitions", p)] = data
	}
	maps.Copy(files, completion(t, name))
	s := &Sample{VnfdID: uuid.NewString()}
	image := []byte("the image of sample " + name + "\n")
	sum := sha512.Sum512(image)
	var old string
	for p, data := range files {
		if m := descriptorID.FindSubmatch(data); m != nil && strings.HasPrefix(p, "Definitions/") {
			old = string(m[1])
		}
	}
	for p, data := range files {
		if !strings.HasPrefix(p, "Definitions/") {
			continue
		}
		for _, m := range imageFile.FindAllSubmatch(data, -1) {
			files[string(m[1])] = image
			data = imageHash.ReplaceAll(data, []byte("${1}"+hex.EncodeToString(sum[:])))
		}
		if old != "" {
			data = []byte(strings.ReplaceAll(string(data), old, s.VnfdID))
		}
		files[p] = data
	}
	csartest.FixHashes(files)
	s.Zip = csartest.Zip(t, files)
	return s
}

// completion returns our own files for a sample.
func completion(t testing.TB, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := path.Join("testdata", strings.TrimSuffix(name, "2")) // the second of a name needs what the first does
	if _, err := fs.Stat(completions, root); err != nil {
		return files // it is complete
	}
	err := fs.WalkDir(completions, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := completions.ReadFile(p)
		files[strings.TrimPrefix(p, root+"/")] = data
		return err
	})
	if err != nil {
		t.Fatalf("complete sample %s: %v", name, err)
	}
	return files
}
