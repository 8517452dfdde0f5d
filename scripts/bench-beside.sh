#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-beside.sh: the adapter and the gateway beside what a user would take instead: sockets,
# UCX, system calls. Each row measures both in turns, RUNS times, and prints the median of each
# and of the ratios of the turns. It measures with `busbar bench`, with other people's programs,
# unmodified, and with examples/epoll; it adds the turns, two network namespaces joined by a pair
# of Ethernet interfaces (scripts/two-hosts.sh, needs root) and busy loops.
#
# The interval of a ratio holds the true median in at least 93 of 100 cases, from five turns on;
# with five or fewer (three: 75 of 100) it goes from the lowest to the highest. Latencies are halves of round trips as perftest prints
# them, of READ and of atomics whole ones. What is wanted is a bound to compare with: nothing is
# judged. Run `bench-beside.sh --help` for the options.
#
# For an idle machine with two processors.
set -eu
cd "$(dirname "$0")/.."
BUILD=build THAN='' CPUS=${CPUS:-} RUNS=${RUNS:-5} SCALE=${SCALE:-100} json=

usage() {
	cat <<-'END'
		usage: scripts/bench-beside.sh [--build DIR] [--than DIR] [--json] [ROW...]
		       scripts/bench-beside.sh --list

		Measures the adapter and the gateway beside sockets, UCX and system calls, in turns.

		  --build DIR  folder of the build (build)
		  --than DIR   another build: ours are measured with that, too, in the same turns
		  --json       one JSON object instead of a table
		  --list       the rows: where, ours, beside what, and the wanted ratio
		  --help       this text

		environment:
		  RUNS   turns (5)            CPUS   two processors, A,B (the first two)
		  SCALE  percent of the usual messages, time and seconds (100)

		Exit status: 0 all was measured or left out for want of a tool; 1 a measurement
		failed; 2 wrong options; 77 nothing could be measured; 130 after Ctrl-C.
	END
}

# The rows; with another build each of ours is beside that, too.
table() {
	awk -F'|' -v than="$THAN" '
		!/^#/ { print }
		!/^#/ && than != "" && !seen[$1, $3]++ { print $1 "|" $2 "|" $3 "|than_" $3 "|" }' \
		scripts/bench-beside.rows
}

die() {
	echo "$*" >&2
	exit 2
}

rows=
while [ $# -gt 0 ]; do
	case $1 in
	--help)
		usage
		exit 0
		;;
	--list)
		table | awk -F'|' '{ printf "%-13s %-7s %-20s %-18s %s\n", $1, $2, $3, $4, $5 }'
		exit 0
		;;
	--json) json=1 ;;
	--build | --than)
		[ $# -gt 1 ] || die "$1 needs a folder"
		[ -x "$2/busbar" ] || die "$2/busbar is not there; run 'make build' first"
		[ "$1" = --build ] && BUILD=$2 || THAN=$(realpath "$2")
		shift
		;;
	-*) die "there is no option $1; see --help" ;;
	*)
		table | grep -q "^$1|" || die "there is no row $1; see --list"
		rows="$rows $1"
		;;
	esac
	shift
done
for number in "$RUNS" "$SCALE"; do
	case $number in
	'' | *[!0-9]* | 0) die "RUNS and SCALE are numbers above 0" ;;
	esac
done
# The first two that this process may use.
[ -n "$CPUS" ] || CPUS=$(awk '/^Cpus_allowed_list/ {
	count = split($2, part, ",")
	for (i = 1; i <= count; i++) {
		ends = split(part[i], end, "-")
		for (cpu = end[1]; cpu <= end[ends] && found < 2; cpu++)
			printf "%s%d", found++ ? "," : "", cpu
	}
}' /proc/self/status)
case $CPUS in
*,*) ;;
*)
	echo "needs two processors" >&2
	exit 77
	;;
