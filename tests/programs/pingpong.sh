#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# pingpong.sh KIND [OPTIONS]: ibv_KIND_pingpong (rc, ud, uc, srq, xsrq) between two
# processes; "-g" takes the first RoCE v2 address. The programs check the data
# themselves with -c, which is given where they know it.
. "$(dirname "$0")/common.sh"
kind=${1:?rc, ud, uc, srq or xsrq}
program=ibv_${kind}_pingpong
shift
need "$program"

first_gid() {
	"$BUSBAR" devices "$DEVICE" |
		awk '$1 == "gid" && $3 == "RoCE" && $4 == "v2" { print $2; exit }'
}

options=
for option; do
	if [ "$option" = -g ]; then
		gid=$(first_gid)
		[ -n "$gid" ] || fail "$DEVICE has no RoCE v2 address"
		option="-g $gid"
	fi
	options="$options $option"
done

# What a side prints when all is well.
done='1000 iters in'
[ "$kind" != xsrq ] || done='^success'

once() {
	free_port
	# shellcheck disable=SC2086 # options are words
	start_server "$program" -d "$DEVICE" -p "$port" $options
	wait_ready tcp_listens "$port"
	# shellcheck disable=SC2086
	run_client "$program" -d "$DEVICE" -p "$port" $options 127.0.0.1
	finish_server
	expect client "$done"
	expect server "$done"
}

repeat
