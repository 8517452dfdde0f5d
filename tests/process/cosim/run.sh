#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh SOURCE BUILD MEDIUM: examples/cosim/run.sh from end to end. Every value
# arrives unchanged (or cosim fails) and the rows are there. How good they are is no
# matter of a test: a machine that runs others keeps no real time.
set -eu
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-cosim.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

OUT="$tmp" STEPS=1000 BEHIND=1 DURATION=0.16 BEGIN_AFTER=3 PORT=$((20000 + $$ % 6000 * 2)) \
	"$1/examples/cosim/run.sh" "$3" "$2" >"$tmp/out" 2>&1 || {
	echo "failed: $(cat "$tmp/out")"
	exit 1
}
for row in "$3" "$3-beyond"; do
	grep -q "^$row  *1000 " "$tmp/table.txt" || {
		echo "failed: no row $row in: $(cat "$tmp/out")"
		exit 1
	}
done
# In its last word the theory has the plain run stable and the other one not.
grep -q '^switch open .*stable for any delay' "$tmp/out" || { echo "failed: $(cat "$tmp/out")"; exit 1; }
grep -q '^switch open .*unstable from' "$tmp/out" || { echo "failed: $(cat "$tmp/out")"; exit 1; }
left=$(find /dev/shm -name "cosim-$$-*")
[ -z "$left" ] || { echo "failed: left behind: $left"; exit 1; }
