#!/usr/bin/env bash
# Loads of many objects through the released clients, with two tenants: a drain under traffic, and memory filled three times over its disk tier.
#
#   conformance/load.sh [drain] [offload] [promotion] [--quick] [--master ours|0.3.13|0.3.14] [--release 0.3.13|0.3.14] [--metadata http|p2p]
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
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m load "$@"
