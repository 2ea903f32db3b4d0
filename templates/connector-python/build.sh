#!/usr/bin/env bash
# Builds the connector: one executable file, build/mooncake-connector-TYPE.
#
#   build.sh                 TYPE is sqlite, or $TYPE
#
# build/venv gets the libraries of requirements.txt (about 80 MB; $VENV names another place). The
# executable is a zip of our own code that Python runs as it is; it names the Python of that
# environment in its first line, so it works from anywhere on this machine as long as the
# environment stays where it is. connector.proto is looked for here and then where it is in the
# sources of the master; $PROTO names another file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
type=${TYPE:-sqlite}
venv=${VENV:-$PWD/build/venv}
proto=${PROTO:-}
for candidate in connector.proto ../../proto/connector/v1/connector.proto; do
  if [ -z "$proto" ] && [ -f "$candidate" ]; then proto=$candidate; fi
done
[ -n "$proto" ] || { echo "build.sh: connector.proto is missing; copy it here from proto/connector/v1 of the master's sources" >&2; exit 1; }

umask 022 # a master refuses what others may write to
mkdir -p build
stamp=$venv/.requirements
if ! cmp -s requirements.txt "$stamp"; then
  python3 -c 'import sys; sys.exit(f"build.sh: Python 3.10 or later is needed, this is {sys.version}" if sys.version_info < (3, 10) else 0)'
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt "$stamp"
fi

# The executable holds our code and what is made from connector.proto.
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged/proto/mooncake_connector/v1" "$staged/app"
cp "$proto" "$staged/proto/mooncake_connector/v1/connector.proto"
cp -r mooncake_connector "$staged/app/"
cp ./*.py "$staged/app/"
"$venv/bin/python" -m grpc_tools.protoc -I "$staged/proto" --python_out="$staged/app" --grpc_python_out="$staged/app" \
  mooncake_connector/v1/connector.proto
touch "$staged/app/mooncake_connector/v1/__init__.py"
find "$staged/app" -name __pycache__ -prune -exec rm -rf {} +
export TZ=UTC
find "$staged/app" -exec touch -t 202001010000 {} + # the same code makes the same file

executable=build/mooncake-connector-$type
"$venv/bin/python" -m zipapp "$staged/app" --output "$staged/executable" --python "$venv/bin/python -IB"
if [ "$(head -n 1 "$staged/executable" | wc -c)" -gt 127 ]; then
  echo "build.sh: $venv is too long a path for the first line of an executable; name a shorter one with VENV=" >&2
  exit 1
fi
chmod 755 "$staged/executable"
mv "$staged/executable" "$executable" # a running connector keeps the file it was started from
echo "$PWD/$executable"
