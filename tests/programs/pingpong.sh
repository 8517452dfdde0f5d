#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# pingpong.sh PROGRAM OPTIONS: ibv_rc_pingpong and its siblings between two
# processes. They check the data themselves with -c, which is given where they
# know it (to ibv_xsrq_pingpong it means something else).
. "$(dirname "$0")/common.sh"
program=${1:?ibv_rc_pingpong, ...}
shift
need "$program"
place_options "$@"

done_line='^[0-9]* iters in'
case $program in
ibv_xsrq_pingpong) done_line='success' ;;
*) options="$options -c" ;;
esac

ready() {
	tcp_listens "$port"
}

check() {
	expect client "$done_line"
	expect server "$done_line"
}

once() {
	free_port
	pair ready "$program -d $DEVICE -p $port $options" \
		"$program -d $DEVICE -p $port $options 127.0.0.1"
	refused || check
}

repeat
