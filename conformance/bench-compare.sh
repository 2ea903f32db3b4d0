#!/usr/bin/env bash
# Runs the micro-benchmarks of codec, object table, allocator, ledger and eviction order, and compares them with the
# committed baseline. Fails when one allocates more often per operation than it did; times are only shown, because
# machines differ.
#
#   conformance/bench-compare.sh            run, compare
#   conformance/bench-compare.sh --quick    once and for a moment: allocations are compared all the same
#   conformance/bench-compare.sh --update   run and make it the baseline
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
baseline=testdata/bench/baseline.txt
count=6 length=30ms
case ${1:-} in
"" | --update) ;;
--quick) count=1 length=1000x ;;
*) echo "usage: conformance/bench-compare.sh [--quick | --update]" >&2; exit 2 ;;
esac
# The pattern leaves out what takes long and is about policies, not about requests. -p 1: they would disturb each other.
pattern='^Benchmark(Lookup|LookupMiss|InsertDelete|Order|OrderRemove|TryChargeRelease|Ledger.*|ChargeParallel|Allocator|PlaceFree|PlaceFreeParallel|Requests|Replies|Decode.*|Encode.*)$'
packages='./core/evict ./core/object ./core/segment ./core/tenant ./transport/wire'
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
# Word splitting is meant.
go test -p 1 -run '^$' -bench "$pattern" -benchmem -benchtime "$length" -count "$count" -cpu 1 $packages |
  grep -v '^cpu: \|^ok \|^PASS$' >"$fresh"
if [ "${1:-}" = --update ]; then
  mkdir -p "$(dirname "$baseline")"
  cp "$fresh" "$baseline"
  exit
fi
if [ "$count" -gt 1 ]; then go tool -modfile=tools/go.mod benchstat "$baseline" "$fresh"; fi
# Most allocations of every benchmark, then and now. A benchmark that one side lacks was added or removed.
awk '
  FNR == 1 { file++ }
  $1 == "pkg:" { pkg = $2 }
  $1 ~ /^Benchmark/ {
    for (i = 2; i < NF; i++) if ($(i + 1) == "allocs/op") {
      name = pkg " " $1
      if (file == 1) { if (!(name in old) || $i > old[name]) old[name] = $i }
      else if (!(name in fresh) || $i > fresh[name]) fresh[name] = $i
    }
  }
  END {
    for (name in fresh) {
      if (!(name in old)) { print "new, without a baseline: " name; continue }
      compared++
      if (fresh[name] > old[name]) { print name ": " fresh[name] " allocations per operation, " old[name] " in the baseline"; grown++ }
    }
    print "bench-compare: " compared + 0 " benchmarks compared, " grown + 0 " allocate more often"
    exit grown > 0 || compared == 0
  }' "$baseline" "$fresh"
