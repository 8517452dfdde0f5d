#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-shmem.sh [BUILD]: how long a sample takes through shared memory to a
# simulator in C that sends it back (villas-shmem), and what is lost at a fixed
# rate; first between two programs of the library alone, which no gateway takes part in, then
# from a gateway (`busbar bench node --node simulator`). The machine floor of the same minute
# stands above: a sample is at least two transfers of a cache line in polling mode, and one
# wake-up in pthread mode.
#
#   RATE      samples per second of the second part (100000)
#   VALUES    values per sample (8)
#   SECONDS_EACH  duration of the second part (2)
#
# On an idle machine with two processors, in polling mode, at most 1 us one way and
# nothing lost at 100 kHz are what to expect.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
rate=${RATE:-100000} values=${VALUES:-8} seconds=${SECONDS_EACH:-2}
name=busbar-bench-$$

for program in busbar examples/shmem/villas-shmem examples/shmem/shmem-latency; do
	[ -x "$build/$program" ] || {
		echo "$build/$program is not there; run 'make build' first" >&2
		exit 1
	}
done

# Each process on a processor of its own, where there are two.
pin() {
	cpu=$1
	shift
	if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null; then
		exec taskset -c "$cpu" "$@"
	fi
	exec "$@"
}

"$build/busbar" bench floor cacheline_oneway_ns eventfd_wakeup_ns
cpus=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //; s/[-,]/ /g')
first=${cpus%% *} second=$(echo "$cpus" | awk '{ print $2 }')
echo
echo "$values values, $rate samples/s for $seconds s; one way, half a round trip"
printf '%-8s %9s %9s %9s %8s %8s %6s\n' mode 'p50 us' 'p99 us' sent missed refused lost
for mode in polling pthread; do
	(pin "${second:-0}" "$build/examples/shmem/villas-shmem" "$name-b" "$name-a" 16 \
		"$mode") 2>/dev/null &
	echo_pid=$!
	(pin "${first:-0}" "$build/examples/shmem/shmem-latency" "$name-a" "$name-b" "$mode" \
		"$rate" "$seconds" "$values") |
		awk '{ printf "%-8s %9.2f %9.2f %9d %8d %8d %6d\n",
			$1, $2 / 1000, $3 / 1000, $4, $5, $6, $7 }'
	wait "$echo_pid"
done

# From a gateway there and back. The generator, the reader of what comes back and the simulator
# keep a processor busy each: on fewer they wait for each other.
echo
exec "$build/busbar" bench node --node simulator --simulator "$build/examples/shmem/villas-shmem" \
	--rate "$rate" --values "$values" --samples $((rate * seconds))
