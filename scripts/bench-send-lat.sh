#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-send-lat.sh [BUILD]: ib_send_lat, unmodified, between two processes on
# two CPUs over busbar's adapter, as a multiple of the time that a cache line
# takes between the same two CPUs, measured before each run.
#
#   RUNS   runs (10)        SIZE   message size in bytes (2)
#   CPUS   two CPUs (0,1)   ITERS  messages per run (1000)
#   KIND   RC, UC or UD (RC)
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
export BUSBAR
CPUS=${CPUS:-0,1} RUNS=${RUNS:-10} SIZE=${SIZE:-2} ITERS=${ITERS:-1000}
KIND=${KIND:-RC}

if [ ! -x "$BUSBAR" ]; then
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
fi
# Starting pairs of programs, free ports, waiting until a server listens.
. tests/programs/common.sh
need ib_send_lat taskset

# median < one number per line
median() {
	sort -g | awk '{ v[NR] = $1 } END {
		if (NR) printf "%.4g\n", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
	}'
}

: >"$tmp/floor"
: >"$tmp/typical"
run=0
while [ "$run" -lt "$RUNS" ]; do
	run=$((run + 1))
	"$BUSBAR" bench floor --cpus "$CPUS" --json cacheline_oneway_ns |
		sed -n 's/.*"median": \([0-9.]*\).*/\1/p' >>"$tmp/floor"
	free_port
	start_server taskset -c "${CPUS%,*}" ib_send_lat -d "$DEVICE" -c "$KIND" \
		-s "$SIZE" -n "$ITERS" -F -p "$port"
	wait_ready tcp_listens "$port"
	run_client taskset -c "${CPUS#*,}" ib_send_lat -d "$DEVICE" -c "$KIND" \
		-s "$SIZE" -n "$ITERS" -F -p "$port" 127.0.0.1
	finish_server
	# bytes, iterations, min, max, typical, average ... in microseconds
	awk -v size="$SIZE" -v n="$ITERS" '$1 == size && $2 == n { print $5 * 1000 }' \
		"$tmp/client.log" >>"$tmp/typical"
done

[ "$(wc -l <"$tmp/typical")" -eq "$RUNS" ] ||
	fail "no result in the output of ib_send_lat"
typical=$(median <"$tmp/typical")
floor=$(median <"$tmp/floor")
echo "ib_send_lat -c $KIND -s $SIZE, $RUNS runs of $ITERS, CPUs $CPUS"
echo "  typical one-way latency   $typical ns (median of runs; $(sort -g "$tmp/typical" |
	sed -n '1p') to $(sort -g "$tmp/typical" | sed -n '$p'))"
echo "  cache line, one way       $floor ns (median of runs)"
awk -v a="$typical" -v b="$floor" 'BEGIN { printf "  ratio                     %.1f\n", a / b }'
