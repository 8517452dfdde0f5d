#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-gateway.sh [BUILD]: how late samples are, and how many are missed or lost,
# between two gateway processes on two CPUs: `busbar bench node` for several media, numbers
# of values and rates, one line each; the machine's floor of the same minute stands above,
# because nothing below it is possible.
#
#   MEDIA   RC UC UD (infiniband), or nodes as in busbar-bench(1): shmem, udp, tcp, unix,
#           loopback (one process) ...; or "all" ("RC")
#   RATES   samples per second ("10000 100000")    VALUES  per sample ("8")
#   SECONDS_EACH  duration of one point (4)        OUT     folder for all results (none)
#   PRIORITY  SCHED_FIFO of all threads, 0: none (0)
#   NICE    nice value of the generator's gateway, -20 to 19 (0); it gets a session of
#           its own then
#   CATCH_UP  of the generator in seconds (0.005): steps that are late by up to that are
#           made up; 0: never, 0.0001: what the node does by default
#
# missed% are steps that the generator left out because they were too late; made-up% were
# late by a period or more and sent all the same, which without CATCH_UP would be missed
# too. The floor above the table knows the strict rule only: what an empty loop misses with
# CATCH_UP=0, the other CPU idle and, as in these runs, busy.
#
# Latency ends with the receive timestamp and includes both gateways. It is given twice:
# from when the generator made a sample (service time: what the way costs), and from when
# its step was planned, which holds what a late step has waited; a table with the first
# alone would call a generator that is held up fast.
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
RATES=${RATES:-10000 100000} MEDIA=${MEDIA:-RC} COUNTS=${VALUES:-8}
CATCH_UP=${CATCH_UP:-0.005} PRIORITY=${PRIORITY:-0} NICE=${NICE:-0} OUT=${OUT:-}
seconds=${SECONDS_EACH:-4}
[ "$MEDIA" != all ] || MEDIA="loopback shmem RC UC UD unix udp tcp"

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}

# point NAME VALUES RATE
point() {
	name=$1 values=$2 rate=$3
	case $name in
	RC | UC | UD) set -- --node infiniband --service "$name" ;;
	*) set -- --node "$name" ;;
	esac
	[ -z "$OUT" ] || set -- "$@" --out "$OUT/$name-$values-$rate"
	result=$("$BUSBAR" bench node --json "$@" --values "$values" --rate "$rate" \
		--samples $((rate * seconds)) --timer tsc --catch-up "${CATCH_UP}s" \
		--priority "$PRIORITY" --nice "$NICE")
	# Values by the name of their object and their own: from_step.p50.
	echo "$result" | awk -v name="$name" -v values="$values" -v rate="$rate" '
		function us(of, figure) { return v[of "." figure] / 1e3 }
		function f(figure) { return v[figure ".value"] }
		/[{]$/ { gsub(/[":{ ]/, ""); at[++depth] = $0; next }
		/^ *[}]/ { depth--; next }
		/": / { key = $1; gsub(/[":]/, "", key); sub(/,$/, "", $2); v[at[depth] "." key] = $2 }
		END {
			printf "%-8s %6d %8d %9d %8.3f %8.3f %6d %6d  %8.2f %8.2f %9.2f %9.2f  %8.2f %8.2f %9.2f %9.2f\n",
				name, values, rate, f("sent"), f("missed_share"), f("made_up_share"),
				f("lost") + f("lost_start"), f("out_of_order"),
				us("from_step", "p50"), us("from_step", "p99"),
				us("from_step", "p99.9"), us("from_step", "max"),
				us("from_plan", "p50"), us("from_plan", "p99"),
				us("from_plan", "p99.9"), us("from_plan", "max")
		}'
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
