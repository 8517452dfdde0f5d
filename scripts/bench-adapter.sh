#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-adapter.sh [BUILD [OTHER]]: what the adapter does inside a host, in one run: other
# people's programs, unmodified, between two processes on two CPUs, beside the
# machine's own floor and beside UCX over POSIX shared memory; with OTHER, each beside another
# build of busbar. Everything is taken in turns, RUNS times; the medians count, and for rates
# the slowest run, too. It measures with `busbar bench program` and `busbar bench floor`,
# and adds the turns and the choice of runs by the distance of the CPUs.
#
#   RUNS   runs (10)       CPUS   two CPUs (0,1)
#   DISTANCE   ns that a cache line needs from one CPU to the other, for a virtual
#          machine whose host moves its CPUs about: "any" takes every sample; a number
#          only those that had this distance before and after; "usual" (default) those
#          at the distance that the machine has most of the time. The others are put
#          aside, counted, and their range is printed.
#
# For an idle machine. On a machine of others: the ratios to what was measured in
# the same run say more than the figures.
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
OTHER=${2:+$(realpath "$2")/busbar}
CPUS=${CPUS:-0,1} RUNS=${RUNS:-10} DISTANCE=${DISTANCE:-usual}

fail() {
	echo "$*" >&2
	exit 1
}
for program in "$BUSBAR" ${OTHER:+"$OTHER"}; do
	[ -x "$program" ] || fail "$program is not there; run 'make build' first"
