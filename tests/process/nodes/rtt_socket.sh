#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Over UDP to another gateway, which returns everything. What it keeps back for a
# while is in the round trip: it stands in the file, not the way there alone.
. "$(dirname "$0")/common.sh"
needs socket

port=$((20000 + $$ % 6000 * 2))
cat >"$tmp/echo.conf" <<-CONF
	nodes = {
		udp = {
			type = "socket"; layer = "udp"; format = "villas.binary";
			in = { address = "127.0.0.1:$port"; signals = "8f"; };
			out = { address = "127.0.0.1:$((port + 1))"; };
		};
	};
	paths = ( { in = "udp"; out = "udp"; } );
CONF
cat >"$tmp/rtt.conf" <<-CONF
	nodes = {
		rtt = {
			type = "test_rtt"; timeout = 20; shutdown = true; prefix = "udp"; output = "$tmp";
			cases = { rates = 500; values = (2, 8); count = 100; warmup = 0.1; };
		};
		udp = {
			type = "socket"; layer = "udp"; format = "villas.binary";
			in = { address = "127.0.0.1:$((port + 1))"; signals = "8f"; };
			out = { address = "127.0.0.1:$port"; };
		};
	};
	paths = ( { in = "rtt"; out = "udp"; }, { in = "udp"; out = "rtt"; } );
CONF
start echo
echo_pid=$last
until_true grep -q 'is running' "$tmp/echo.log"
start rtt
ends "$last"
kill -INT "$echo_pid"
ends "$echo_pid"
for values in 2 8; do
	file="$tmp/udp_values${values}_rate500.log"
	holds "$file" 100
	is "$file" received 100
	# Two system calls each way: never below a microsecond.
	min=$(tail -n 1 "$file" | sed 's/.*"min":\([0-9]*\).*/\1/')
	[ "$min" -ge 1000 ] || fail "a round trip over UDP of $min ns"
done
