#!/usr/bin/env bash
# Runs the released Mooncake clients against the C++ masters and against this one, and compares every answer.
#
#   conformance/run.sh [--quick] [--lanes 0.3.13,0.3.14,mixed] [--metadata http,p2p] [--scenarios NAMES] [--report FILE]
#
# MOONCAKE_CLIENTS  folder of the installed releases (default .cache/clients of the repository)
# MOONCAKE_MASTER   binary under test (default: bin/mooncake_master, built here)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
export MOONCAKE_CLIENTS=${MOONCAKE_CLIENTS:-$root/.cache/clients}
"$here/install.sh" "$MOONCAKE_CLIENTS"
if [ -z "${MOONCAKE_MASTER:-}" ]; then
  (cd "$root" && go build -o bin/mooncake_master ./cmd/mooncake_master)
  export MOONCAKE_MASTER=$root/bin/mooncake_master
fi
# A relative --report is meant from where the command was given; each run's processes end with their runner.
args=()
while [ $# -gt 0 ]; do
  case $1 in
  --report) args+=("$1" "$(realpath -m "$2")") && shift ;;
  --report=*) args+=(--report "$(realpath -m "${1#*=}")") ;;
  *) args+=("$1") ;;
  esac
  shift
done
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m lane ${args[@]+"${args[@]}"}
