#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh LIBRARY EXAMPLE: the example with the board of fake.c: what a path writes to an output is
# read by the stream of an input, and the gateway ends with status 0. Without a board it says so and
# ends with 1.
set -u
: "${BUSBAR:?set it to the busbar executable}"
library=$(realpath "$1") example=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail() {
	echo "failed: $*"
	cat log
	exit 1
}

sed 's|{ in = "board"; }|{ in = "board"; out = "rec"; }|
	s|^nodes = {|nodes = { rec = { type = "file"; uri = "rec.csv"; format = "csv"; };|
	s|signal = "sine";|signal = "constant"; amplitude = 0.0; offset = 2.5;|' "$example" >c.conf
BOARD=/dev/fake0 LD_PRELOAD=$library timeout 40 "$BUSBAR" run -t 2 c.conf >out 2>log
status=$?
[ $status = 0 ] || fail "exit status $status"
grep -q 'board fake, driver fake' log || fail 'the log does not name the board'
# secs,nanosecs,offset,sequence,measured,code; channel 1 has nothing
awk -F, '/^[0-9]/ { n++; last = $5; other = $6; if (n > 1 && $4 != before + 1) gaps++; before = $4 }
	END { printf "%d samples, %d gaps, %s V, code %s\n", n, gaps, last, other
		exit !(n > 100 && last > 2.499 && last < 2.501 && other == 0) }' rec.csv >result ||
	fail "$(cat result)"
cat result

BOARD=/dev/no_board timeout 40 "$BUSBAR" run -t 2 c.conf >out 2>log
status=$?
[ $status = 1 ] || fail "without a board: exit status $status"
grep -q 'error .*node board: the board /dev/no_board cannot be opened: No such file' log ||
	fail 'the log does not say that there is no board'
exit 0
