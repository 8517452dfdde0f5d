#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# hosts.sh [MTU]: other people's programs between two hosts, by transport roce: two
# network namespaces of the test's own, joined by interfaces of this MTU (4500). The programs
# choose their path MTU by what the port offers. Needs root; without, it is skipped.
BUSBAR_MTU=auto
. "$(dirname "$0")/common.sh"
. "$here/../../scripts/two-hosts.sh"
interface_mtu=${1:-4500}
limit_s=20

trap 'code=$?; trap "" EXIT INT TERM; remove_hosts; (exit "$code"); cleanup' EXIT
two_hosts "$interface_mtu" >"$tmp/why" || {
	echo "skipped: $(cat "$tmp/why")"
	exit 77
}

# The two sides, of which common.sh starts both on one host.
on_busbar() {
	exec timeout --kill-after=2 "$limit_s" ip netns exec "${where:-$host_a}" \
		"$BUSBAR" exec -- "$@"
}

start_server() {
	: >"$tmp/server.log"
	(where=$host_b && on_busbar "$@") >"$tmp/server.log" 2>&1 &
	server_pid=$!
}

ready_tcp() {
	on_b cat /proc/net/tcp /proc/net/tcp6 | awk -v port="$(printf %04X "$port")" '
		$4 == "0A" { n = split($2, a, ":"); if (a[n] == port) found = 1 }
		END { exit !found }'
}

# Its service is served to other hosts (src/transport/roce/dispatch.h).
ready_cm() {
	on_b grep -q -i "@busbar\.roce\.service\.106$(printf %04x "$port")\." /proc/net/unix
}

ready() {
	ready_tcp || ready_cm
}

# gid_of NAMESPACE PATTERN: the number of the GID of that address.
gid_of() {
	ip netns exec "$1" "$BUSBAR" devices "$DEVICE" | awk -v want="$2" '
		$1 == "gid" && $5 ~ want { print $2; exit }'
}

ran=
# try PATTERN SERVER CLIENT: both to their ends; the client prints PATTERN.
try() {
	command -v "${2%% *}" >/dev/null || {
		echo "not here: ${2%% *}"
		return 0
	}
	began=$(date +%s%N)
	: >"$tmp/client.log"
	pair ready "$2" "$3"
	expect client "$1"
	ran=1
	echo "$((($(date +%s%N) - began) / 1000000)) ms  $3"
}

pingpong() {
	free_port
	try '^[0-9]* iters in' \
		"$1 -d $DEVICE -p $port -g $gid_b -n 100 -c $2" \
		"$1 -d $DEVICE -p $port -g $gid_a -n 100 -c $2 $peer"
}

# perf TOOL SIZE OPTIONS: a line of results for messages of SIZE bytes.
perf() {
	perf_tool=$1 perf_size=$2
	shift 2
	free_port
	try "^ $perf_size  *[0-9]" \
		"$perf_tool -d $DEVICE -F -p $port -x $gid_b -s $perf_size $*" \
		"$perf_tool -d $DEVICE -F -p $port -x $gid_a -s $perf_size $* $peer"
}

# latency TOOL: its median is below 20 ms (perftest.sh) whatever the target does: with READs the target sleeps,
# with WRITEs it spins on its memory after polls.
latency() {
	perf "$1" 8 -n 200
	awk '$1 == 8 && $5 >= 20000 { exit 1 }' "$tmp/client.log" ||
		fail "a message waits for milliseconds"
}

# perftest connects twice, and its server closes its port in between, while the client may
# already be there.
by_connection_manager() {
	for _ in 1 2 3; do
		perf ib_write_bw 20000 -n 100 -R
	done
}

# What shows most, in a few seconds.
most() {
	pingpong ibv_rc_pingpong "-s 9000 -m 1024"
	# A datagram fits into a packet.
	pingpong ibv_ud_pingpong "-s 1000"
	free_port
	try 'rdma-ping-1: ' "rping -s -a $address -p $port -C 2" \
		"rping -c -a $address -p $port -C 2 -v"
	perf ib_send_lat 64 -n 100
	for tool in ib_write_lat ib_read_lat; do
		latency $tool
	done
	perf ib_write_bw 20000 -n 100
}

rest() {
	pingpong ibv_uc_pingpong "-s 9000 -m 1024"
	pingpong ibv_srq_pingpong "-s 3000 -m 1024"
	free_port
	try success "ibv_xsrq_pingpong -d $DEVICE -p $port -g $gid_b -m 1024" \
		"ibv_xsrq_pingpong -d $DEVICE -p $port -g $gid_a -m 1024 $peer"
	perf ib_send_lat 64 -n 100 -c UD
	perf ib_read_bw 20000 -n 100
	perf ib_atomic_lat 8 -n 100
}

# use VERSION PATTERN ADDRESS: the GIDs of these addresses.
use() {
	gid_a=$(gid_of "$host_a" "$2") gid_b=$(gid_of "$host_b" "$2") address=$3
	[ -n "$gid_a" ] && [ -n "$gid_b" ] || fail "$DEVICE has no $1 address in the namespaces"
}

# The programs exchange what they need by TCP over IPv4, whatever the GID.
peer=10.77.0.2
use IPv4 '^::ffff:10[.]77[.]' "$peer"
most
if [ "$interface_mtu" -ge 4200 ]; then
	rest
	if have_ipv6; then
		use IPv6 '^fd77:' fd77::2
		most
	fi
fi
use IPv4 '^::ffff:10[.]77[.]' "$peer"
by_connection_manager
# With a longer one packets leave in fragments, and the log says what would be better.
if [ "$interface_mtu" -lt 4200 ] && command -v ib_write_bw >/dev/null; then
	export BUSBAR_LOG=warn BUSBAR_MTU=4096
	perf ib_write_bw 20000 -n 5
	expect client "use path MTU 1024"
fi
[ -n "$ran" ] || {
	echo "skipped: none of the programs is installed"
	exit 77
}
