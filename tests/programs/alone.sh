#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# alone.sh PROGRAM OPTIONS: programs that need no partner, and the lines that
# they must print about the adapter.
. "$(dirname "$0")/common.sh"
program=${1:?ibv_devices, ibv_devinfo ...}
shift
need "$program"
place_options "$@"

# It imports a function of the private interface, so it also shows that the
# version node of the installed library is there.
devinfo() {
	alone "ibv_devinfo -d $DEVICE $options"
	expect client "hca_id:[[:space:]]*$DEVICE"
	expect client 'state:[[:space:]]*PORT_ACTIVE'
	expect client 'link_layer:[[:space:]]*Ethernet'
	case " $options " in
	*" -v "*)
		expect client 'GID\[.*RoCE v2'
		expect client 'max_qp:[[:space:]]*[1-9]'
		;;
	esac
}

watching() {
	grep -q 'async event FD' "$tmp/server.log"
}

# It runs until it is told to end: 124 and 143 stand for SIGTERM.
asyncwatch() {
	start_server stdbuf -oL ibv_asyncwatch -d "$DEVICE"
	wait_ready watching
	server_alive || fail "it ended by itself"
	kill "$server_pid"
	status=0
	wait "$server_pid" || status=$?
	server_pid=
	[ "$status" -eq 143 ] || [ "$status" -eq 124 ] ||
		fail "it ended with status $status, not by the signal"
}

once() {
	case $program in
	ibv_devices)
		alone "$program"
		expect client "^ *${DEVICE}[[:space:]]"
		;;
	ibv_devinfo)
		case " $options " in
		*" -l "*)
			alone "$program $options"
			expect client "$DEVICE"
			;;
		*) devinfo ;;
		esac
		;;
	ibv_asyncwatch) asyncwatch ;;
	ibstat)
		alone "$program $options"
		case " $options " in
		*" -l "*) expect client "^$DEVICE\$" ;;
		*)
			expect client 'State: Active'
			expect client 'Link layer: Ethernet'
			;;
		esac
		;;
	*) fail "nobody has written what $program must print" ;;
	esac
}

repeat
