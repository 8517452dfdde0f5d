#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# rping: connection by the RDMA CM, then SEND, RDMA READ and RDMA WRITE; the
# client checks the data (-V) and both print it (-v).
. "$(dirname "$0")/common.sh"
need rping stdbuf

once() {
	free_port
	start_server stdbuf -oL rping -s -a 127.0.0.1 -p "$port" -C 10 -v
	wait_ready cm_listens "$port"
	run_client rping -c -a 127.0.0.1 -p "$port" -C 10 -v -V
	finish_server
	[ "$(grep -c 'ping data: rdma-ping-' "$tmp/client.log")" -eq 10 ] ||
		fail "the client did not print ten pings"
}

repeat
