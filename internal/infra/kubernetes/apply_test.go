package kubernetes

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

type packed struct{ fstest.MapFS }

func (packed) Close() error { return nil }

// TestApplyReadsFilesOnce: while what has been applied is waited for, the definition files are not read again, and once they are,
// they are still what they were.
func TestApplyReadsFilesOnce(t *testing.T) {
	phase := "Terminating"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/v1") {
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
				{"name":"namespaces","kind":"Namespace","verbs":["get"]},{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get"]}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"own","uid":"1"},"status":{"phase":"`+phase+`"}}`)
	}))
	defer server.Close()
	d := newDriver(t, Config{})
	read := 0
	files := packed{fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: own}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}}
	target := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t"}}}
	req := &sol003.InstantiateVnfRequest{AdditionalParams: map[string]any{filesKey: []any{"a.yaml"}, "namespace": "own"}}
	x := infratest.Execution(t, sol003.LcmOperationTypeInstantiate, &lcm.Instance{ID: "i"}, target, &vnfd.Flavour{}, req,
		func(context.Context) (lcm.PackageFS, error) { read++; return files, nil })
	x.Begun = x.Now()
	if p, err := d.manifests(t.Context(), x); err != nil || !p.Finished() || read != 1 {
		t.Fatalf("manifests: %+v, %v, read %d times", p, err, read)
	}
	w, err := loadWork(x)
	if err != nil {
		t.Fatal(err)
	}
	w.Applied = 1 // the namespace
	if err := saveWork(x, w); err != nil {
		t.Fatal(err)
	}
	if p, err := d.applyAll(t.Context(), x); err != nil || p.Finished() || read != 1 {
		t.Errorf("while it waits: %+v, %v, read %d times", p, err, read)
	}
	phase = "Active"
	files.MapFS["a.yaml"].Data = append(files.MapFS["a.yaml"].Data, "data: {other: content}\n"...)
	if _, err := d.applyAll(t.Context(), x); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "are not what they were") {
		t.Errorf("with other files: %v", err)
	}
}
