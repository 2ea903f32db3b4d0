#!/usr/bin/env bash
# Runs the original's own Python checks, with the released clients, against the C++ master and this one, and compares test by test.
#
#   conformance/upstream.sh PATH [--master ours|cpp] [--releases 0.3.13,0.3.14] [--report FILE] [NAMES…]
#
# PATH is a checkout of the original. Nothing of it is kept here, and nothing is written into it. Exit status 1: a test
# that passes against the C++ master does not pass against ours.
#
# MOONCAKE_CLIENTS  folder of the installed releases (default .cache/clients of the repository)
# MOONCAKE_MASTER   binary under test (default: bin/mooncake_master, built here)
# MOONCAKE_TORCH    folder with torch, numpy and packaging for the checks of tensors; without it they are installed once,
#                   several gigabytes, into the folder "torch" of the releases
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
case ${1:-} in "" | -*)
  sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
export MOONCAKE_CLIENTS=${MOONCAKE_CLIENTS:-$root/.cache/clients}
"$here/install.sh" "$MOONCAKE_CLIENTS"
if [ -z "${MOONCAKE_TORCH:-}" ]; then
  export MOONCAKE_TORCH=$MOONCAKE_CLIENTS/torch
  if [ ! -e "$MOONCAKE_TORCH/.installed" ]; then
    echo "conformance: installing torch for the checks of tensors" >&2
    rm -rf "$MOONCAKE_TORCH"
    "$MOONCAKE_CLIENTS/0.3.14/bin/python" -m pip -q --disable-pip-version-check install --target "$MOONCAKE_TORCH" torch numpy packaging
    touch "$MOONCAKE_TORCH/.installed"
  fi
fi
if [ -z "${MOONCAKE_MASTER:-}" ]; then
  (cd "$root" && go build -o bin/mooncake_master ./cmd/mooncake_master)
  export MOONCAKE_MASTER=$root/bin/mooncake_master
fi
args=("$(realpath "$1")")
shift
while [ $# -gt 0 ]; do
  case $1 in
  --report) args+=("$1" "$(realpath -m "$2")") && shift ;;
  --report=*) args+=(--report "$(realpath -m "${1#*=}")") ;;
  *) args+=("$1") ;;
  esac
  shift
done
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m upstream "${args[@]}"
