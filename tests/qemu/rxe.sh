#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# soft0_and_the_kernels_rxe0_work_side_by_side: runs in the guest (guest.sh).
# Usage: rxe.sh PROGRAM, with BUSBAR. Unmodified programs on busbar's libraries see
# soft0 and the kernel's device, and both carry their data.
set -eu
BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
both=$(realpath "$1")
log=$(mktemp)

fail() {
	echo "failed: $*"
	cat "$log" "$log.server" 2>/dev/null
	exit 1
}

on_busbar() {
	timeout --kill-after=2 20 "$BUSBAR" exec -- "$@"
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
# And a choice leaves one of them.
BUSBAR_DEVICES=soft on_busbar ibv_devices >"$log"
! grep -q rxe0 "$log" || fail "rxe0 with BUSBAR_DEVICES=soft"
BUSBAR_DEVICES=system on_busbar ibv_devices >"$log"
! grep -q soft0 "$log" || fail "soft0 with BUSBAR_DEVICES=system"
