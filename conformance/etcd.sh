#!/usr/bin/env bash
# Installs Debian's etcd server where no etcd is on PATH, for the tests and suites that run it as a process.
set -euo pipefail
command -v etcd >/dev/null && exit 0
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends etcd-server >/dev/null
command -v etcd >/dev/null
