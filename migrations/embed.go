// Package migrations holds the database schema as numbered golang-migrate files, embedded into the binary. River's own
// migrations run beside them.
package migrations

import "embed"

// FS holds the migration files.
//
//go:embed *.sql
var FS embed.FS
