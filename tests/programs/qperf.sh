#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# qperf.sh TEST OPTIONS: one test of qperf; its server is told to quit after it.
# Shorter than a second is not in its power.
. "$(dirname "$0")/common.sh"
qperf_test=${1:?rc_lat, ud_bw ...}
shift
need qperf
place_options "$@"

ready() {
	tcp_listens "$port"
}

once() {
	free_port
	start_server qperf -lp "$port"
	wait_ready ready
	alone "qperf 127.0.0.1 -lp $port -i $DEVICE:1 -t 1 $options $qperf_test"
	(on_busbar qperf 127.0.0.1 -lp "$port" quit) >"$tmp/quit.log" 2>&1 ||
		fail "the server was not told to quit"
	finish_server
	refused && return
	# conf prints words, ver_* nothing but their names when all is well.
	case $qperf_test in
	conf) expect client 'rem_qperf *= ' ;;
	ver_*) expect client "^$qperf_test:" ;;
	*) expect client '= *[0-9.]*[1-9]' ;;
	esac
}

repeat
