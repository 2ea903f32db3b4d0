#!/usr/bin/env bash
# Builds the connectors of this repository and both templates, and runs the conformance kit on each.
#
#   connectors.sh            everything
#   connectors.sh --quick    without the two cases that take their minute by design; what CI runs
#   connectors.sh http ...   only these: etcd, file, http, python, go
#
# What is built lies in .cache/connectors. Status 1 when a case failed. The kits run beside each other: most of
# the time they wait.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=
if [ "${1:-}" = --quick ]; then
  quick=1
  shift
fi
wanted=${*:-etcd file http python go}
cache=$PWD/.cache/connectors
mkdir -p "$cache/bin"
scratch=$(mktemp -d)
servers=()
declare -A running=() # the processes of the kits, by name
tidy() {
  local pid
  for pid in "${servers[@]:-}" "${running[@]:-}"; do
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; } || true
  done
  [ ! -d "$scratch/etcd" ] || python3 conformance/connectors/etcd.py "$scratch/etcd" stop
  rm -rf "$scratch"
}
trap tidy EXIT
failed=()

# Names of the cases to run, as arguments; none is all.
cases() {
  [ -n "$quick" ] || return 0
  "$cache/bin/mooncakectl" connector conformance --list --output json |
    python3 -c 'import json, sys
for case in json.load(sys.stdin):
    if case["case"] not in ("watch/storm", "watch/heartbeat"):
        print("--case=" + case["case"])'
}

# kit NAME ARGUMENTS...: starts the kit.
kit() {
  local name=$1
  shift
  "$cache/bin/mooncakectl" connector conformance "$@" "${chosen[@]}" >"$scratch/$name.table" 2>&1 &
  running[$name]=$!
}

# until_said FILE: waits for a server to have said its address.
until_said() {
  local i
  for i in $(seq 100); do
    if [ -s "$1" ]; then return; fi
    sleep 0.1
  done
  echo "connectors.sh: nothing came in $1" >&2
  return 1
}

go build -o "$cache/bin/" ./cmd/mooncake_master ./cmd/mooncakectl ./cmd/mooncake-connector-http
mapfile -t chosen < <(cases)
[ -z "$quick" ] || [ ${#chosen[@]} -gt 30 ] || { echo "connectors.sh: only ${#chosen[@]} cases are known" >&2; exit 1; }

for name in $wanted; do
  case $name in
  file)
    kit file file --uri "$scratch/policy.yaml"
    ;;
  etcd)
    if ! command -v etcd >/dev/null || [ ! -d plugins/etcd ]; then
      printf '\n--- etcd: left out, there is no etcd on this machine\n'
      continue
    fi
    address=$(python3 conformance/connectors/etcd.py "$scratch/etcd" start)
    kit etcd etcd --uri "$address" --cluster-id kit \
      --source-command "python3,$PWD/conformance/connectors/etcd.py,$scratch/etcd"
    ;;
  http)
    python3 conformance/connectors/store.py "$scratch/http" >"$scratch/http.address" &
    servers+=($!)
    until_said "$scratch/http.address"
    kit http "$cache/bin/mooncake-connector-http" --uri "$(cat "$scratch/http.address")/policy" \
      --source-command "python3,$PWD/conformance/connectors/store.py,$scratch/http"
    ;;
  python)
    # A copy, as its author would make one.
    mkdir -p "$cache/python"
    rm -rf "$cache/python/mooncake_connector" "$cache/python/tests"
    tar -C templates/connector-python --exclude=./build --exclude=__pycache__ -cf - . | tar -C "$cache/python" -xf -
    cp proto/connector/v1/connector.proto "$cache/python/"
    "$cache/python/build.sh"
    printf '\n--- python: its own tests\n'
    "$cache/python/build/venv/bin/python" -m unittest discover "$cache/python/tests" || failed+=("python's own tests")
    mkdir "$scratch/python"
    kit python "$cache/python/build/mooncake-connector-sqlite" --uri "$scratch/python/policies.db" --cluster-id kit \
      --source-command "python3,$cache/python/tests/change_source.py,$scratch/python/policies.db,kit"
    ;;
  go)
    if ! ls templates/connector-go/*.go >/dev/null 2>&1; then
      printf '\n--- go: left out, there is no template\n'
      continue
    fi
    go build -o "$cache/go/mooncake-connector-template" ./templates/connector-go || { failed+=("go: it does not build"); continue; }
    mkdir "$scratch/go"
    kit go "$cache/go/mooncake-connector-template" --uri "file://$scratch/go/policy.yaml"
    ;;
  *)
    echo "connectors.sh: '$name' is none of file, etcd, http, python, go" >&2
    exit 1
    ;;
  esac
done

for name in $wanted; do
  [ -n "${running[$name]:-}" ] || continue
  wait "${running[$name]}" || failed+=("$name")
  unset "running[$name]"
  printf '\n--- %s\n' "$name"
  cat "$scratch/$name.table"
done
if [ ${#failed[@]} -gt 0 ]; then
  printf '\nconnectors: failed: %s\n' "${failed[*]}"
  exit 1
fi
printf '\nconnectors: all passed in %d s (%s)\n' "$SECONDS" "$wanted"
