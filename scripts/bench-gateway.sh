#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-gateway.sh [BUILD]: how late samples are, and how many are missed or lost,
# between two gateway processes on two CPUs: signal -> file and the medium here, the
# medium -> file there. One line per medium, number of values and rate; the machine's
# floor of the same minute stands above, because nothing below it is possible.
#
#   MEDIA   RC UC UD (infiniband), shmem, udp, tcp, unix, loopback (one process), or
#           "all" ("RC")
#   RATES   samples per second ("10000 100000")    VALUES  per sample ("8")
#   SECONDS_EACH  duration of one point (4)        OUT     folder (out/bench)
#   PORT    first of two (1437)     PRIORITY  SCHED_FIFO of all threads, 0: none (0)
#   NICE    nice value of the generator's gateway, -20 to 19 (0); it gets a session of
#           its own then
#   CATCH_UP  of the generator in seconds (0.005): steps that are late by up to that are
#           made up; 0: never, 0.0001: what the node does by default
#
# missed% are steps that the generator left out because they were too late, gaps of the
# sequence; made-up% were late by a period or more and sent all the same, which
# without CATCH_UP would be missed too. The floor above the table knows the
# strict rule only: what an empty loop misses with CATCH_UP=0, the other CPU idle
# and, as in these runs, busy.
#
# Latency ends with the receive timestamp and includes both gateways. It is given twice:
# from when the generator made a sample (service time: what the way costs), and from when
# its step was planned, which holds what a late step has waited; a table with the first
# alone would call a generator that is held up fast. Files are written after the run. The
# target is read busily.
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
RATES=${RATES:-10000 100000} MEDIA=${MEDIA:-RC} COUNTS=${VALUES:-8}
export OUT="${OUT:-out/bench}" PORT="${PORT:-1437}"
export CATCH_UP="${CATCH_UP:-0.005}" PRIORITY="${PRIORITY:-0}" NICE="${NICE:-0}" PORT_A="$PORT" PORT_B=$((PORT + 1))
seconds=${SECONDS_EACH:-4}
[ "$MEDIA" != all ] || MEDIA="loopback shmem RC UC UD unix udp tcp"

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
mkdir -p "$OUT"
. scripts/gateways.sh

# run_over: whoever looks before disturbs it, with each process that the shell starts.
# The run begins a little later than the gateway; then it writes its files.
run_over() {
	sleep "$((seconds + 1))"
}

# A nice value counts for its session, see busbar.conf(5).
start_source() {
	if [ "$NICE" = 0 ]; then
		start source "$BUSBAR" run "$1"
	else
		start source setsid "$BUSBAR" run "$1"
	fi
}

# transfer: from the generator to the file of what was received.
transfer() {
	if [ "$MEDIUM" = loopback ]; then
		AFFINITY=$(cpu_mask 0) AFFINITY_B=$(cpu_mask 1) start_source \
			examples/bench/loopback.conf
		run_over
		finish source "$pid" $((seconds + 20))
		return
	fi
	AFFINITY=$(cpu_mask 1) start target "$BUSBAR" run examples/bench/target.conf
	target=$pid
	ready='is running'
	[ "$MEDIUM" != infiniband ] || ready='listening on'
	wait_log target "$target" 1 "$ready"
	AFFINITY=$(cpu_mask 0) start_source examples/bench/source.conf
	source=$pid
	run_over
	finish source "$source" $((seconds + 20))
	kill -TERM "$target"
	finish target "$target" 20
}

# steps KIND: how many of them the generator had, by its last words.
steps() {
	sed -n "s/.* steps .* $1 \([0-9]*\) .*/\1/p" "$OUT/source.log"
}

# point NAME VALUES RATE
point() {
	case $1 in
	RC | UC | UD) MEDIUM=infiniband MODE=$1 ;;
	*) MEDIUM=$1 MODE= ;;
	esac
	export MEDIUM MODE VALUES="$2" RATE="$3" LIMIT=$(($3 * seconds))
	# All of a run, twice: when less than half is left the file node sees to more,
	# on the same processor.
	export BUFFER=$(((2 * LIMIT * (VALUES * 8 + 80) / 65536 + 64) * 65536))
	rm -f "$OUT/sent.csv" "$OUT/received.csv"
	transfer
	# A difference is a result here, not a failure.
	"$BUSBAR" delivery --json "$OUT/sent.csv" "$OUT/received.csv" >"$OUT/result.json" || true
	missed=$(steps missed)
	made_up=$(steps 'made up')
	awk -v name="$1" -v values="$VALUES" -v rate="$RATE" -v steps="$LIMIT" \
		-v missed="${missed:-0}" -v made_up="${made_up:-0}" '
		function us(of, figure) { return v[of "_latency_ns" figure] / 1e3 }
		/"(service_)?latency_ns": / { group = /service/ ? "service_latency_ns" : "_latency_ns" }
		/}/ { group = "" }
		/": / { gsub(/[",:]/, " "); v[group $1] = $2 }
		END {
			printf "%-8s %6d %8d %9d %8.3f %8.3f %6d %6d  %8.2f %8.2f %9.2f %9.2f  %8.2f %8.2f %9.2f %9.2f\n",
				name, values, rate, v["sent"], 100 * missed / steps,
				100 * made_up / steps,
				v["lost"] + v["before_connection"], v["out_of_order"],
				us("service", "p50"), us("service", "p99"),
				us("service", "p99.9"), us("service", "max"),
				us("", "p50"), us("", "p99"), us("", "p99.9"), us("", "max")
		}' "$OUT/result.json"
}

"$BUSBAR" bench floor cacheline_oneway_ns udp_rtt_64_ns eventfd_wakeup_ns \
	paced_100k_missed paced_100k_missed_busy
echo
echo "$seconds s per line; one-way latency in us"
printf '%62s  %-38s %s\n' '' 'from when it was made' 'from when it was planned'
printf '%-8s %6s %8s %9s %8s %8s %6s %6s  %8s %8s %9s %9s  %8s %8s %9s %9s\n' medium values rate/s \
	sent missed% made-up% lost order p50 p99 p99.9 max p50 p99 p99.9 max
for medium in $MEDIA; do
	for values in $COUNTS; do
		for rate in $RATES; do
			point "$medium" "$values" "$rate"
		done
	done
done
