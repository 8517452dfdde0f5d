#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# verdict.sh STALL: the adapter behaves as one with damming (BUSBAR_PAGING), a program meets it
# (stall.c), the adapter captures the packets, and `busbar trace` says what it was. As an adapter
# without that fault it only waits for its pages. The waits are longer than those of ConnectX-4,
# so that a busy machine posts the second request within them, too.
set -eu
stall=${1:?the program}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-verdict.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
profile() {
	printf 'nak_read_us = 140\nrnr_permille = 20000\ntimeout_floor = 16\nloses_posted = %s\n' "$1"
}

# verdict STATUS TEXT: what `busbar trace` has to say of a run by $tmp/profile.
verdict() {
	BUSBAR_DEVICES=soft BUSBAR_PAGING=$tmp/profile "$BUSBAR" exec -q -c "$tmp/capture" -- \
		"$stall" 2 10
	status=0
	"$BUSBAR" trace "$tmp/capture" >"$tmp/said" || status=$?
	if [ "$status" -ne "$1" ] || ! grep -q "$2" "$tmp/said"; then
		cat "$tmp/said"
		echo "failed: status $status, expected $1 and: $2"
		exit 1
	fi
}

profile on >"$tmp/profile"
verdict 1 'Packet damming (server side on-demand paging'
profile off >"$tmp/profile"
verdict 0 'page fault'
