#!/usr/bin/env bash
# The heavy suites in full, or with --smoke a little of each.
set -euo pipefail
cd "$(dirname "$0")/.."
smoke=${1:-}
case "$smoke" in
"") edits=500 kills=200 changes=500 storm=1000 during=10s faults=1000 cluster=1000 writing=1m frames=1000000 documents=1000 operations=1000000 traced=200000 ;;
--smoke) edits=20 kills=10 changes=50 storm=200 during=2s faults=1 cluster=1 writing=5s frames=50000 documents=40 operations=100000 traced=20000 ;;
*) echo "usage: conformance/e2e.sh [--smoke]" >&2; exit 2 ;;
esac
go build -o bin/ ./cmd/... ./conformance/suite
bin/suite policy-latency -rounds "$edits" -storm "$storm" -during "$during"
bin/suite file-size
bin/suite connector-kill -rounds "$kills"
bin/suite file-faults -rounds "$faults" # at least once each
conformance/etcd.sh
bin/suite etcd-latency -rounds "$changes" -storm "$storm" -during "$during"
bin/suite etcd-faults -rounds "$faults"
bin/suite etcd-faults -members 3 -rounds "$cluster"
bin/suite etcd-writers -during "$writing"
bin/suite etcd-size
bin/suite bad-input -frames "$frames" -most "$documents"
conformance/kvevents.sh
export MOONCAKE_CLIENTS=${MOONCAKE_CLIENTS:-$PWD/.cache/clients}
conformance/install.sh "$MOONCAKE_CLIENTS"
bin/suite trace -seed 1 -ops "$traced"
quick=${smoke:+--quick}
conformance/segments.sh $quick
conformance/transfers.sh $quick
conformance/segment-faults.sh $quick
if [ -z "$smoke" ]; then
  CORE_MODEL_OPS=$operations go test -race -count 1 -timeout 60m -run 'Model' ./core
  conformance/fuzz.sh 10000000x
  bin/suite trace -timed
  conformance/run.sh
  conformance/load.sh
  conformance/bench-compare.sh
  conformance/perf.sh
else
  CORE_MODEL_OPS=$operations go test -count 1 -run 'Model' ./core
  conformance/bench-compare.sh --quick
  # Only that it runs and writes what it should; the figures of so short a run say nothing.
  perf=$(mktemp -d)
  trap 'rm -rf "$perf"' EXIT
  conformance/perf.sh --quick --json "$perf/rows.jsonl" single-8 full-memory-32 start scaling segment-4k-16 segment-client-1m segment-rdma
  bin/mooncake_bench report --out "$perf" "$perf/rows.jsonl" >/dev/null
  points=$(grep -c '^{"kind":"row","row":".*"checks":\[{"figure":' "$perf/rows.jsonl")
  [ "$points" -ge 15 ] || { echo "e2e: perf.sh wrote $points points, want at least 15" >&2; exit 1; }
fi
