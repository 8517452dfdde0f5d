#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# two_sources.sh LAYER: a path reads two socket nodes from one thread that waits
# for the descriptors of both; no sample of either is lost.
. "$(dirname "$0")/common.sh"

case $1 in
udp)
	left='format = "csv"; in = { address = "127.0.0.1:'$port'"; };'
	right='format = "csv"; in = { address = "127.0.0.1:'$((port + 1))'"; };'
	to='format = "csv"; out = { address = "127.0.0.1:'
	;;
tcp)
	left='layer = "tcp-server"; format = "csv"; in = { address = "127.0.0.1:'$port'"; };'
	right='layer = "tcp-server"; format = "csv"; in = { address = "127.0.0.1:'$((port + 1))'"; };'
	to='layer = "tcp-client"; format = "csv"; out = { address = "127.0.0.1:'
	;;
esac
cat >"$tmp/both.conf" <<-CONF
	nodes = {
		left = { type = "socket"; signals = "4f"; $left };
		right = { type = "socket"; signals = "4f"; $right };
		f = {
			type = "file"; format = "csv"; uri = "$tmp/both.csv";
			out = { flush = true; };
		};
	};
	paths = ( { in = ( "left", "right" ); out = "f"; mode = "any"; } );
CONF
fresh both
both_pid=$last
until_true logged both 1 'is running'
until_true logged both 2 'receiving at\|listening on'
# In one write several samples: more than one read takes.
VECTORIZE=8 RATE=1000 LIMIT=800 sender slow "$to$port\"; };"
slow_pid=$last
RATE=4000 LIMIT=3000 sender fast "$to$((port + 1))\"; };"
fast_pid=$last
own_threads=$(cat "/proc/$both_pid"/task/*/comm | grep -c -x -e left -e right || true)
[ "$own_threads" -eq 0 ] || fail "$own_threads threads for sources, expected none"
ends "$slow_pid"
ends "$fast_pid"
sent=$(($(rows slow) + $(rows fast)))
[ "$sent" -gt 20 ] || fail "hardly anything was sent"
until_true has_rows both "$sent"
stops "$both_pid"
[ "$(rows both)" -eq "$sent" ] || fail "$(rows both) outputs of $sent samples"
exit 0
