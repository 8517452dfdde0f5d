#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-udp.sh [BUILD]: what a gateway costs above a bare echo program: a datagram
# goes to it and comes back, through one path with a socket node at each end. Both run
# all the time and are measured in turns, a hundred datagrams each, because the machine
# is not the same from one second to the next. No kind of `busbar bench` does that: it is the
# turns that let two microseconds be seen beside fifty.
#
#   COUNT    datagrams to each (20000)
#   VALUES   values per sample (8)             POLLING  of the gateway (event)
#   PORT     first of three (12100)
#   CPU      mask of those that answer (the second processor), and CPU_PING of the one
#            that asks (the first); 0: any. Left to itself the scheduler puts them where
#            a wake-up costs nothing or 50 us, each in its own way.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
BUSBAR=$build/busbar
peer=$build/tests/process/socket/udp-echo
COUNT=${COUNT:-20000} VALUES=${VALUES:-8}
POLLING=${POLLING:-event} PORT=${PORT:-12100}
OUT=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-udp.XXXXXX")

for program in "$BUSBAR" "$peer"; do
	[ -x "$program" ] || {
		echo "$program is not there; run 'make build' first" >&2
		exit 1
	}
done
. scripts/gateways.sh
trap 'status=$?; rm -rf "$OUT"; (exit $status); stop_all' EXIT

back=$((PORT + 1)) other=$((PORT + 2))
cat >"$OUT/echo.conf" <<-CONF
	nodes = {
		there = {
			type = "socket"; format = "csv"; signals = "${VALUES}f";
			in = { address = "127.0.0.1:$PORT"; polling = "$POLLING"; };
		};
		back = {
			type = "socket"; format = "csv";
			out = { address = "127.0.0.1:$back"; };
		};
	};
	paths = ( { in = "there"; out = "back"; } );
CONF
values=$(seq -s, 1 "$VALUES" | sed 's/\([0-9][0-9]*\)/\1.125/g')

CPU=${CPU:-$(cpu_mask 1)} CPU_PING=${CPU_PING:-$(cpu_mask 0)}
# on MASK COMMAND...: there, instead of this shell.
on() {
	mask=$1
	shift
	[ "$mask" = 0 ] || set -- taskset "$(printf %x "$mask")" "$@"
	exec "$@"
}

start bare on "$CPU" "$peer" echo "$other" "$back"
bare=$pid
wait_log bare "$pid" 1 'receiving at'
start gateway on "$CPU" "$BUSBAR" run -q "$OUT/echo.conf"
wait_log gateway "$pid" 1 'receiving at'
(on "$CPU_PING" "$peer" ping "$other,$PORT" "$back" "$COUNT" "$values") >"$OUT/result"
kill -TERM "$pid" "$bare"
finish gateway "$pid" 10

echo "$VALUES values, csv, polling $POLLING; round trip in us"
awk 'NR < 3 { printf "%-8s p50 %7.2f  p99 %8.2f  lost %d\n", NR == 1 ? "bare" : "gateway",
		$1, $2, $3 }
	NR == 3 { printf "difference, median of the turns: %.2f us\n", $1 }' "$OUT/result"
