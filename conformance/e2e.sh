#!/usr/bin/env bash
# The heavy suites in full, or with --smoke a little of each.
set -euo pipefail
cd "$(dirname "$0")/.."
smoke=${1:-}
case "$smoke" in
"") edits=200 kills=200 frames=1000000 documents=1000 operations=1000000 ;;
--smoke) edits=20 kills=10 frames=50000 documents=40 operations=100000 ;;
*) echo "usage: conformance/e2e.sh [--smoke]" >&2; exit 2 ;;
esac
go build -o bin/ ./cmd/... ./conformance/suite
bin/suite policy-latency -rounds "$edits"
bin/suite connector-kill -rounds "$kills"
bin/suite bad-input -frames "$frames" -most "$documents"
if [ -z "$smoke" ]; then
  CORE_MODEL_OPS=$operations go test -race -count 1 -timeout 60m -run 'Model' ./core
  conformance/fuzz.sh 10000000x
  conformance/run.sh
else
  CORE_MODEL_OPS=$operations go test -count 1 -run 'Model' ./core
fi
