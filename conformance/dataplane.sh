# What the lanes of the data plane have in common; to be sourced. Installs the releases and the software devices, and builds our
# programs: pure Go ones into $programs, the same with RDMA into $programs/rdma.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export MOONCAKE_CLIENTS=${MOONCAKE_CLIENTS:-$root/.cache/clients}
"$root/conformance/install.sh" "$MOONCAKE_CLIENTS"
"$root/conformance/verbs.sh"
export SOFTVERBS_LIB=${SOFTVERBS_LIB:-$root/.cache/softverbs/libibverbs.so.1}
programs=$root/bin/dataplane
(
  cd "$root"
  mkdir -p "$programs/rdma"
  what=(./cmd/mooncake_master ./cmd/mooncake_node ./conformance/peer ./conformance/suite)
  CGO_ENABLED=0 go build -o "$programs/" "${what[@]}"
  CGO_ENABLED=1 go build -tags rdma -o "$programs/rdma/" "${what[@]}"
)
export MOONCAKE_MASTER=${MOONCAKE_MASTER:-$programs/mooncake_master}