done
command -v ib_send_lat >/dev/null || fail "ib_send_lat is not installed (package perftest)"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-adapter.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# One figure of a pair of programs, times FACTOR. FIGURE FACTOR PROGRAM ARGUMENTS...
program() {
	figure=$1 factor=$2
	shift 2
	"$BUSBAR" bench program --json --cpus "$CPUS" --program "$@" >"$tmp/summary" ||
		fail "busbar bench program --program $* failed"
	value=$(awk -v name="\"$figure\":" -v factor="$factor" '
		$1 == name { found = 1 }
		found && $1 == "\"value\":" { print $2 * factor; exit }' "$tmp/summary")
	[ -n "$value" ] || fail "busbar bench program --program $* has no $figure"
}

# A latency in ns, from the processor's clock; without rdtscp perftest's own, in steps of 10 ns.
cycles=--cycles
grep -qw rdtscp /proc/cpuinfo || cycles=
latency() {
	program program_median 1 "$@" ${cycles:+"$cycles"}
}

one_cpu() {
	both=$CPUS CPUS=${CPUS%,*},${CPUS%,*}
	program program_median 0.001 "$@"
	CPUS=$both
}

mapped() {
	BUSBAR_MAP_MEMORY=on
	export BUSBAR_MAP_MEMORY
	latency "$@"
	unset BUSBAR_MAP_MEMORY
}

other() {
	ours=$BUSBAR BUSBAR=$OTHER
	"$@"
	BUSBAR=$ours
}

floor() {
	value=$("$BUSBAR" bench floor --cpus "$CPUS" --json "$1" |
		sed -n 's/.*"median": \([0-9.]*\).*/\1/p')
}

# Distances move by a tenth from look to look; another place is twice as far, or more.
same_distance() {
	[ "$DISTANCE" = any ] || awk -v d="$DISTANCE" -v a="$1" -v b="$2" \
		'BEGIN { exit !(a > d / 1.4 && a < d * 1.4 && b > d / 1.4 && b < d * 1.4) }'
}

# sample NAME MEASUREMENT ARGS...: once, again while the CPUs are found elsewhere
# before or after it
sample() {
	name=$1
	shift
	tries=0
	while [ "$tries" -lt 50 ]; do
		tries=$((tries + 1))
		floor cacheline_oneway_ns
		before=$value
		"$@"
		result=$value
		floor cacheline_oneway_ns
		if same_distance "$before" "$value"; then
			echo "$result" >>"$tmp/$name.runs"
			echo "$before" >>"$tmp/cacheline.runs"
			return 0
		fi
		echo "$result" >>"$tmp/$name.aside"
	done
	fail "the CPUs are never found at the distance of $DISTANCE ns"
}

# row NAME MEASUREMENT ARGS...: a sample, and one of the other build
row() {
	sample "$@"
	[ -n "$OTHER" ] || return 0
	name_other=$1_other
	shift
	sample "$name_other" other "$@"
}

if [ "$DISTANCE" = usual ]; then
	looks=0
	while [ "$looks" -lt 21 ]; do
		looks=$((looks + 1))
		floor cacheline_oneway_ns
		echo "$value" >>"$tmp/looks"
		sleep 0.1
	done
	DISTANCE=$(sort -g "$tmp/looks" | sed -n 11p)
fi

run=0
while [ "$run" -lt "$RUNS" ]; do
	run=$((run + 1))
	[ ! -t 2 ] || printf '\rrun %d of %d ' "$run" "$RUNS" >&2
	row send2 latency ib_send_lat --size 2 --iterations 100000
	row send64 latency ib_send_lat --size 64 --iterations 100000
	row send64_one_cpu one_cpu ib_send_lat --size 64 --iterations 2000
	if command -v ucx_perftest >/dev/null; then
		sample ucx program program_median 1 ucx_perftest --size 64 --iterations 200000
	fi
	sample vm_writev_8_ns floor vm_writev_8_ns
	row write8 latency ib_write_lat --size 8 --iterations 50000
	row write8_mapped mapped ib_write_lat --size 8 --iterations 50000
	row read8 latency ib_read_lat --size 8 --iterations 50000
	sample vm_writev_1m_ns floor vm_writev_1m_ns
	row write1m program bandwidth 0.001048576 ib_write_bw --size 1048576 --iterations 5000
	row send64k program bandwidth 0.001048576 ib_send_bw --size 65536 --iterations 50000
	row send8 program message_rate 0.000001 ib_send_bw --size 8 --iterations 2000000
done
[ ! -t 2 ] || printf '\r' >&2

# quantiles NAME: median, lowest and highest of its samples; how many were put aside, and
# the lowest and highest of those
quantiles() {
	[ -s "$tmp/$1.runs" ] || return 0
	touch "$tmp/$1.aside"
	sort -g "$tmp/$1.aside" >"$tmp/aside"
	sort -g "$tmp/$1.runs" | awk -v name="$1" -v aside="$(wc -l <"$tmp/aside")" \
		-v lo="$(sed -n 1p "$tmp/aside")" -v hi="$(sed -n '$p' "$tmp/aside")" '
		{ v[NR] = $1 }
		END {
			m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			print name, m, v[1], v[NR], aside, lo, hi
		}'
}
for name in cacheline ucx vm_writev_8_ns vm_writev_1m_ns send2 send64 send64_one_cpu write8 \
	write8_mapped read8 write1m send64k send8; do
	quantiles "$name"
	quantiles "${name}_other"
done | awk -v runs="$RUNS" -v cpus="$CPUS" -v distance="$DISTANCE" '
	{ m[$1] = $2; lo[$1] = $3; hi[$1] = $4; aside[$1] = $5; alo[$1] = $6; ahi[$1] = $7 }
	function line(what, name, unit, note) {
		if (!(name in m))
			return
		printf "%-38s %8.4g %-5s %7.4g to %-7.4g %s", what, m[name], unit,
			lo[name], hi[name], note
		if (aside[name])
			printf "%s(aside: %d, %.4g to %.4g)", note == "" ? "" : "  ",
				aside[name], alo[name], ahi[name]
		printf "\n"
	}
	function times(a, b) { return (b in m) ? sprintf("%.2f x ", m[a] / m[b]) : "" }
	# A row, and below it the other build.
	function both(what, name, unit, note) {
		line(what, name, unit, note)
		if ((name "_other") in m)
			line("  the other build", name "_other", unit,
				"ours is " times(name, name "_other") "that")
	}
	# Times of one MiB become rates: what was longest is slowest.
	function rate(name, to) {
		m[to] = 1048576 / m[name]
		lo[to] = 1048576 / hi[name]; hi[to] = 1048576 / lo[name]
		if (aside[to] = aside[name]) {
			alo[to] = 1048576 / ahi[name]; ahi[to] = 1048576 / alo[name]
		}
	}
	END {
		printf "%d runs on CPUs %s, distance %s%s\n", runs, cpus, distance,
			distance == "any" ? "" : " ns"
		line("cache line to another CPU, one way", "cacheline", "ns", "")
		both("ib_send_lat 2 B", "send2", "ns", times("send2", "cacheline") "the cache line")
		both("ib_send_lat 64 B", "send64", "ns",
			("ucx" in m) ? times("send64", "ucx") "UCX" : "")
		line("UCX active message 64 B, posix", "ucx", "ns", "")
		both("ib_send_lat 64 B, both on one CPU", "send64_one_cpu", "us", "")
		line("process_vm_writev 8 B", "vm_writev_8_ns", "ns", "")
		both("ib_write_lat 8 B", "write8", "ns",
			times("write8", "vm_writev_8_ns") "process_vm_writev")
		both("ib_write_lat 8 B, mapped memory", "write8_mapped", "ns", "")
		both("ib_read_lat 8 B", "read8", "ns", "")
		rate("vm_writev_1m_ns", "pvm")
		line("process_vm_writev 1 MiB", "pvm", "GB/s", "")
		both("ib_write_bw 1 MiB", "write1m", "GB/s", times("write1m", "pvm") "process_vm_writev")
		both("ib_send_bw 64 KiB", "send64k", "GB/s", sprintf("slowest %.2f x the median",
			lo["send64k"] / m["send64k"]))
		both("ib_send_bw 8 B", "send8", "M/s", "")
	}'
