#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# perftest.sh TOOL [KIND [-R]]: a program of perftest (ib_send_lat ...) over RC, UC,
# UD or XRC to its table of results; with -R the connection is made by the RDMA CM.
. "$(dirname "$0")/common.sh"
tool=${1:?ib_send_lat, ib_write_bw ...}
kind=${2:-RC}
cm=${3:-}
need "$tool"

once() {
	free_port
	# shellcheck disable=SC2086 # $cm is an option or nothing
	start_server "$tool" -d "$DEVICE" -c "$kind" -F -n 1000 -p "$port" $cm
	if [ -n "$cm" ]; then
		wait_ready cm_listens "$port"
	else
		wait_ready tcp_listens "$port"
	fi
	# shellcheck disable=SC2086
	run_client "$tool" -d "$DEVICE" -c "$kind" -F -n 1000 -p "$port" $cm \
		127.0.0.1
	finish_server
	# The inodes of its domains.
	[ "$kind" != XRC ] || rm -f /tmp/xrc_domain_server /tmp/xrc_domain_client
	# bytes, iterations, then figures
	expect client '^ *[0-9][0-9]*  *1000  *[0-9.]'
}

repeat
