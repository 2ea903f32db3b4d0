#!/bin/sh
# Regenerates connector.pb.go and connector_grpc.pb.go with pinned tools. Needs Go, Python 3
# with venv, and their package registries; everything is installed into a temporary folder.
set -eu
cd "$(dirname "$0")"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.76.0
GOBIN="$tools" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN="$tools" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
PATH="$tools:$PATH" "$tools/venv/bin/python" -m grpc_tools.protoc -I . \
  --go_out=. --go_opt=paths=source_relative \
  --go-grpc_out=. --go-grpc_opt=paths=source_relative connector.proto
