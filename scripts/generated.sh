#!/usr/bin/env bash
# Fails when the Go beside an OpenAPI document is not what the document generates.
set -euo pipefail
cd "$(dirname "$0")/.."
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
while IFS= read -r f; do
  mkdir -p "$before/$(dirname "$f")"
  cp "$f" "$before/$f"
done < <(find api -name '*.gen.go')
go generate ./api/...
stale=0
while IFS= read -r f; do
  cmp -s "$f" "$before/$f" || { echo "stale: $f (make generate, then commit it)" >&2; stale=1; }
done < <(find api -name '*.gen.go')
exit $stale
