#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-udp.sh [BUILD]: what a gateway costs above a bare echo program: a datagram
# goes to it and comes back, through one path with a socket node at each end. The
# two are measured in turns, because the machine is not the same from one second to
# the next; the smallest median of each counts.
#
#   COUNT    datagrams of one turn (5000)      TURNS    (5)
#   VALUES   values per sample (8)             POLLING  of the gateway (event)
#   PORT     first of two (12100)
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
BUSBAR=$build/busbar
peer=$build/tests/process/socket/udp-echo
COUNT=${COUNT:-5000} TURNS=${TURNS:-5} VALUES=${VALUES:-8}
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

back=$((PORT + 1))
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

# turn NAME: one line of p50, p99 and lost
turn() {
	"$peer" ping "$PORT" "$back" "$COUNT" "$values" >>"$OUT/$1.txt"
}

for i in $(seq "$TURNS"); do
	start bare "$peer" echo "$PORT" "$back"
	wait_log bare "$pid" 1 'receiving at'
	turn bare
	kill "$pid"
	wait "$pid" 2>/dev/null || true
	start gateway "$BUSBAR" run -q "$OUT/echo.conf"
	wait_log gateway "$pid" 1 'receiving at'
	turn gateway
	kill -TERM "$pid"
	finish gateway "$pid" 10
done

echo "$VALUES values, csv, polling $POLLING; round trip in us"
for name in bare gateway; do
	sort -n "$OUT/$name.txt" | head -n 1 |
		awk -v name="$name" '{ printf "%-8s p50 %7.2f  p99 %8.2f  lost %d\n", name, $1, $2, $3 }'
done
sort -n "$OUT/bare.txt" | head -n 1 >"$OUT/least"
sort -n "$OUT/gateway.txt" | head -n 1 >>"$OUT/least"
awk 'NR == 1 { bare = $1 } NR == 2 { printf "difference %.2f us\n", $1 - bare }' "$OUT/least"
