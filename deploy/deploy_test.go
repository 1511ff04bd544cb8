package deploy

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// instances are the VNFCs of each VDU at the default level, by package, flavour and VDU.
var instances = map[string]map[string]map[string]int{
	"kubernetes-cluster": {
		"simple":  {"masterNode": 1, "workerNode": 2},
		"complex": {"masterNode": 3, "workerNode": 2},
	},
	"multi-port": {"default": {"gateway": 1, "worker": 2}},
	"web-cnf":    {"default": {"WEB": 2, "STORE": 1}},
}

// manifests are the packages of CNFs, with what their manifests are to hold.
var manifests = map[string]string{
	"web-cnf": "ConfigMap/store-settings ConfigMap/web-page Deployment/web Service/store Service/web StatefulSet/store",
}

func TestEveryPackageOnboards(t *testing.T) {
	if len(Names()) != len(instances) {
		t.Fatalf("the packages are %v, the test knows %d", Names(), len(instances))
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			raw, err := Package(name)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Package(name); err != nil || !bytes.Equal(raw, again) {
				t.Errorf("the same package is zipped to other bytes the second time (error: %v)", err)
			}
			p, err := csar.Open(bytes.NewReader(raw), int64(len(raw)), csar.Limits{})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			if len(p.Artifacts()) == 0 {
				t.Error("TOSCA.meta names no artifact")
			}
			if err := p.Verify(t.Context()); err != nil {
				t.Errorf("verify: %v", err)
			}
			d, err := vnfd.Read(p.FS(), p.Entry())
			if err != nil {
				t.Fatalf("read the VNFD: %v", err)
			}
			var flavours []string
			for _, f := range d.Flavours {
				flavours = append(flavours, f.ID)
			}
			slices.Sort(flavours)
			if !slices.Equal(flavours, Flavours(name)) || len(flavours) != len(instances[name]) {
				t.Errorf("the flavours are %v, said to be %v, want %d", flavours, Flavours(name), len(instances[name]))
			}
			for n := range d.Flavours {
				checkFlavour(t, name, p.FS(), &d.Flavours[n])
			}
		})
	}
}

func checkFlavour(t *testing.T, name string, files fs.FS, f *vnfd.Flavour) {
	t.Helper()
	for vdu, want := range instances[name][f.ID] {
		got, err := f.InstanceCount(vdu, "")
		if err != nil || got != want {
			t.Errorf("flavour %s has %d of %s (error: %v), want %d", f.ID, got, vdu, err, want)
		}
	}
	for _, i := range f.SoftwareImages {
		if i.File == "" {
			continue
		}
		data, err := fs.ReadFile(files, i.File)
		if err != nil {
			t.Errorf("image of %s: %v", i.ID, err)
			continue
		}
		if sum := sha512.Sum512(data); i.Checksum.Algorithm != "sha-512" || i.Checksum.Hash != hex.EncodeToString(sum[:]) {
			t.Errorf("flavour %s, image of %s: the VNFD's checksum is %s:%s, the file's sha-512 is %x", f.ID, i.ID, i.Checksum.Algorithm, i.Checksum.Hash, sum)
		}
	}
	if want, ok := manifests[name]; ok {
		checkManifests(t, name, files, f, want)
	} else if entries, err := fs.ReadDir(files, "BaseHOT/"+f.ID); err != nil || len(entries) != 2 {
		t.Errorf("BaseHOT/%s is to hold one template and nested/, it holds %d entries (error: %v)", f.ID, len(entries), err)
	}
	checkRequest(t, name, f)
}

// checkManifests checks that the request names all manifests of the package, what they hold, and that each VDU is a
// workload of theirs with as many replicas as the flavour has at first.
func checkManifests(t *testing.T, name string, files fs.FS, f *vnfd.Flavour, want string) {
	t.Helper()
	params, _ := InstantiateRequest(name, f.ID)["additionalParams"].(map[string]any)
	named, _ := params["lcm-kubernetes-def-files"].([]any)
	there, err := fs.Glob(files, "Files/kubernetes/*.yaml")
	if err != nil || len(there) != len(named) {
		t.Errorf("the package has the manifests %v (error: %v), the request names %v", there, err, named)
	}
	var objects []string
	replicas := map[string]int{}
	for _, n := range named {
		file, _ := n.(string)
		raw, err := fs.ReadFile(files, file)
		if err != nil {
			t.Errorf("the request names %s: %v", file, err)
			continue
		}
		for dec := yaml.NewDecoder(bytes.NewReader(raw)); ; {
			var o struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
				Spec     struct{ Replicas int }
			}
			if err := dec.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects = append(objects, o.Kind+"/"+o.Metadata.Name)
			if o.Metadata.Namespace != "" {
				t.Errorf("%s: %s names a namespace, which is the request's business", file, o.Metadata.Name)
			}
			if o.Spec.Replicas > 0 {
				replicas[o.Metadata.Name] = o.Spec.Replicas
			}
		}
	}
	slices.Sort(objects)
	if got := strings.Join(objects, " "); got != want {
		t.Errorf("the manifests hold %s, want %s", got, want)
	}
	for _, vdu := range f.VDUs {
		if n := instances[name][f.ID][vdu.Name]; replicas[vdu.PropName] != n {
			t.Errorf("VDU %s is workload %s with %d replicas, want %d", vdu.Name, vdu.PropName, replicas[vdu.PropName], n)
		}
	}
}

func checkRequest(t *testing.T, name string, f *vnfd.Flavour) {
	t.Helper()
	raw, err := json.Marshal(InstantiateRequest(name, f.ID))
	if err != nil {
		t.Fatal(err)
	}
	var req sol003.InstantiateVnfRequest
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		t.Fatalf("the request for flavour %s is no InstantiateVnfRequest: %v", f.ID, err)
	}
	var connected []string
	for _, l := range req.ExtVirtualLinks {
		for _, cp := range l.ExtCps {
			connected = append(connected, cp.CpdId)
		}
	}
	for _, cp := range f.CPs {
		if external := cp.VirtualLink == ""; external != slices.Contains(connected, cp.Name) {
			t.Errorf("flavour %s: CP %s is external: %t; the request connects %v", f.ID, cp.Name, external, connected)
		}
	}
}

func TestUnknownPackage(t *testing.T) {
	if _, err := Package("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Package of an unknown name: %v", err)
	}
	if r := InstantiateRequest("nothing", "simple"); r != nil {
		t.Errorf("InstantiateRequest of an unknown name: %v", r)
	}
}
