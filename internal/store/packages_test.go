package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

var everybody = lcm.Scope{ProjectID: "p1", Admin: true}

func anyState(*lcm.Package) error { return nil }

// uploadingPackage is a package whose content is begun.
func uploadingPackage(t *testing.T, s *store.Store) (id, content string, fence int64) {
	t.Helper()
	ctx := context.Background()
	p := &lcm.Package{ID: uuid.NewString(), ProjectID: "p1", OnboardingState: sol003.PackageOnboardingStateTypeCreated,
		OperationalState: sol003.PackageOperationalStateTypeDisabled, Created: time.Now()}
	if err := s.CreatePackage(ctx, p); err != nil {
		t.Fatal(err)
	}
	fence, err := s.BeginUpload(ctx, everybody, p.ID, "node", anyState)
	if err != nil {
		t.Fatal(err)
	}
	if content, err = s.BeginContent(ctx, p.ID, fence); err != nil {
		t.Fatal(err)
	}
	return p.ID, content, fence
}

func sum(text string) []byte { s := sha256.Sum256([]byte(text)); return s[:] }

// TestPackageFence: nothing is done to a package under a fence that has moved on, nor out of order.
func TestPackageFence(t *testing.T) {
	ctx, s := context.Background(), storetest.Open(t)
	id, content, fence := uploadingPackage(t, s)
	d := &vnfd.Descriptor{ID: "v"}
	for name, try := range map[string]func(id string, fence int64) error{
		"claim": func(id string, fence int64) error { _, err := s.ClaimPackage(ctx, id, fence, "n"); return err },
		"begin": func(id string, fence int64) error { _, err := s.BeginContent(ctx, id, fence); return err },
		"complete": func(id string, fence int64) error {
			return s.CompleteContent(ctx, id, fence, sum("x"), sum("x"), 1, true)
		},
		"finish": func(id string, fence int64) error {
			return s.FinishOnboarding(ctx, &lcm.Package{ID: id, Fence: fence, Descriptor: d})
		},
		"fail": func(id string, fence int64) error {
			_, err := s.FailOnboarding(ctx, id, fence, &sol003.ProblemDetails{Status: 500, Detail: "x"})
			return err
		},
	} {
		for _, c := range []struct {
			id    string
			fence int64
		}{{id, fence - 1}, {id, fence + 1}, {uuid.NewString(), fence}, {"nonsense", fence}} {
			if err := try(c.id, c.fence); !errors.Is(err, lcm.ErrStale) {
				t.Errorf("%s of %s under fence %d: %v", name, c.id, c.fence, err)
			}
		}
	}
	if err := s.FinishOnboarding(ctx, &lcm.Package{ID: id, Fence: fence, Descriptor: d}); !errors.Is(err, lcm.ErrStale) {
		t.Errorf("a package was finished before it was uploaded: %v", err)
	}
	if _, err := s.ClaimPackage(ctx, id, fence, "n"); !errors.Is(err, lcm.ErrStale) {
		t.Errorf("a PUT was claimed: %v", err)
	}
	if err := s.AppendContent(ctx, content, 0, [][]byte{[]byte("a"), []byte("b")}); err != nil {
		t.Error(err)
	}
	again, err := s.BeginContent(ctx, id, fence) // drops what was there
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AppendContent(ctx, content, 2, [][]byte{[]byte("c")}); !errors.Is(err, lcm.ErrStale) {
		t.Errorf("a dropped content grew: %v", err)
	}
	if err := s.AppendContent(ctx, again, 0, [][]byte{[]byte("abc")}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Content(ctx, again); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("an unfinished content was read: %v", err)
	}
	if err := s.CompleteContent(ctx, id, fence, sum("abc"), sum("abc"), 3, false); err != nil {
		t.Fatal(err)
	}
	if err := s.CompleteContent(ctx, id, fence, sum("abc"), sum("abc"), 3, false); !errors.Is(err, lcm.ErrStale) {
		t.Errorf("completed twice: %v", err)
	}
	if chunk, err := s.ContentChunk(ctx, again, 0); err != nil || string(chunk) != "abc" {
		t.Errorf("chunk %q %v", chunk, err)
	}
	if _, err := s.ContentChunk(ctx, again, 1); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("a chunk beyond the end: %v", err)
	}
}

// TestContentsAreKeptWhileReferred: a content goes with its last package, and never before, whoever deletes when.
func TestContentsAreKeptWhileReferred(t *testing.T) {
	ctx, s := context.Background(), storetest.Open(t)
	var ids, contents []string
	for range 2 {
		id, content, fence := uploadingPackage(t, s)
		if err := s.AppendContent(ctx, content, 0, [][]byte{[]byte("same")}); err != nil {
			t.Fatal(err)
		}
		if err := s.CompleteContent(ctx, id, fence, sum("same"), sum("same"), 4, true); err != nil {
			t.Fatal(err)
		}
		p, err := s.LoadPackage(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		ids, contents = append(ids, id), append(contents, p.ContentID)
	}
	if contents[0] != contents[1] {
		t.Fatal("the same content is stored twice")
	}
	for n, id := range ids {
		if n, err := s.CollectContents(ctx, 0); n != 0 || err != nil {
			t.Errorf("collected %d: %v", n, err)
		}
		p, err := s.LoadPackage(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		content, err := s.FailOnboarding(ctx, id, p.Fence, &sol003.ProblemDetails{Status: 400, Detail: "bad"})
		if err != nil || content != contents[0] {
			t.Fatal(content, err)
		}
		if err := s.DropContent(ctx, content); err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Content(ctx, content)
		if there := err == nil; there != (n == 0) {
			t.Errorf("after package %d the content is there: %v", n, there)
		}
	}
	if err := s.DropContent(ctx, "nonsense"); err != nil {
		t.Error(err)
	}
}
