#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# cost.sh ROUNDS LIBRARY: how many instructions posting 64 bytes and polling for them costs (adapter-rounds)
# without the shield, with it, and with it in a program that has a region on demand. A program
# without such regions has to pay less than 3 %. The least of many counts is taken, as the adapter's own
# thread adds to some. valgrind does not know each way to read the time, so it is not read by the TSC.
set -u
rounds=${1:?adapter-rounds} library=${2:?the library of the shield}
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-cost.XXXXXX")
trap 'rm -rf "$dir"' EXIT
failed=0

# count LIBRARY ARGUMENTS...: prints the instructions of a message.
count() {
	preload=$1
	shift
	rm -f "$dir"/out*
	BUSBAR_TSC=0 BUSBAR_DEVICES=soft LD_PRELOAD=$preload valgrind --tool=callgrind --collect-atstart=no \
		--toggle-collect=counted --dump-after=counted --callgrind-out-file="$dir/out" \
		"$rounds" "$@" >"$dir/log" 2>&1 || {
		grep -v '^--' "$dir/log" | tail -5 >&2
	}
	awk '/^totals:/ && $2 > 0 && (!least || $2 < least) { least = $2 }
		END { print int(least / 100 + 0.5) }' "$dir"/out.*
}

for transport in shm roce; do
	export BUSBAR_TRANSPORTS=$transport
	for what in send write; do
		without=$(count '' $what 64)
		with=$(count "$library" $what 64)
		demand=$(count "$library" $what 64 demand)
		echo "$transport, $what of 64 bytes: $without instructions, $with with the shield, $demand with a region on demand"
		if [ "$without" -le 0 ] || [ $((with * 100)) -gt $((without * 103)) ]; then
			echo "failed: more than 3 %, or nothing was counted"
			failed=1
		fi
	done
done
exit $failed
