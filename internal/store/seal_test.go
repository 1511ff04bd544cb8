package store_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestSealOpensOnlyInItsPlace(t *testing.T) {
	s := storetest.Sealer(t)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		env, err := s.Seal("vims", "id", "sealed", plain)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain) > 8 && bytes.Contains(env, plain) {
			t.Fatal("the envelope shows its content")
		}
		got, err := s.Open("vims", "id", "sealed", env)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("opened %q, %v", got, err)
		}
		for _, place := range [][3]string{{"vnf_instances", "id", "sealed"}, {"vims", "other", "sealed"}, {"vims", "id", "other"}} {
			if _, err := s.Open(place[0], place[1], place[2], env); !errors.Is(err, store.ErrSeal) {
				t.Fatalf("opened in %v: %v", place, err)
			}
		}
		env[rapid.IntRange(0, len(env)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := s.Open("vims", "id", "sealed", env); !errors.Is(err, store.ErrSeal) {
			t.Fatalf("a damaged envelope opened: %v", err)
		}
	})
}

func TestParseKeys(t *testing.T) {
	const a = "YSBrZXkgb2YgMzIgYnl0ZXMgZm9yIHRlc3RzIG9ubHk="
	for name, text := range map[string]string{
		"empty": "", "comment only": "# nothing\n", "no colon": a, "no number": "x:" + a, "no base64": "1:???", "short": "1:YQ==",
	} {
		if _, err := store.ParseKeys(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	old, err := store.ParseKeys("1:" + a)
	if err != nil {
		t.Fatal(err)
	}
	env, err := old.Seal("t", "i", "f", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	// After a rotation the old key still opens, and the last line's seals.
	rotated, err := store.ParseKeys("# keys\n1:" + a + "\n2:MzIgb3RoZXIgYnl0ZXMgZm9yIHRoZSBuZXcga2V5ISE=\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rotated.Open("t", "i", "f", env); err != nil || string(got) != "x" {
		t.Errorf("opened %q, %v", got, err)
	}
	if env, err = rotated.Seal("t", "i", "f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Open("t", "i", "f", env); !errors.Is(err, store.ErrSeal) {
		t.Errorf("the old key opened what the new one sealed: %v", err)
	}
	var none *store.Sealer
	if _, err := none.Seal("t", "i", "f", nil); err == nil {
		t.Error("sealed without keys")
	}
}
