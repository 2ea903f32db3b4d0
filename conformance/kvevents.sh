#!/usr/bin/env bash
# KV events of this master, read by libzmq: conformance/kvevents.sh
#
# MOONCAKE_KVEVENTS  folder with pyzmq and msgpack (default: .cache/kvevents of the repository, installed once)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
env=${MOONCAKE_KVEVENTS:-$root/.cache/kvevents}
if [ ! -e "$env/.installed" ]; then
  rm -rf "$env"
  python3 -m venv "$env"
  "$env/bin/python" -m pip -q --disable-pip-version-check install pyzmq msgpack
  touch "$env/.installed"
fi
cd "$root"
go build -o bin/ ./cmd/mooncake_master ./conformance/suite
exec bin/suite kv-events -python "$env/bin/python" "$@"
