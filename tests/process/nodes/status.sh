#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/nodes/common.sh
. "$(dirname "$0")/common.sh"

# ends STATUS FILE: a gateway that writes to FILE what a generator makes.
ends() {
	cat >"$tmp/status.conf" <<-CONF
		nodes = {
			sig = { type = "signal"; rate = 1000; values = 2; limit = 50; };
			tape = { type = "file"; uri = "$2"; format = "csv"; };
		};
		paths = ( { in = "sig"; out = "tape"; } );
		idle_stop = true;
		hugepages = 0;
	CONF
	status=0
	"$BUSBAR" run -q --summary=none "$tmp/status.conf" 2>"$tmp/log" || status=$?
	[ "$status" -eq "$1" ] || {
		cat "$tmp/log"
		fail "ended with $status, not $1, after writing to $2"
	}
}

ends 0 "$tmp/out.csv"
[ -w /dev/full ] || skip "there is no /dev/full"
ends 1 /dev/full
grep -q "cannot write '/dev/full'" "$tmp/log" || fail "the log does not say what failed"
