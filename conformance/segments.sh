#!/usr/bin/env bash
# Values between released clients and ours, in each other's memory: the matrix of clients, owners, protocols and metadata.
#
#   conformance/segments.sh [--quick] [--releases 0.3.13,0.3.14] [--transports tcp-v1,tcp-v2,rdma-1,rdma-2] [--metadata http,p2p] [--cells real-go,go-real] [--seed N] [--jobs N]
#
# MOONCAKE_CLIENTS  folder of the installed releases (default .cache/clients of the repository)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/dataplane.sh"
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m segments --programs "$programs" "$@"