esac
[ -n "$rows" ] || rows=$(table | cut -d'|' -f1 | uniq | tr '\n' ' ')
[ -x "$BUILD/busbar" ] || die "$BUILD/busbar is not there; run 'make build' first"
BUILD=$(realpath "$BUILD") EPOLL=$(realpath "$BUILD")/examples/epoll
BUSBAR=$BUILD/busbar
# Without rdtscp latencies are perftest's own, in steps of 10 ns.
cycles=
! grep -qw rdtscp /proc/cpuinfo || cycles=--cycles

# shellcheck source=scripts/two-hosts.sh
. scripts/two-hosts.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-beside.XXXXXX")
pids=

stop_started() {
	for started in $pids; do
		kill "$started" 2>/dev/null || true
		wait "$started" 2>/dev/null || true
	done
	pids=
}
trap 'status=$?; trap "" INT TERM; stop_started; remove_hosts; rm -rf "$tmp"; exit "$status"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
: >"$tmp/values"
: >"$tmp/missing"
failures=0

note() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
	echo "$*" >&2
}

n() {
	echo $((($1 * SCALE + 99) / 100))
}

# need PROGRAM PACKAGE: where it is missing, what needs it is left out; said once.
need() {
	command -v "$1" >/dev/null && return 0
	grep -q -x "$1" "$tmp/missing" || note "$1 is not here ($2): what it measures is left out"
	echo "$1" >>"$tmp/missing"
	return 77
}

bench() {
	"$BUSBAR" bench "$@" >"$tmp/out" 2>"$tmp/errors"
}

# record FIGURE NAME KEY FACTOR [/]: "KEY" of the group "NAME" in the JSON of the last bench, times
# FACTOR, or FACTOR divided by it.
record() {
	sed 's/[{},]/\n/g' "$tmp/out" | awk -v name="\"$2\":" -v key="\"$3\":" -v factor="$4" \
		-v divide="${5:-}" -v line="$row $measured $1 $run" '
		$1 == name { inside = 1 }
		inside && $1 == key {
			print line, divide == "" ? $2 * factor : factor / $2
			found = 1
			exit
		}
		END { exit !found }' >>"$tmp/values"
}

# program PROGRAM SIZE MESSAGES OPTIONS...
program() {
	program=$1 size=$2 messages=$(n "$3") gid_option=-x
	shift 3
	[ "$program" != ibv_rc_pingpong ] || gid_option=-g
	# shellcheck disable=SC2086 # words
	bench program --json --cpus "$CPUS" --program "$program" --size "$size" \
		--iterations "$messages" ${between:+--between $between} "$@" \
		${gid:+--arguments "$gid_option $gid"}
}

# stream PROGRAM SIZE MESSAGES
stream() {
	need "$1" perftest || return
	program "$@" && record rate bandwidth value 0.001048576
}

# latency PROGRAM SIZE MESSAGES OPTIONS...
latency() {
	need "$1" perftest || return
	program "$@" && record p50 program_median value 0.001 && record p99 program_p99 value 0.001
}

# iwarp FUNCTION PROGRAM SIZE MESSAGES OPTIONS...: stream or latency, by the device soft1
iwarp() {
	(gid='' BUSBAR_DEVICES=iwarp && export BUSBAR_DEVICES &&
		"$@" --device soft1 --arguments -R)
}

# ucx TEST SIZE MESSAGES: without the adapter, over TCP, or over POSIX shared memory here
ucx() {
	need ucx_perftest ucx-utils || return
	ucx_test=$1
	shift
	(gid='' && program ucx_perftest "$@" --test "$ucx_test")
}

# floor NAME
floor() {
	# shellcheck disable=SC2086 # words
	bench floor --json --cpus "$CPUS" --round-ms "$(n "$round_ms")" \
		${between:+--between $between} "$1"
}

# trip NAME: half of its round trip
trip() {
	floor "$1" && record p50 "$1" p50 0.0005 && record p99 "$1" p99 0.0005 &&
		record mean "$1" median 0.0005
}

