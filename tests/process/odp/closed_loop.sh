#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# closed_loop.sh: each pitfall of memory on demand is simulated (busbar bench odp), captured, and
# found in the capture (busbar trace); what is none is not taken for one.
set -eu
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-closed-loop.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0

# verdict NAME STATUS OPTIONS...: of each flow.
verdict() {
	name=$1 expected=$2
	shift 2
	"$BUSBAR" bench odp --no-csv "$@" --capture "$tmp/capture" >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
	status=0
	"$BUSBAR" trace --json "$tmp/capture" >"$tmp/json" || status=$?
	others=$(grep '"verdict":' "$tmp/json" | grep -cv "\"$name\"" || true)
	if [ "$status" -ne "$expected" ] || [ "$others" -ne 0 ] ||
		! grep -q "\"verdict\": \"$name\"" "$tmp/json"; then
		echo "failed: bench odp $*: status $status, verdicts:"
		grep '"verdict":' "$tmp/json" | sort | uniq -c
		failed=1
	fi
}

verdict damming 1 --paged server
verdict damming 1 --paged client --interval 300us
verdict damming 1 --paged both --second write
verdict damming_recovered 1 --paged server --num-ops 3 --interval 2500us
verdict read_flood 1 --num-qps 64 --num-ops 512 --size 32 --interval 10us --paged client
verdict write_amplification 1 --operation write --num-ops 512 --interval 0 --paged server
verdict timeout 1 --answers false
verdict page_fault 0 --profile connectx6 --paged server
verdict page_fault 0 --paged server --num-ops 1
verdict none 0 --paged none
exit $failed
