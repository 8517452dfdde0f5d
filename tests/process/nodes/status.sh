#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/nodes/common.sh
. "$(dirname "$0")/common.sh"

# ends STATUS FILE: a gateway that writes to FILE what a generator makes.
ends() {
	cat >"$tmp/status.conf" <<-CONF
		nodes = {
			sig = { type = "signal"; rate = 1000; values = 2; limit = 50; realtime = false; };
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
if [ -w /dev/full ]; then
	ends 3 /dev/full
	grep -q "cannot write '/dev/full'" "$tmp/log" || fail "the log does not say what failed"
	grep -q 'warn .*node tape: a sample is lost .*No space left' "$tmp/log" ||
		fail "the log does not say why samples are lost"
	grep -q 'error .*: 50 samples were lost' "$tmp/log" || fail "the log does not say how many"
fi

# runs STATUS VALUES NODE [TEXT]: a gateway that writes samples of so many values to a
# node of these settings; its summary is in $tmp/summary, TEXT in the log.
runs() {
	cat >"$tmp/status.conf" <<-CONF
		nodes = {
			sig = { type = "signal"; signal = "$SIGNAL"; rate = 1000; values = $2; limit = $LIMIT; realtime = false; };
			out = { $3 };
		};
		paths = ( { in = "sig"; out = "out"; } );
		idle_stop = true;
		hugepages = 0;
	CONF
	status=0
	"$BUSBAR" run -q --summary=json "$tmp/status.conf" >"$tmp/summary" 2>"$tmp/log" || status=$?
	[ "$status" -eq "$1" ] && grep -q "${4:-.}" "$tmp/log" || {
		cat "$tmp/log"
		fail "ended with $status, not $1, or without '${4:-}': $3"
	}
}

# counts KEY NUMBER: of the summary's node.
counts() {
	sed -n '/"out": {/,$p' "$tmp/summary" | grep -q "\"$1\": $2\b" || {
		cat "$tmp/summary"
		fail "$1 is not $2"
	}
}

LIMIT=100 SIGNAL=counter
# One sample always fits: buffers are made as large as that, and it is said.
runs 0 512 "type = \"file\"; uri = \"$tmp/wide\"; out = { buffer_size = 32768; };" \
	'out.buffer_size 32768 is raised'
[ "$(grep -vc '^#' "$tmp/wide")" -eq 100 ] || fail "samples of 512 values are missing"
LIMIT=3 SIGNAL=random
runs 0 65000 "type = \"exec\"; format = \"json\"; exec = \"cat >$tmp/told\";"
[ "$(wc -l <"$tmp/told")" -eq 3 ] || fail "samples of 65000 values are missing"
LIMIT=100 SIGNAL=counter
! "$BUSBAR" check - 2>"$tmp/log" <<-CONF || fail "a sample that fits into no datagram is not refused"
	nodes = {
		sig = { type = "signal"; rate = 1000; values = 40000; };
		out = { type = "socket"; format = "json"; out = { address = "127.0.0.1:9"; }; };
	};
	paths = ( { in = "sig"; out = "out"; } );
CONF
grep -q 'a sample of 40000 values takes .* a datagram has' "$tmp/log" || fail "the message is another one"

# A program that stops reading; what a policy allows to be dropped is no failure.
LIMIT=3
runs 3 65000 'type = "exec"; exec = "exec 0<&-; sleep 1";' 'does not read any more'
counts refused 3
LIMIT=100
runs 0 2 'type = "loopback"; queuelen = 16;' 'as configured'
counts full 84
counts closed 16
runs 0 2 'type = "socket"; layer = "tcp-client"; out = { address = "127.0.0.1:9"; };' 'no peer is connected'
counts absent 100

# The format has no place for such values.
runs 3 2 "type = \"file\"; uri = \"/dev/null\"; hooks = ( { type = \"print\"; output = \"/dev/full\"; } );" \
	'nothing in the configuration allows that'
