#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run-demo.sh [BUILD]: two gateways on this host. A replays a recorded fault at
# its own rate and a generated signal at 10 kHz; both travel by RDMA to B, which
# writes what it receives. In the end every value of every sample is compared.
# Fails when one was lost, came out of order or differs in a single bit.
#
#   DURATION  seconds of traffic (10)       MODE  RC or UD (RC)
#   RATE      samples per second (10000)    OUT   folder for the files (out)
#   VALUES    values per sample (8)         PORT  first of four ports (1337)
#   FILE      a recording to replay instead, csv or villas.human by its name
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
export DURATION="${DURATION:-10}" RATE="${RATE:-10000}" VALUES="${VALUES:-8}"
export MODE="${MODE:-RC}" OUT="${OUT:-out}" PORT="${PORT:-1337}"
export LIMIT=$((RATE * DURATION))
export PORT_A1="$PORT" PORT_B1=$((PORT + 1))
export PORT_A2=$((PORT + 2)) PORT_B2=$((PORT + 3))
export BUSBAR_LOG="${BUSBAR_LOG:-info}"

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
mkdir -p "$OUT"
rm -f "$OUT"/*-sent.csv "$OUT"/*-received.csv "$OUT"/[ab].log
. scripts/gateways.sh

if [ -z "${FILE:-}" ]; then
	FILE=$OUT/fault.csv
	"$BUSBAR" simulate fault --duration "$DURATION" --output "$FILE" ||
		die "the waveform could not be made"
fi
[ -r "$FILE" ] || die "FILE=$FILE cannot be read"
case $FILE in
*.csv) FORMAT=csv ;;
*.tsv) FORMAT=tsv ;;
*) FORMAT=villas.human ;;
esac
export FILE FORMAT

echo "busbar: two gateways on $("$BUSBAR" devices | awk 'NR == 1 { print $1 }'), $MODE, for $DURATION s"
echo "  A  replays $FILE and generates $VALUES values at $RATE/s (examples/demo/a.conf)"
echo "  B  receives both and writes them to $OUT/ (examples/demo/b.conf)"

AFFINITY=$(cpu_mask 1) start b "$BUSBAR" run examples/demo/b.conf
b=$pid
wait_log b "$b" 2 'listening on'
AFFINITY=$(cpu_mask 0) start a "$BUSBAR" run examples/demo/a.conf
a=$pid

finish a "$a" $((DURATION + 10))
kill -TERM "$b"
finish b "$b" 10

failed=0
for stream in waveform generator; do
	echo
	echo "$stream:"
	"$BUSBAR" compare "$OUT/$stream-sent.csv" "$OUT/$stream-received.csv" ||
		failed=1
done
echo
echo "files and logs are in $OUT/"
exit "$failed"
