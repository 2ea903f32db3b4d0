#!/usr/bin/env bash
# Runs every command that the README and the documentation show.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'git checkout --quiet -- docs/examples' EXIT
python3 conformance/docs.py README.md docs/multi-tenant.md docs/policy-connectors.md docs/mooncakectl.md docs/node.md \
  docs/connectors/{README,tutorial,http,testing,packaging,debugging}.md
