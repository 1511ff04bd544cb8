package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// referenceClass is the first key of the advisory locks that guard references ("vnfr" in ASCII); the second is a hash of
// the id referred to. Whoever makes a reference holds its lock shared until the transaction ends, whoever deletes what
// is referred to holds it alone: what the deleter then sees is all that there is. Two ids with one hash wait for one
// another without need, and rarely.
const referenceClass int32 = 0x766e6672

// queueReference makes a batch hold the reference lock of an id, shared.
func queueReference(b *pgx.Batch, id string) {
	b.Queue(`SELECT pg_advisory_xact_lock_shared($1, hashtext($2))`, referenceClass, id)
}

// lockReferences keeps anybody from making a reference to an id until the transaction ends.
func lockReferences(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, referenceClass, id)
	return err
}
