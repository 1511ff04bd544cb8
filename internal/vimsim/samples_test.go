package vimsim

import (
	"os"
	"path/filepath"
	"testing"
)

// base reads a package's Base HOT folder: the top template and nested files.
func base(t *testing.T, dir string) doc {
	t.Helper()
	def := doc{}
	files := doc{}
	for _, f := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.yaml"))) {
		def["template"] = string(must[[]byte](t)(os.ReadFile(f)))
	}
	for _, f := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "nested", "*.yaml"))) {
		files[filepath.Base(f)] = string(must[[]byte](t)(os.ReadFile(f)))
	}
	if def["template"] == nil {
		t.Fatalf("no template in %s", dir)
	}
	def["files"] = files
	return def
}

func TestOutsideSamples(t *testing.T) {
	root := os.Getenv("VNFM_SAMPLES")
	if root == "" {
		t.Log("VNFM_SAMPLES is not set: nothing to do")
		return
	}
	l := boot(t, Config{})
	vdu := doc{"flavor": "m1.tiny", "image": cirros}
	net := doc{"network": "net0"}
	nfv := doc{
		"VDU": doc{"masterNode": vdu, "workerNode": vdu, "VDU1": vdu, "VDU2": vdu, "VirtualStorage": vdu},
		"CP":  doc{"masterNode_CP1": net, "workerNode_CP2": net, "VDU1_CP1": net, "VDU1_CP2": net, "VDU2_CP1": net, "VDU2_CP2": net},
	}
	for _, tt := range []struct {
		dir, policy string
		servers     int
	}{
		{"kubernetes_vnf_package/BaseHOT/simple", "worker_instance_scale_out", 3},
		{"kubernetes_vnf_package/BaseHOT/complex", "worker_instance_scale_out", 5},
		{"kubernetes_vnf_package/BaseHOT/podaffinity", "worker_instance_scale_out", 5},
		{"functional/BaseHOT/simple", "VDU1_scale_out", 3},
	} {
		t.Run(tt.dir, func(t *testing.T) {
			l := &lab{t: t, srv: l.srv, http: l.http, token: l.token, project: l.project}
			id := l.create("s", with(base(t, filepath.Join(root, tt.dir)), "parameters", doc{"nfv": nfv}))
			l.await("s", id, "CREATE_COMPLETE")
			count := func() int { return len(l.ofType("s", id, "OS::Nova::Server")) }
			if count() != tt.servers {
				t.Errorf("%d servers, want %d", count(), tt.servers)
			}
			l.heat("POST", "/stacks/s/"+id+"/resources/"+tt.policy+"/signal", nil)
			l.until("scaled out", func() bool { return count() == tt.servers+1 })
			l.until("quiet", func() bool {
				_, out := l.heat("GET", "/stacks?show_nested=true&status=IN_PROGRESS", nil)
				return len(out["stacks"].([]any)) == 0
			})
			l.heat("PATCH", "/stacks/s/"+id, doc{"existing": true})
			l.await("s", id, "UPDATE_COMPLETE")
			if count() != tt.servers {
				t.Errorf("%d servers after the update, want the literal %d", count(), tt.servers)
			}
			l.heat("DELETE", "/stacks/s/"+id, nil)
			l.await("s", id, "DELETE_COMPLETE")
			l.empty()
		})
	}
}

func BenchmarkCluster(b *testing.B) {
	t := &testing.T{}
	top := must[[]byte](t)(os.ReadFile("testdata/cluster.yaml"))
	node := must[[]byte](t)(os.ReadFile("testdata/node.yaml"))
	c := New(Config{}, nil)
	defer c.Close()
	c.mu.Lock()
	project := c.keys.projectID("nfv")
	c.mu.Unlock()
	def := doc{
		"template": string(top), "files": doc{"node.yaml": string(node)},
		"parameters": doc{"nfv": doc{"VDU": doc{"node": doc{"flavor": "m1.medium", "image": cirros}}, "CP": doc{"node_CP": doc{"network": "net0"}}}},
	}
	for b.Loop() {
		c.mu.Lock()
		s := &stack{id: newID(), name: "b", project: project, env: doc{}, disableRollback: true}
		if err := c.definition(def, s); err != nil {
			b.Fatal(err)
		}
		if err := c.checked(s); err != nil {
			b.Fatal(err)
		}
		c.newStack(s)
		c.startCreate(s)
		op := s.op
		c.mu.Unlock()
		<-op.done
		c.mu.Lock()
		if s.state() != "CREATE_COMPLETE" {
			b.Fatal(s.reason)
		}
		c.startDelete(s)
		op = s.op
		c.mu.Unlock()
		<-op.done
	}
}
