#!/usr/bin/env bash
# go_template.sh FOLDER: copies the Go template to FOLDER, makes it a module of its own with the SDK of
# this repository, as its author would with a released one, and builds build/mooncake-connector-template.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
to=$1
rm -rf "$to"
mkdir -p "$to/build"
cp "$here"/templates/connector-go/*.go "$here/go.sum" "$to/"
sdk=github.com/mooncake-go/mooncake-master
{
  sed "s|^module .*|module example.com/mooncake-connector-template|" "$here/go.mod"
  printf '\nrequire %s v1.0.0\n\nreplace %s => %s\n' "$sdk" "$sdk" "$here"
} >"$to/go.mod"
cd "$to"
GOWORK=off go build -mod=mod -o build/mooncake-connector-template .
