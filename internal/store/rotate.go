package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// RotateProgress tells how far Rotate has come with a table.
type RotateProgress struct {
	Table       string
	Done, Total int // rows sealed anew, rows looked at
}

// sealedColumns are all places where envelopes stand, with the field that binds them.
var sealedColumns = []struct{ table, field string }{
	{"vims", "credentials"},
	{"vnf_packages", "source"},
	{instancesTable, "sealed"},
	{opOccsTable, "sealed"},
	{subscriptionsTable, "authentication"},
}

const rotateBatch = 200

// Rotate seals every envelope anew that is not sealed under the current key. Rows that change meanwhile are left to
// whoever changes them: every node seals under its own current key. ErrSeal when an envelope does not open.
func (s *Store) Rotate(ctx context.Context, progress func(RotateProgress)) error {
	for _, c := range sealedColumns {
		p := RotateProgress{Table: c.table}
		after := "00000000-0000-0000-0000-000000000000"
		for {
			n, last, err := s.rotateSome(ctx, c.table, c.field, after, &p)
			if err != nil {
				return fmt.Errorf("seal %s anew: %w", c.table, err)
			}
			if n == 0 {
				break
			}
			after = last
		}
		progress(p)
	}
	return nil
}

func (s *Store) rotateSome(ctx context.Context, table, field, after string, p *RotateProgress) (n int, last string, err error) {
	ident := pgx.Identifier{table}.Sanitize()
	rows, err := s.Pool.Query(ctx, "SELECT t.id::text, t.sealed FROM "+ident+" t WHERE t.id > $1::uuid AND t.sealed IS NOT NULL ORDER BY t.id LIMIT $2", after, rotateBatch)
	if err != nil {
		return 0, "", err
	}
	type row struct {
		id       string
		envelope []byte
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (v row, err error) {
		err = r.Scan(&v.id, &v.envelope)
		return v, err
	})
	if err != nil {
		return 0, "", err
	}
	b := &pgx.Batch{}
	for _, r := range found {
		last = r.id
		p.Total++
		if !s.Sealer.stale(r.envelope) {
			continue
		}
		plain, err := s.unseal(table, r.id, field, r.envelope)
		if err != nil {
			return 0, "", err
		}
		envelope, err := s.seal(table, r.id, field, plain)
		if err != nil {
			return 0, "", err
		}
		b.Queue("UPDATE "+ident+" SET sealed = $3 WHERE id = $1::uuid AND sealed = $2", r.id, r.envelope, envelope)
		p.Done++
	}
	if b.Len() > 0 {
		if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
			return 0, "", err
		}
	}
	return len(found), last, nil
}
