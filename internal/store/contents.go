package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// BeginContent starts a new content for a package in UPLOADING and makes the package refer to it, so that it is garbage
// from the moment on that the package does not: whatever an earlier try has stored is dropped. ErrStale.
func (s *Store) BeginContent(ctx context.Context, packageID string, fence int64) (contentID string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("name a content: %w", err)
	}
	contentID = id.String()
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := s.lockHeld(ctx, tx, packageID, fence)
		if err != nil {
			return err
		}
		if p.OnboardingState != sol003.PackageOnboardingStateTypeUploading {
			return lcm.ErrStale
		}
		if _, err := tx.Exec(ctx, `INSERT INTO contents (id) VALUES ($1)`, contentID); err != nil {
			return fmt.Errorf("begin the content of vnf package %s: %w", packageID, err)
		}
		if _, err := tx.Exec(ctx, `UPDATE vnf_packages SET content_id = $2 WHERE id = $1`, packageID, contentID); err != nil {
			return fmt.Errorf("begin the content of vnf package %s: %w", packageID, err)
		}
		if p.ContentID != "" {
			_, err := tx.Exec(ctx, `DELETE FROM contents WHERE id = $1 AND sha256 IS NULL`, p.ContentID)
			if err != nil {
				return fmt.Errorf("drop the unfinished content of vnf package %s: %w", packageID, err)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return contentID, nil
}

// AppendContent stores consecutive chunks of an unfinished content, the first as number seq, in one transaction.
// ErrStale when the content has been dropped, as it is when its package is taken over.
func (s *Store) AppendContent(ctx context.Context, contentID string, seq int, chunks [][]byte) error {
	id, err := uuid.Parse(contentID)
	if err != nil {
		return fmt.Errorf("append to content %q: %w", contentID, err)
	}
	n, key := 0, [16]byte(id)
	_, err = s.Pool.CopyFrom(ctx, pgx.Identifier{"content_chunks"}, []string{"content_id", "seq", "data"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if n == len(chunks) {
				return nil, nil
			}
			n++
			return []any{key, int32(seq + n - 1), chunks[n-1]}, nil //nolint:gosec // a content has far fewer than 2^31 chunks
		}))
	switch {
	case foreignKey(err):
		return lcm.ErrStale
	case err != nil:
		return fmt.Errorf("store chunks %d to %d of content %s: %w", seq, seq+len(chunks)-1, contentID, err)
	}
	return nil
}

// CompleteContent names the package's content by its digest, or drops it when a content of that digest is there already
// and makes the package refer to that one, and moves the package from UPLOADING to PROCESSING. With trigger, nobody
// owns it afterwards and the trigger of its onboarding is inserted in the same transaction; without, the owner goes on.
// ErrStale.
//
// Two nodes that complete the same content at once are ordered by the unique index on the digest: the later one waits,
// breaks it, and on its second try finds the content of the first.
func (s *Store) CompleteContent(ctx context.Context, packageID string, fence int64, sha256, sha512 []byte, size int64, trigger bool) error {
	const tries = 5
	for n := 1; ; n++ {
		err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
			return s.completeContent(ctx, tx, packageID, fence, sha256, sha512, size, trigger)
		})
		if n < tries && (breaks(err, "contents_sha256_key") || foreignKey(err)) {
			continue
		}
		if err == nil && trigger {
			s.voice.announce(onboardQueue)
		}
		return err
	}
}

func (s *Store) completeContent(ctx context.Context, tx pgx.Tx, packageID string, fence int64, sha256, sha512 []byte, size int64, trigger bool) error {
	p, err := s.lockHeld(ctx, tx, packageID, fence)
	if err != nil {
		return err
	}
	if p.OnboardingState != sol003.PackageOnboardingStateTypeUploading || p.ContentID == "" {
		return lcm.ErrStale
	}
	mine, same := p.ContentID, ""
	err = tx.QueryRow(ctx, `SELECT id::text FROM contents WHERE sha256 = $1 FOR KEY SHARE`, sha256).Scan(&same)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		_, err = tx.Exec(ctx, `UPDATE contents SET sha256 = $2, sha512 = $3, size = $4 WHERE id = $1`, mine, sha256, sha512, size)
		if err != nil {
			return fmt.Errorf("complete content %s: %w", mine, err)
		}
	case err != nil:
		return fmt.Errorf("look for the content of vnf package %s: %w", packageID, err)
	default:
		p.ContentID = same
	}
	p.OnboardingState = sol003.PackageOnboardingStateTypeProcessing
	if trigger {
		p.Owner = ""
	}
	if err := s.writePackage(ctx, tx, p); err != nil {
		return err
	}
	if p.ContentID != mine {
		if _, err := tx.Exec(ctx, `DELETE FROM contents WHERE id = $1`, mine); err != nil {
			return fmt.Errorf("drop content %s, which is there already: %w", mine, err)
		}
	}
	if trigger {
		return s.enqueueOnboard(ctx, tx, packageID, fence)
	}
	return nil
}

// Content returns the size and the SHA-512 of a complete content. Not found.
func (s *Store) Content(ctx context.Context, contentID string) (size int64, sha512 []byte, err error) {
	missing := lcm.Errorf(lcm.KindNotFound, "the package's content %s is not stored", contentID)
	if !validID(contentID) {
		return 0, nil, missing
	}
	err = s.Pool.QueryRow(ctx, `SELECT size, sha512 FROM contents WHERE id = $1 AND sha256 IS NOT NULL`, contentID).Scan(&size, &sha512)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil, missing
	case err != nil:
		return 0, nil, fmt.Errorf("read content %s: %w", contentID, err)
	}
	return size, sha512, nil
}

// ContentChunk returns one chunk of a content. Not found.
func (s *Store) ContentChunk(ctx context.Context, contentID string, seq int) ([]byte, error) {
	var data []byte
	err := s.Pool.QueryRow(ctx, `SELECT data FROM content_chunks WHERE content_id = $1 AND seq = $2`, contentID, seq).Scan(&data)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, lcm.Errorf(lcm.KindNotFound, "chunk %d of content %s is not stored", seq, contentID)
	case err != nil:
		return nil, fmt.Errorf("read chunk %d of content %s: %w", seq, contentID, err)
	}
	return data, nil
}

// DropContent deletes a content unless a package refers to it, now or by the time the deletion is done.
func (s *Store) DropContent(ctx context.Context, contentID string) error {
	if !validID(contentID) {
		return nil
	}
	_, err := s.Pool.Exec(ctx, `DELETE FROM contents c WHERE c.id = $1
		AND NOT EXISTS (SELECT 1 FROM vnf_packages p WHERE p.content_id = c.id)`, contentID)
	if err != nil && !foreignKey(err) { // a package has come to refer to it meanwhile: then it stays
		return fmt.Errorf("drop content %s: %w", contentID, err)
	}
	return nil
}

// CollectContents deletes the contents that no package refers to and that were begun longer ago than age, and returns
// how many. A content that is being stored is always referred to by its package.
func (s *Store) CollectContents(ctx context.Context, age time.Duration) (int, error) {
	rows, err := s.Pool.Query(ctx, `SELECT c.id::text FROM contents c WHERE c.created_at < now() - $1::interval
		AND NOT EXISTS (SELECT 1 FROM vnf_packages p WHERE p.content_id = c.id)`, age)
	if err != nil {
		return 0, fmt.Errorf("find orphan contents: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find orphan contents: %w", err)
	}
	for _, id := range ids { // one by one: a content of many gigabytes is many rows
		if err := s.DropContent(ctx, id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
