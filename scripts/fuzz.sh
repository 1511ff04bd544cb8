#!/usr/bin/env bash
# Runs every fuzz target for the given time, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."
for file in $(grep -rlE '^func Fuzz' --include='*_test.go' internal); do
  dir=./$(dirname "$file")
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/func //'); do
    echo "== $dir $target"
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "${1:-60s}" "$dir"
  done
done
