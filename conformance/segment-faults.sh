#!/usr/bin/env bash
# Memory lent between processes that die, stop, go silent, lie and start anew; over TCP, then over RDMA with two devices.
#
#   conformance/segment-faults.sh [--quick] [ROUNDS]     default: 1000 rounds each, --quick: 16
#
# A failure names the seed and the round; bin/dataplane/suite segment-faults -seed S -from N goes on there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=1000
for word; do
  case $word in
  --quick) rounds=16 ;;
  *[!0-9]* | "") echo "usage: conformance/segment-faults.sh [--quick] [ROUNDS]" >&2; exit 2 ;;
  *) rounds=$word ;;
  esac
done
. "$here/dataplane.sh"
failed=0
"$programs/suite" -master "$programs/mooncake_master" segment-faults -rounds "$rounds" || failed=$((failed + 1))
"$here/verbs.sh" "$programs/rdma/suite" -master "$programs/mooncake_master" segment-faults -protocol rdma -rounds "$rounds" || failed=$((failed + 1))
echo "segment-faults.sh: $((2 - failed)) passed, $failed failed"
[ "$failed" = 0 ]
