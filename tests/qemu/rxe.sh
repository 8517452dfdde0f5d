#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# soft0_and_the_kernels_rxe0_work_side_by_side: runs in the guest (guest.sh).
# Usage: rxe.sh BOTH CM, two programs, with BUSBAR. Unmodified programs on busbar's
# libraries see soft0 and the kernel's device, both carry their data, and each
# connection is made by the device that has its address.
set -eu
BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
both=$(realpath "$1")
cm=$(realpath "$2")
address=$(ip -o -4 address show dev eth0 | sed 's/.*inet \([0-9.]*\).*/\1/')
log=$(mktemp)

fail() {
	echo "failed: $*"
	cat "$log" "$log.server" 2>/dev/null
	exit 1
}

on_busbar() {
	timeout --kill-after=2 20 "$BUSBAR" exec "$@"
}

tcp_listens() {
	awk -v port="$(printf %04X "$1")" '
		$4 == "0A" { n = split($2, a, ":"); if (a[n] == port) found = 1 }
		END { exit !found }' /proc/net/tcp /proc/net/tcp6
}

# first_address DEVICE: the index of its IPv4 address that others can reach.
first_address() {
	"$BUSBAR" devices "$1" |
		awk '$1 == "gid" && /::ffff:10[.]/ { print $2; exit }'
}

# pair DEVICE PORT PROGRAM [OPTION...]: server and client of it; the last option
# is followed by the index of the device's address.
pair() {
	device=$1
	port=$2
	shift 2
	gid=$(first_address "$device")
	[ -n "$gid" ] || fail "$device has no address"
	set -- "$@" "$gid" -d "$device" -p "$port"
	on_busbar "$@" >"$log.server" 2>&1 &
	server=$!
	tries=0
	until tcp_listens "$port"; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || fail "$1 on $device does not listen"
		sleep 0.1
	done
	on_busbar "$@" 127.0.0.1 >"$log" 2>&1 || fail "$1 on $device"
	wait "$server" || fail "the server of $1 on $device"
	echo "$device: $1"
}

# Who looks below /sys and /dev finds both, and the kernel's device as it is.
look='stat -c "%F %t %T %N" /sys/class/infiniband/* /sys/class/infiniband_verbs/* \
	/dev/infiniband/*'
sh -c "$look" >"$log.plain"
on_busbar -q sh -c "$look" >"$log"
while read -r line; do
	grep -qxF -- "$line" "$log" || fail "it looks different: $line"
done <"$log.plain"
[ "$(grep -c soft0 "$log")" -eq 3 ] || fail "soft0 is not in all three places"

# The kernel's device is active, so it comes first.
on_busbar ibv_devices >"$log"
[ "$(awk 'NR > 2 { printf "%s ", $1 }' "$log")" = "rxe0 soft0 " ] ||
	fail "not rxe0 and soft0 in this order"
for device in soft0 rxe0; do
	pair $device 18515 ibv_rc_pingpong -n 200 -c -e -g
done
# Linked to two providers, which register before there is a core to take them.
! command -v ib_send_lat >/dev/null ||
	pair rxe0 18516 ib_send_lat -n 20 -F -x
on_busbar ibv_devinfo -d rxe0 -v >"$log" 2>&1 || fail "ibv_devinfo rxe0"
grep -q 'RoCE v2' "$log" || fail "no type of an address of rxe0"
"$both" soft0 rxe0 >"$log" 2>&1 || fail "both devices from one process"
cat "$log"

# ---- the connection manager ----

# Packets that rxe0 has sent so far.
rxe_packets() {
	cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
}

# cm_pair DEVICE SERVER CLIENT: two programs, each on busbar's librdmacm.so.1, and
# the device that has to carry their connection. A client that calls before the
# server listens is refused, and calls again.
cm_pair() {
	command -v "${2%% *}" >/dev/null || return 0
	before=$(rxe_packets)
	on_busbar $2 >"$log.server" 2>&1 &
	server=$!
	tries=0
	: >"$log"
	until on_busbar $3 >>"$log" 2>&1; do
		echo "exit status $?" >>"$log"
		tries=$((tries + 1))
		[ "$tries" -lt 20 ] && kill -0 "$server" 2>/dev/null ||
			fail "$3"
		sleep 0.2
	done
	wait "$server" || fail "$2"
	[ "$([ "$(rxe_packets)" -gt "$before" ] && echo rxe0 || echo soft0)" = "$1" ] ||
		fail "$3: not by $1"
	echo "$1: $3"
}

# rping_by DEVICE ADDRESS PORT
rping_by() {
	cm_pair "$1" "rping -s -a $2 -p $3 -C 5" "rping -c -a $2 -p $3 -C 5"
}

rping_by rxe0 "$address" 7201
rping_by soft0 127.0.0.1 7202
# A choice is one for connections, too.
BUSBAR_DEVICES=soft rping_by soft0 "$address" 7203
BUSBAR_DEVICES=system rping_by rxe0 "$address" 7204
# A listener of the wildcard address, synchronous; events; datagrams.
cm_pair rxe0 "rdma_server -p 7205" "rdma_client -s $address -p 7205"
cm_pair rxe0 "ucmatose -b $address -p 7206" "ucmatose -s $address -p 7206"
cm_pair rxe0 "udaddy -b $address" "udaddy -s $address"
"$cm" "$address" >"$log" 2>&1 || fail "connections of both devices from one process"
cat "$log"

# And a choice leaves one of them.
BUSBAR_DEVICES=soft on_busbar ibv_devices >"$log"
! grep -q rxe0 "$log" || fail "rxe0 with BUSBAR_DEVICES=soft"
BUSBAR_DEVICES=system on_busbar ibv_devices >"$log"
! grep -q soft0 "$log" || fail "soft0 with BUSBAR_DEVICES=system"
