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
	# A difference is a result here, not a failure.
	"$BUSBAR" delivery --json "$OUT/sent.csv" "$OUT/received.csv" >"$OUT/result.json" || true
	missed=$(sed -n 's/.*steps [0-9]* missed \([0-9]*\) .*/\1/p' "$OUT/source.log")
	awk -v mode="$MODE" -v rate="$RATE" -v steps="$LIMIT" -v missed="${missed:-0}" '
		/": / { gsub(/[",:]/, " "); v[$1] = $2 }
		END {
			printf "%-4s %8d %9d %8.2f %6d %6d  %7.2f %8.2f %9.2f %9.2f\n",
				mode, rate, v["sent"], 100 * missed / steps,
				v["lost"] + v["before_connection"], v["out_of_order"],
				v["p50"] / 1e3, v["p99"] / 1e3, v["p99.9"] / 1e3, v["max"] / 1e3
		}' "$OUT/result.json"
}

"$BUSBAR" bench floor cacheline_oneway_ns udp_rtt_64_ns eventfd_wakeup_ns \
	paced_100k_missed
echo
echo "$VALUES values per sample, $seconds s per line; one-way latency in us"
printf '%-4s %8s %9s %8s %6s %6s  %7s %8s %9s %9s\n' mode rate/s sent missed% lost order \
	p50 p99 p99.9 max
for mode in $MODES; do
	for rate in $RATES; do
		point "$mode" "$rate"
	done
done
