#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# counters.sh STALL: a program that meets packet damming (stall.c) is suspected of it by the counters of
# its adapter alone; with an adapter without that fault it is not. The adapter waits longer after an
# RNR NAK than ConnectX-4 does, so that the second request is posted within that time on a busy
# machine, too.
set -eu
stall=${1:?the program}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-counters.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# watch LOSES ROUNDS: what `busbar trace --counters` says of the program; its status in $status.
watch() {
	printf 'nak_read_us = 140\nrnr_permille = 20000\ntimeout_floor = 16\nloses_posted = %s\n' \
		"$1" >"$tmp/profile"
	BUSBAR_DEVICES=soft BUSBAR_PAGING=$tmp/profile "$BUSBAR" exec -q -- "$stall" "$2" 10 \
		>"$tmp/stall" &
	program=$!
	# It can be watched from its first queue pair on.
	status=3
	while [ $status -eq 3 ] && kill -0 $program 2>/dev/null; do
		status=0
		"$BUSBAR" trace --counters --interval 20 $program >"$tmp/said" 2>"$tmp/complaints" ||
			status=$?
	done
	wait $program
}

watch on 6
if [ $status -ne 1 ] || ! grep -q "suspected: packet damming (confidence" "$tmp/said" ||
	! grep -q "tx_timeouts +[1-9].* then the process ended" "$tmp/said"; then
	cat "$tmp/stall" "$tmp/said" "$tmp/complaints"
	echo "failed: status $status; packet damming is not suspected"
	exit 1
fi
watch off 40
if [ $status -ne 0 ] || grep -q suspected "$tmp/said" || ! grep -q 'page fault' "$tmp/said"; then
	cat "$tmp/stall" "$tmp/said" "$tmp/complaints"
	echo "failed: status $status; an adapter without the fault is suspected"
	exit 1
fi
