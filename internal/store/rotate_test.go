package store_test

import (
	"context"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

// TestRotate: after a rotation the old key is needed no more, and operations in flight go on.
func TestRotate(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	id := b.create(t)
	op := b.instantiate(t, id)
	b.vim.hook = nil
	if _, err := b.st.Pool.Exec(ctx, `DELETE FROM vims WHERE sealed = ''`); err != nil { // the bench's own has no credentials
		t.Fatal(err)
	}
	oldKey, newKey := []byte("a key of 32 bytes for tests only"), []byte("another key, also of 32 bytes !!")
	both, err := store.NewSealer(2, map[uint32][]byte{1: oldKey, 2: newKey})
	if err != nil {
		t.Fatal(err)
	}
	b.st.Sealer = both
	done := map[string]int{}
	if err := b.st.Rotate(ctx, func(p store.RotateProgress) { done[p.Table] = p.Done }); err != nil {
		t.Fatal(err)
	}
	if done["vnf_instances"] != 1 || done["vnf_lcm_op_occs"] != 1 {
		t.Errorf("sealed anew: %v", done)
	}
	if err := b.st.Rotate(ctx, func(p store.RotateProgress) {
		if p.Done != 0 {
			t.Errorf("a second rotation sealed %d of %s", p.Done, p.Table)
		}
	}); err != nil {
		t.Fatal(err)
	}
	onlyNew, err := store.NewSealer(2, map[uint32][]byte{2: newKey})
	if err != nil {
		t.Fatal(err)
	}
	b.st.Sealer = onlyNew
	if _, err := b.st.Instance(ctx, scope, id); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if _, err := b.st.Pool.Exec(ctx, `INSERT INTO vims (id, project_id, name, type, status, auth_url, body, sealed, created_at)
		VALUES ($1, 'p', 'v', 'fake', 'REACHABLE', '', '{}', '', now())`, b.target.ID); err != nil {
		t.Fatal(err)
	}
	b.serve(t)
	b.await(t, op, sol003.LcmOperationStateCompleted)
}