node() {
	bench node --json --node udp --values 8 --rate 10000 --samples 1000000000 --cpus none \
		--seconds "$(n 2)" "$@" &&
		record cpu target_cpu value 1 && record missed missed_share value 1 &&
		record p50 from_step p50 0.001
}

# epoll PROGRAM [COMMAND...]: of examples/epoll, each side started with COMMAND
epoll() {
	asked=$EPOLL/$1 port=$((20000 + ($$ + run * 7) % 10000)) address=${between:+10.77.0.2}
	address=${address:-127.0.0.1} tries=0
	shift
	need "$asked" "a build with libibverbs and librdmacm" || return
	: >"$tmp/out"
	# shellcheck disable=SC2086 # words
	$in_b taskset -c "${CPUS%,*}" "$@" "$asked" serve "$address" "$port" >"$tmp/out" 2>"$tmp/errors" &
	server=$! before=$pids
	pids="$pids $server"
	until grep -q listening "$tmp/out"; do
		tries=$((tries + 1))
		kill -0 "$server" 2>/dev/null && [ "$tries" -lt 1000 ] || return 1
		sleep 0.01
	done
	# shellcheck disable=SC2086 # words
	$in_a timeout --foreground 60 taskset -c "${CPUS#*,}" "$@" "$asked" ask "$address" "$port" "$(n 10000)" \
		>"$tmp/times" 2>>"$tmp/errors" && wait "$server" || return 1
	pids=$before
	awk -v line="$row $measured" -v run="$run" '
		{ print line, "p50", run, $2 / 2000; print line, "p99", run, $4 / 2000 }' \
		"$tmp/times" >>"$tmp/values"
}

# measure NAME: its figures into $tmp/values. 77: the tool is missing; another status: it failed.
measure() {
	measured=$1 work=${1#than_} BUSBAR=$BUILD/busbar
	[ "$work" = "$1" ] || BUSBAR=$THAN/busbar
	case $work in
	write64k | send64k | read64k) stream "ib_${work%64k}_bw" 65536 "$messages_64k" ;;
	write1m) stream ib_write_bw 1048576 5000 ;;
	rate8) need ib_send_bw perftest && program ib_send_bw 8 2000000 &&
		record messages message_rate value 0.000001 ;;
	send64) latency ib_send_lat 64 "$messages" ${cycles:+"$cycles"} ;;
	send8) latency ib_send_lat 8 10000 ;;
	write8) latency ib_write_lat 8 10000 ;;
	write8_uc) latency ib_write_lat 8 10000 --type UC ;;
	read8) latency ib_read_lat 8 10000 ;;
	atomic8) latency ib_atomic_lat 8 10000 ;;
	send64_events) latency ib_send_lat 64 10000 --events ;;
	pingpong_events) need ibv_rc_pingpong ibverbs-utils &&
		program ibv_rc_pingpong 64 10000 --events &&
		record mean program_mean value 0.001 ;;
	iwarp_write64k | iwarp_send64k | iwarp_read64k)
		work=${work#iwarp_}
		iwarp stream "ib_${work%64k}_bw" 65536 "$messages_64k"
		;;
	iwarp_send64) iwarp latency ib_send_lat 64 "$messages" ;;
	ucx64) ucx ucp_am_lat 64 100000 && record p50 program_median value 0.001 ;;
	ucx8) ucx ucp_am_bw 8 1000000 && record messages message_rate value 0.000001 ;;
	ucx_stream) ucx tag_bw 65536 "$messages_64k" && record rate bandwidth value 0.001048576 ;;
	udp_stream) floor "$udp_stream" && record rate "$udp_stream" median 1 ;;
	tcp_stream) floor tcp_stream_64k_gbs && record rate tcp_stream_64k_gbs median 1 ;;
	udp) trip udp_rtt_64_ns ;;
	tcp) trip tcp_rtt_64_ns ;;
	udp_sleeping) trip udp_sleeping_rtt_64_ns ;;
	tcp_sleeping) trip tcp_sleeping_rtt_64_ns ;;
	eventfd) floor eventfd_wakeup_ns && record p50 eventfd_wakeup_ns median 0.001 ;;
	cacheline) floor cacheline_oneway_ns && record p50 cacheline_oneway_ns median 0.001 ;;
	vm_writev) floor vm_writev_1m_ns && record rate vm_writev_1m_ns median 1048576 / ;;
	epoll_rdma) epoll epoll-rdma "$BUSBAR" exec --quiet -- ;;
	epoll_tcp) epoll epoll-tcp ;;
	node_event) node --polling event --timer timerfd --catch-up 0 ;;
	node_*) node --polling "${work#node_}" ;;
	esac
}

