#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-udp.sh [BUILD]: what a gateway costs above a bare echo program: a datagram
# goes to it and comes back, through one path with a socket node at each end. Both run
# all the time and are measured in turns, a hundred datagrams each, because the machine
# is not the same from one second to the next.
#
#   COUNT    datagrams to each (20000)
#   VALUES   values per sample (8)             POLLING  of the gateway (event)
#   PORT     first of three (12100)
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

start bare "$peer" echo "$other" "$back"
bare=$pid
wait_log bare "$pid" 1 'receiving at'
start gateway "$BUSBAR" run -q "$OUT/echo.conf"
wait_log gateway "$pid" 1 'receiving at'
"$peer" ping "$other,$PORT" "$back" "$COUNT" "$values" >"$OUT/result"
kill -TERM "$pid" "$bare"
finish gateway "$pid" 10

echo "$VALUES values, csv, polling $POLLING; round trip in us"
awk 'NR < 3 { printf "%-8s p50 %7.2f  p99 %8.2f  lost %d\n", NR == 1 ? "bare" : "gateway",
		$1, $2, $3 }
	NR == 3 { printf "difference, median of the turns: %.2f us\n", $1 }' "$OUT/result"
