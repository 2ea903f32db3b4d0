#!/usr/bin/env bash
# Copies, moves and drains that the master carries out itself, between released clients and nodes, with a quota and read back.
#
#   conformance/transfers.sh [--quick] [--transports tcp-v2,rdma-1] [--metadata http,p2p] [--executors master,auto] [--pairs real-real,real-go,go-real] [--scenarios tasks,drain,stopped] [--release 0.3.14]
#
# MOONCAKE_CLIENTS  folder of the installed releases (default .cache/clients of the repository)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/dataplane.sh"
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m transfers --programs "$programs" "$@"
