#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-adapter.sh [BUILD]: what the adapter does inside a host, in one run: other
# people's programs, unmodified, between two processes on two CPUs, beside the
# machine's own floor and beside UCX over POSIX shared memory. Everything is taken
# in turns, RUNS times; the medians count, and for rates the slowest run, too.
#
#   RUNS   runs (10)       CPUS   two CPUs (0,1)
#
# For an idle machine. On a machine of others: the ratios to what was measured in
# the same run say more than the figures.
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
export BUSBAR
CPUS=${CPUS:-0,1} RUNS=${RUNS:-10}

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
# perftest NAME COLUMN FACTOR PROGRAM ARGS...
perftest() {
	name=$1 column=$2 factor=$3
	shift 3
	free_port
	start_server taskset -c "${CPUS%,*}" "$@" -d "$DEVICE" -F -p "$port"
	wait_ready tcp_listens "$port"
	run_client taskset -c "${CPUS#*,}" "$@" -d "$DEVICE" -F -p "$port" 127.0.0.1
	finish_server
	awk -v c="$column" -v f="$factor" '
		/^ *[0-9]+ +[0-9]+ +[0-9.]+ / { v = $c * f }
		END { print v }' "$tmp/client.log" >>"$tmp/$name.runs"
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
	awk '/^Final:/ { print $3 * 1000 }' "$tmp/client.log" >>"$tmp/ucx.runs"
}

# The clock of perftest's cycles, as it finds it; nanoseconds per cycle.
cycle_ns=$(awk -F: '/^cpu MHz/ { print 1000 / $2; exit }' /proc/cpuinfo)

floor() {
	"$BUSBAR" bench floor --cpus "$CPUS" --json "$1" |
		sed -n 's/.*"median": \([0-9.]*\).*/\1/p' >>"$tmp/$1.runs"
}

run=0
while [ "$run" -lt "$RUNS" ]; do
	run=$((run + 1))
	[ ! -t 2 ] || printf '\rrun %d of %d ' "$run" "$RUNS" >&2
	floor cacheline_oneway_ns
	perftest send2 5 "$cycle_ns" ib_send_lat -C -s 2 -n 100000
	perftest send64 5 "$cycle_ns" ib_send_lat -C -s 64 -n 100000
	both=$CPUS CPUS=${CPUS%,*},${CPUS%,*}
	perftest send64_one_cpu 5 1 ib_send_lat -s 64 -n 2000
	CPUS=$both
	if command -v ucx_perftest >/dev/null; then
		ucx
	fi
	perftest write8 5 "$cycle_ns" ib_write_lat -C -s 8 -n 50000
	BUSBAR_MAP_MEMORY=on
	export BUSBAR_MAP_MEMORY
	perftest write8_mapped 5 "$cycle_ns" ib_write_lat -C -s 8 -n 50000
	unset BUSBAR_MAP_MEMORY
	perftest read8 5 "$cycle_ns" ib_read_lat -C -s 8 -n 50000
	floor vm_writev_1m_ns
	perftest write1m 4 0.001048576 ib_write_bw -s 1048576 -n 5000
	perftest send64k 4 0.001048576 ib_send_bw -s 65536 -n 50000
	perftest send8 5 1 ib_send_bw -s 8 -n 2000000
done
[ ! -t 2 ] || printf '\r' >&2

# quantile NAME: slowest, median and fastest of its runs
quantiles() {
	[ -s "$tmp/$1.runs" ] || return 0
	sort -g "$tmp/$1.runs" | awk -v name="$1" '{ v[NR] = $1 } END {
		m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		print name, m, v[1], v[NR] }'
}
for name in cacheline_oneway_ns send2 send64 send64_one_cpu ucx write8 write8_mapped read8 \
	vm_writev_1m_ns write1m send64k send8; do
	quantiles "$name"
done | awk -v runs="$RUNS" -v cpus="$CPUS" '
	{ m[$1] = $2; lo[$1] = $3; hi[$1] = $4 }
	function line(what, name, unit, note) {
		if (name in m)
			printf "%-44s %9.4g %-7s %8.4g to %-8.4g %s\n", what,
				m[name], unit, lo[name], hi[name], note
	}
	function times(a, b) { return (b in m) ? sprintf("%.2f x ", m[a] / m[b]) : "" }
	END {
		printf "%d runs on CPUs %s%28s %s\n", runs, cpus, "median", "       all runs"
		line("cache line to another CPU, one way", "cacheline_oneway_ns", "ns", "")
		line("ib_send_lat 2 B", "send2", "ns",
			times("send2", "cacheline_oneway_ns") "the cache line")
		line("ib_send_lat 64 B", "send64", "ns",
			("ucx" in m) ? times("send64", "ucx") "UCX" : "")
		line("UCX active message 64 B, posix", "ucx", "ns", "")
		line("ib_send_lat 64 B, both on one CPU", "send64_one_cpu", "us", "")
		line("ib_write_lat 8 B", "write8", "ns", "")
		line("ib_write_lat 8 B, mapped memory", "write8_mapped", "ns", "")
		line("ib_read_lat 8 B", "read8", "ns", "")
		m["pvm"] = 1048576 / m["vm_writev_1m_ns"]
		lo["pvm"] = 1048576 / hi["vm_writev_1m_ns"]
		hi["pvm"] = 1048576 / lo["vm_writev_1m_ns"]
		line("process_vm_writev 1 MiB", "pvm", "GB/s", "")
		line("ib_write_bw 1 MiB", "write1m", "GB/s",
			times("write1m", "pvm") "process_vm_writev")
		line("ib_send_bw 64 KiB", "send64k", "GB/s",
			sprintf("slowest %.2f x the median",
				lo["send64k"] / m["send64k"]))
		line("ib_send_bw 8 B", "send8", "M/s", "")
	}'