# enter PLACE: makes it; 1, said, where this host cannot.
enter() {
	mtu=${1%+*} between='' gid='' in_a='' in_b='' udp_stream=udp_stream_1040_gbs round_ms=20
	messages_64k=5000 messages=20000
	case $1 in
	lossy) mtu=1500 round_ms=300 messages_64k=1000 ;;
	9000*) udp_stream=udp_stream_4112_gbs ;;
	*+*) messages_64k=1000 messages=4000 ;;
	esac
	if [ "$mtu" != here ]; then
		why=$(two_hosts "$mtu") || {
			note "row $row is left out: $why"
			return 1
		}
		in_a="ip netns exec $host_a" in_b="ip netns exec $host_b"
		between=$host_b=10.77.0.2,$host_a=10.77.0.1
		gid=$(on_a "$BUSBAR" devices soft0 |
			awk '$1 == "gid" && $5 == "::ffff:10.77.0.1" { print $2; exit }')
	fi
	if [ "$1" = lossy ]; then
		for host in "$host_a" "$host_b"; do
			tc -n "$host" qdisc add dev net0 root netem loss 1% delay 100us 2>/dev/null || {
				note "row $row is left out: no netem in this kernel, or no tc (iproute2)"
				return 1
			}
		done
	fi
	loops=$(echo "$1" | sed -n 's/.*+//p')
	while [ "${loops:-0}" -gt 0 ]; do
		sh -c 'while :; do :; done' &
		pids="$pids $!" loops=$((loops - 1))
	done
}

# All measurements of the row, once.
turn() {
	[ ! -t 2 ] || printf '\r\033[Krow %s, turn %d of %d' "$row" "$run" "$RUNS" >&2
	for name in $(table | awk -F'[|:]' -v row="$row" '$1 == row {
		if (!seen[$3]++) print $3; if (!seen[$5]++) print $5 }'); do
		result=0
		measure "$name" || result=$?
		[ "$result" -eq 0 ] || [ "$result" -eq 77 ] || {
			failures=$((failures + 1))
			note "row $row, turn $run: $name failed:"
			grep -v '#bytes' "$tmp/errors" >&2 || true
		}
	done
}

# The machine's floor, after each row.
machine() {
	bench floor --json --cpus "$CPUS" cacheline_oneway_ns eventfd_wakeup_ns system_call_ns || return 0
	measured=machine row=-
	for name in cacheline_oneway_ns eventfd_wakeup_ns system_call_ns; do
		record $name $name median 1
	done
}

for row in $rows; do
	this=$row
	if enter "$(table | awk -F'|' -v row="$row" '$1 == row { print $2; exit }')"; then
		run=0
		while [ "$run" -lt "$RUNS" ]; do
			run=$((run + 1))
			turn
		done
		stop_started
		run=$this
		machine
	fi
	stop_started
	remove_hosts
done
[ ! -t 2 ] || printf '\r\033[K' >&2

table | awk -F'|' -v rows="$rows" -v values="$tmp/values" -v json="$json" -v runs="$RUNS" \
	-v cpus="$CPUS" -f scripts/bench-beside.awk || status=$?
[ "$failures" -eq 0 ] || exit 1
exit "${status:-0}"
