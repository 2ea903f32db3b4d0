#!/usr/bin/env bash
# Runs a command with RDMA devices that are software: installs the headers of libibverbs where they are missing, builds
# testdata/softverbs into .cache/softverbs, and lets the command find that instead of the system's library.
#   conformance/verbs.sh go test -tags rdma ./transport/segment/...
# Programs that look for devices in /sys through libc, as the released clients do, need LD_PRELOAD=$SOFTVERBS_LIB, too.
# SOFTVERBS_DIR, the folder that processes share, is a fresh one unless it is set; there are SOFTVERBS_NDEV devices, 2 unless
# it is set.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ ! -e /usr/include/infiniband/verbs.h ] || ! command -v cc >/dev/null || ! command -v make >/dev/null; then
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo)
	"${as_root[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends libibverbs-dev gcc libc6-dev make >/dev/null
fi
mkdir -p "$root/.cache/softverbs"
export SOFTVERBS_LIB=$root/.cache/softverbs/libibverbs.so.1
export SOFTVERBS_NDEV=${SOFTVERBS_NDEV:-2}
(
	flock 9
	make -s -C "$root/testdata/softverbs" LIB="$SOFTVERBS_LIB"
) 9>"$root/.cache/softverbs/lock"
[ $# -gt 0 ] || exit 0
export LD_LIBRARY_PATH=$root/.cache/softverbs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -n "${SOFTVERBS_DIR:-}" ]; then
	exec "$@"
fi
SOFTVERBS_DIR=$(mktemp -d)
export SOFTVERBS_DIR
trap 'rm -rf "$SOFTVERBS_DIR"' EXIT
"$@"
