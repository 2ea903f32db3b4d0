#!/usr/bin/env bash
# Measures what this master has to show against the C++ master of release 0.3.13, row by row.
#
#   conformance/perf.sh [ROW...] [--quick] [FLAGS]     no row: the whole table, about an hour
#   conformance/perf.sh --list                         the rows and about how long each takes
#
# A row is a name of --list or what names begin with before a dash: single, single-8, growth. FLAGS are those of
# mooncake_bench table: --rounds N, --duration 2s, --pin CORE, --json FILE (default: appended to bin/perf.jsonl).
# --quick runs everything for a moment, to see that it works; its figures say nothing.
# Alone on the machine only: whatever else runs is measured as well.
#
# MOONCAKE_CLIENTS  folder of the installed releases (default .cache/clients of the repository)
# MOONCAKE_MASTER   binary under test (default: bin/mooncake_master, built here)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
clients=${MOONCAKE_CLIENTS:-$root/.cache/clients}
go build -o bin/ ./cmd/mooncake_bench
bench=bin/verbs/mooncake_bench # with RDMA, and linked to devices that are software
conformance/verbs.sh go build -tags rdma -o "$bench" ./cmd/mooncake_bench
for arg in "$@"; do
  case $arg in -h | --help | -list | --list) exec conformance/verbs.sh "$bench" table "$@" ;; esac
done
conformance/install.sh "$clients"
site=$("$clients/0.3.13/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if [ -z "${MOONCAKE_MASTER:-}" ]; then
  go build -o bin/ ./cmd/mooncake_master
  MOONCAKE_MASTER=bin/mooncake_master
fi
go test -c -o bin/core.test ./core
go build -o bin/ ./cmd/mooncake_node
ports='--rpc_port={rpc_port} --metrics_port={metrics_port}'
exec conformance/verbs.sh "$bench" table --json bin/perf.jsonl --core_test bin/core.test \
  --ours "'$MOONCAKE_MASTER' $ports" --theirs "'$site/mooncake/mooncake_master' $ports --rpc_thread_num=2" \
  --engine "$site/mooncake/transfer_engine_bench" --python "$clients/0.3.13/bin/python" --verbs "$root/.cache/softverbs/libibverbs.so.1" \
  --node 'bin/mooncake_node --master={master} --global_segment_size={size} --local_hostname=127.0.0.1:17903 --bind_address=127.0.0.1 --drain_timeout=0' "$@"
