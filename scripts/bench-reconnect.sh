#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-reconnect.sh [BUILD]: how long two gateways are apart when one of them is
# killed (SIGKILL) and started again at once: from the kill until the survivor is
# connected again, and from when it had noticed the loss, as it logs it. Both
# include the start of the new process, which is most of it. One line per mode and
# victim; the receiver of datagrams (UD) never notices that its sender was
# exchanged, and their sender notices by looking every reconnect_interval.
#
#   MODES   service types ("RC UC UD")     OUT       folder (out/reconnect)
#   KILLS   per line (5)                   PORT      first of two (1537)
#   RATE    samples per second (1000)      INTERVAL  reconnect_interval in ms (1000)
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
MODES=${MODES:-RC UC UD} KILLS=${KILLS:-5} RATE=${RATE:-1000}
OUT=${OUT:-out/reconnect} PORT=${PORT:-1537} INTERVAL=${INTERVAL:-1000}

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
mkdir -p "$OUT"
. scripts/gateways.sh

# configure MODE: sender.conf and receiver.conf.
configure() {
	cat >"$OUT/sender.conf" <<-CONF
		nodes = {
			g = {
				type = "signal"; signal = "mixed"; values = 8;
				rate = $RATE; timer = "timerfd";
			};
			ib = {
				type = "infiniband"; rdma_transport_mode = "$1";
				in = { address = "127.0.0.1:$((PORT + 1))"; };
				out = {
					address = "127.0.0.1:$PORT"; max_inline_data = 128;
					max_wrs = 4096; cq_size = 4096;
					reconnect_interval = $INTERVAL;
				};
			};
		};
		paths = ( { in = "g"; out = "ib"; } );
	CONF
	cat >"$OUT/receiver.conf" <<-CONF
		nodes = {
			ib = {
				type = "infiniband"; rdma_transport_mode = "$1";
				in = {
					address = "127.0.0.1:$PORT"; polling = "event";
					max_wrs = 512; cq_size = 512; buffer_subtraction = 64;
					signals = { count = 8; type = "float"; };
				};
			};
		};
		paths = ( { in = "ib"; } );
	CONF
}

run() {
	start "$1" "$BUSBAR" run -q "$OUT/$1.conf"
	eval "$1=\$pid"
}

# kill_often MODE VICTIM SURVIVOR
kill_often() {
	configure "$1"
	run receiver
	wait_log receiver "$receiver" 1 'listening on'
	run sender
	wait_log sender "$sender" 1 'connected to'
	n=0
	: >"$OUT/times"
	while [ "$n" -lt "$KILLS" ]; do
		n=$((n + 1))
		eval "victim=\$$2 survivor=\$$3"
		killed=$(date +%s%3N)
		kill -KILL "$victim"
		wait "$victim" 2>/dev/null || true
		run "$2"
		wait_log "$3" "$survivor" "$n" 'ms after the connection was lost'
		# The new one has to know it too before it is killed.
		eval "victim=\$$2"
		wait_log "$2" "$victim" 1 'connected to'
		# When, and how long after the loss.
		line=$(sed -n 's/^\([0-9:.]*\) .*, \([0-9.]*\) ms after the connection was lost.*/\1 \2/p' \
			"$OUT/$3.log" | sed -n "${n}p")
		echo "$(($(date -d "${line% *}" +%s%3N) - killed)) ${line#* }" >>"$OUT/times"
	done
	figures=$(for column in 1 2; do
		cut -d' ' -f"$column" "$OUT/times" | sort -n | awk '
			{ t[NR] = $1 }
			END {
				printf " %8.0f %8.0f %8.0f", t[1],
					t[int((NR + 1) / 2)], t[NR]
			}'
	done)
	printf '%-4s %-9s %6d %s\n' "$1" "$2" "$KILLS" "$figures"
	kill -TERM "$sender"
	finish sender "$sender" 10
	kill -TERM "$receiver"
	finish receiver "$receiver" 10
}

printf '%-4s %-9s %6s  %26s %26s\n' '' '' '' 'ms since the kill' 'ms since it was noticed'
printf '%-4s %-9s %6s  %8s %8s %8s %8s %8s %8s\n' mode killed times min p50 max min p50 max
for mode in $MODES; do
	kill_often "$mode" receiver sender
	[ "$mode" = UD ] || kill_often "$mode" sender receiver
done
