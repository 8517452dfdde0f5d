#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# send_lat.sh KIND [-R]: ib_send_lat over RC, UC or UD to its table of results;
# with -R the connection is made by the RDMA CM.
. "$(dirname "$0")/common.sh"
kind=${1:?RC, UC or UD}
shift
need ib_send_lat

once() {
	free_port
	start_server stdbuf -oL ib_send_lat -d "$DEVICE" -c "$kind" -F -n 1000 \
		-p "$port" "$@"
	if [ "${1:-}" = -R ]; then
		wait_ready cm_listens "$port"
	else
		wait_ready tcp_listens "$port"
	fi
	run_client ib_send_lat -d "$DEVICE" -c "$kind" -F -n 1000 -p "$port" \
		"$@" 127.0.0.1
	finish_server
	# 2 bytes, 1000 iterations, then figures
	expect client '^ *2  *1000  *[0-9.]'
}

repeat "$@"
