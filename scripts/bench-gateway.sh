#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-gateway.sh [BUILD]: how late samples are, and how many are missed or
# lost, between two gateway processes on two CPUs: signal -> file and infiniband
# here, infiniband -> file there. One line per rate and mode; the machine floor of
# the same minute stands above, because nothing below it is possible.
#
#   RATES   samples per second ("10000 100000")    MODES  ("RC")
#   VALUES  values per sample (8)                  OUT    folder (out/bench)
#   SECONDS_EACH  duration of one point (4)        PORT   first of two (1437)
#
# Latency is the time from the origin timestamp to the receive timestamp and
# includes both gateways. Files are written after the run.
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
RATES=${RATES:-10000 100000} MODES=${MODES:-RC}
export VALUES="${VALUES:-8}" OUT="${OUT:-out/bench}" PORT="${PORT:-1437}"
export PORT_A="$PORT" PORT_B=$((PORT + 1))
seconds=${SECONDS_EACH:-4}

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
mkdir -p "$OUT"
. scripts/gateways.sh

# point MODE RATE
point() {
	export MODE="$1" RATE="$2" LIMIT=$(($2 * seconds))
	rm -f "$OUT/sent.csv" "$OUT/received.csv"
	AFFINITY=$(cpu_mask 1) start target "$BUSBAR" run examples/bench-target.conf
	target=$pid
	wait_log target "$target" 1 'listening on'
	AFFINITY=$(cpu_mask 0) start source "$BUSBAR" run examples/bench-source.conf
	source=$pid
	finish source "$source" $((seconds + 20))
	kill -TERM "$target"
	finish target "$target" 20
	echo
	echo "$MODE, $RATE/s, $VALUES values:"
	# Losses are a result here, not a failure.
	"$BUSBAR" compare "$OUT/sent.csv" "$OUT/received.csv" || true
}

"$BUSBAR" bench floor cacheline_oneway_ns udp_rtt_64_ns eventfd_wakeup_ns
for mode in $MODES; do
	for rate in $RATES; do
		point "$mode" "$rate"
	done
done
