#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# UC has no acknowledgements: what a receiver that does not run has no place for
# is gone, and nobody is told. The gap of the sequence numbers tells: what was
# sent is what arrived and what the statistics count as lost.
. "$(dirname "$0")/common.sh"

MODE=UC
cat >"$tmp/receiver.conf" <<-CONF
	nodes = {
		ib = {
			type = "infiniband"; rdma_transport_mode = "UC";
			in = {
				address = "127.0.0.1:$port"; polling = "event";
				max_wrs = 16; cq_size = 16; buffer_subtraction = 2;
				signals = { count = 8; type = "float"; };
				hooks = ( {
					type = "stats"; format = "json";
					output = "$tmp/stats.json";
				} );
			};
		};
		f = {
			type = "file"; format = "csv"; uri = "$tmp/receiver.csv";
			out = { flush = true; };
		};
	};
	paths = ( { in = "ib"; out = "f"; } );
CONF
run receiver
receiver_pid=$last
until_true logged receiver 1 'listening on'
RATE=5000
sender sender $((port + 1))
sender_pid=$last
until_true has_rows receiver 200

kill -STOP "$receiver_pid"
rows=$(grep -vc '^#' "$tmp/sender.csv")
until_true has_rows sender $((rows + 4000))
kill -CONT "$receiver_pid"
rows=$(grep -vc '^#' "$tmp/receiver.csv")
until_true has_rows receiver $((rows + 500))
# 3: on a slow machine its own send queue was full for a while; those are gaps as well.
stops "$sender_pid" 0 3
until_true logged receiver 1 'connection lost'
stops "$receiver_pid"

# figure NAME: the last that the hook wrote.
figure() {
	tail -n 1 "$tmp/stats.json" | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}
received=$(grep -vc '^#' "$tmp/receiver.csv")
first=$(grep -v '^#' "$tmp/receiver.csv" | head -n 1 | cut -d, -f4)
final=$(grep -v '^#' "$tmp/receiver.csv" | tail -n 1 | cut -d, -f4)
gaps=$((final - first + 1 - received))
[ "$(figure received)" -eq "$received" ] || fail "the statistics count $(figure received) samples, the file has $received"
[ "$gaps" -gt 0 ] || fail "nothing was lost"
[ "$(figure lost)" -eq "$gaps" ] || fail "the statistics count $(figure lost) lost samples, the file lacks $gaps"
exit 0
