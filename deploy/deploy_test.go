package deploy

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"

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
			if len(d.Flavours) != len(instances[name]) {
				t.Errorf("%d flavours, want %d", len(d.Flavours), len(instances[name]))
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
	if entries, err := fs.ReadDir(files, "BaseHOT/"+f.ID); err != nil || len(entries) != 2 {
		t.Errorf("BaseHOT/%s is to hold one template and nested/, it holds %d entries (error: %v)", f.ID, len(entries), err)
	}
	checkRequest(t, name, f)
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
