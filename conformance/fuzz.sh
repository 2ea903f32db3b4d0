#!/usr/bin/env bash
# Runs every fuzz target of the project for a while each.
#
#   conformance/fuzz.sh 10s          a smoke
#   conformance/fuzz.sh 10000000x    ten million inputs each
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
count=0
while IFS=: read -r file target; do
  echo "--- $target (./$(dirname "$file")) for $time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")"
  count=$((count + 1))
done < <(git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //')
[ "$count" -gt 0 ] || { echo "no fuzz target found"; exit 1; }
echo "fuzz: $count passed, 0 failed"
