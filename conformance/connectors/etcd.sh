#!/usr/bin/env bash
# An etcd for the conformance kit, with its data in FOLDER.
#
#   etcd.sh FOLDER start|stop                          by us; its address is then in FOLDER/address
#   etcd.sh FOLDER set|delete|break|restore|second     by the kit; documents come on standard input
set -euo pipefail
folder=$1
verb=$2
key=mooncake-store/kit/tenant_quota_policy
export ETCDCTL_API=3

start() { # start FOLDER: starts an etcd there, again if need be, and waits until it serves
  local dir=$1 client peer
  mkdir -p "$dir"
  if [ ! -e "$dir/address" ]; then
    read -r client peer < <(python3 -c 'import socket
s = [socket.socket() for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')
    echo "http://127.0.0.1:$peer" >"$dir/peer"
    echo "http://127.0.0.1:$client" >"$dir/address"
  fi
  # Nobody waits for what is left running: its output must not be ours.
  setsid etcd --name kit --data-dir "$dir/data" --listen-client-urls "$(cat "$dir/address")" --advertise-client-urls "$(cat "$dir/address")" \
    --listen-peer-urls "$(cat "$dir/peer")" --initial-advertise-peer-urls "$(cat "$dir/peer")" --initial-cluster "kit=$(cat "$dir/peer")" \
    >>"$dir/log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  for _ in $(seq 150); do
    if etcdctl --endpoints "$(cat "$dir/address")" --command-timeout=1s get "$key" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  tail -n 3 "$dir/log" >&2
  return 1
}

stop() { # stop FOLDER
  [ -e "$1/pid" ] || return 0
  local pid
  pid=$(cat "$1/pid")
  kill -9 "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}

put() { # put FOLDER: the document on standard input
  local file
  file=$(mktemp)
  cat >"$file"
  # Beyond an etcd's usual limit nobody can store anything there.
  if [ "$(stat -c %s "$file")" -gt 1400000 ]; then
    rm "$file"
    exit 3
  fi
  etcdctl --endpoints "$(cat "$1/address")" put "$key" <"$file" >/dev/null
  rm "$file"
}

case $verb in
start) start "$folder" ;;
stop)
  stop "$folder"
  stop "$folder/second"
  ;;
set) put "$folder" ;;
delete) etcdctl --endpoints "$(cat "$folder/address")" del "$key" >/dev/null ;;
break) stop "$folder" ;;
restore) start "$folder" ;;
second)
  [ -e "$folder/second/pid" ] || start "$folder/second"
  put "$folder/second"
  cat "$folder/second/address"
  ;;
*) exit 3 ;;
esac
