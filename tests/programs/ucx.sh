#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ucx.sh TOOL OPTIONS: ucx_info or ucx_perftest. `--tls rc` or `--tls ud` comes first
# for tests of the upper layer.
. "$(dirname "$0")/common.sh"
# The upper layer chooses among the transports that it is given.
if [ "${1:?ucx_info or ucx_perftest}" = --tls ]; then
	export UCX_TLS="$2,self" UCX_NET_DEVICES="$DEVICE:1"
	shift 2
fi
tool=$1
shift
need "$tool"
place_options "$@"

ready() {
	tcp_listens "$port"
}

once() {
	if [ "$tool" = ucx_info ]; then
		alone "ucx_info -d $options"
		expect client "Memory domain: $DEVICE"
		expect client 'Transport: rc_verbs'
		expect client 'Transport: ud_verbs'
		return
	fi
	free_port
	pair ready "ucx_perftest -p $port" "ucx_perftest 127.0.0.1 -p $port
		-w 100 -n 1000 $options"
	refused || expect client '^Final: *1000 *[0-9.]*[1-9]'
}

repeat
