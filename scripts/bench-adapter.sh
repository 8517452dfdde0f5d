#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-adapter.sh [BUILD]: what the adapter does inside a host, in one run: other
# people's programs, unmodified, between two processes on two CPUs, beside the
# machine's own floor and beside UCX over POSIX shared memory. Everything is taken
# in turns, RUNS times; the medians count, and for rates the slowest run, too.
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
export BUSBAR
CPUS=${CPUS:-0,1} RUNS=${RUNS:-10} DISTANCE=${DISTANCE:-usual}

if [ ! -x "$BUSBAR" ]; then
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
fi
# Starting pairs of programs, free ports, waiting until a server listens.
. tests/programs/common.sh
need ib_send_lat taskset
limit_s=60

# One figure of a pair of perftest programs: column COLUMN of the table's last row.
# Latencies in cycles of its clock: in microseconds it prints tens of nanoseconds.
# perftest COLUMN FACTOR PROGRAM ARGS...
perftest() {
	column=$1 factor=$2
	shift 2
	free_port
	start_server taskset -c "${CPUS%,*}" "$@" -d "$DEVICE" -F -p "$port"
	wait_ready tcp_listens "$port"
	run_client taskset -c "${CPUS#*,}" "$@" -d "$DEVICE" -F -p "$port" 127.0.0.1
	finish_server
	value=$(awk -v c="$column" -v f="$factor" '
		/^ *[0-9]+ +[0-9]+ +[0-9.]+ / { v = $c * f }
		END { print v }' "$tmp/client.log")
}

one_cpu() {
	both=$CPUS CPUS=${CPUS%,*},${CPUS%,*}
	perftest "$@"
	CPUS=$both
}

mapped() {
	BUSBAR_MAP_MEMORY=on
	export BUSBAR_MAP_MEMORY
	perftest "$@"
	unset BUSBAR_MAP_MEMORY
}

# The peer: active messages of 64 bytes over shared memory, one way, in ns.
ucx() {
	free_port
	UCX_TLS=posix,self taskset -c "${CPUS%,*}" timeout 60 \
		ucx_perftest -t ucp_am_lat -s 64 -n 200000 -p "$port" \
		>"$tmp/server.log" 2>&1 &
	server_pid=$!
	wait_ready tcp_listens "$port"
	UCX_TLS=posix,self taskset -c "${CPUS#*,}" timeout 60 \
		ucx_perftest 127.0.0.1 -t ucp_am_lat -s 64 -n 200000 -p "$port" \
		>"$tmp/client.log" 2>&1 || fail "ucx_perftest"
	finish_server
	value=$(awk '/^Final:/ { print $3 * 1000 }' "$tmp/client.log")
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

# The clock of perftest's cycles, as it finds it; nanoseconds per cycle.
cycle_ns=$(awk -F: '/^cpu MHz/ { print 1000 / $2; exit }' /proc/cpuinfo)

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
	sample send2 perftest 5 "$cycle_ns" ib_send_lat -C -s 2 -n 100000
	sample send64 perftest 5 "$cycle_ns" ib_send_lat -C -s 64 -n 100000
	sample send64_one_cpu one_cpu 5 1 ib_send_lat -s 64 -n 2000
	if command -v ucx_perftest >/dev/null; then
		sample ucx ucx
	fi
	sample vm_writev_8_ns floor vm_writev_8_ns
	sample write8 perftest 5 "$cycle_ns" ib_write_lat -C -s 8 -n 50000
	sample write8_mapped mapped 5 "$cycle_ns" ib_write_lat -C -s 8 -n 50000
	sample read8 perftest 5 "$cycle_ns" ib_read_lat -C -s 8 -n 50000
	sample vm_writev_1m_ns floor vm_writev_1m_ns
	sample write1m perftest 4 0.001048576 ib_write_bw -s 1048576 -n 5000
	sample send64k perftest 4 0.001048576 ib_send_bw -s 65536 -n 50000
	sample send8 perftest 5 1 ib_send_bw -s 8 -n 2000000
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
for name in cacheline send2 send64 send64_one_cpu ucx vm_writev_8_ns write8 write8_mapped \
	read8 vm_writev_1m_ns write1m send64k send8; do
	quantiles "$name"
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
		line("ib_send_lat 2 B", "send2", "ns", times("send2", "cacheline") "the cache line")
		line("ib_send_lat 64 B", "send64", "ns",
			("ucx" in m) ? times("send64", "ucx") "UCX" : "")
		line("UCX active message 64 B, posix", "ucx", "ns", "")
		line("ib_send_lat 64 B, both on one CPU", "send64_one_cpu", "us", "")
		line("process_vm_writev 8 B", "vm_writev_8_ns", "ns", "")
		line("ib_write_lat 8 B", "write8", "ns",
			times("write8", "vm_writev_8_ns") "process_vm_writev")
		line("ib_write_lat 8 B, mapped memory", "write8_mapped", "ns", "")
		line("ib_read_lat 8 B", "read8", "ns", "")
		rate("vm_writev_1m_ns", "pvm")
		line("process_vm_writev 1 MiB", "pvm", "GB/s", "")
		line("ib_write_bw 1 MiB", "write1m", "GB/s", times("write1m", "pvm") "process_vm_writev")
		line("ib_send_bw 64 KiB", "send64k", "GB/s", sprintf("slowest %.2f x the median",
			lo["send64k"] / m["send64k"]))
		line("ib_send_bw 8 B", "send8", "M/s", "")
	}'
