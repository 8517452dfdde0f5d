#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ucx.sh TOOL OPTIONS: ucx_info or ucx_perftest. UCX takes a device only when a
# character device of its name lies in /dev/infiniband. `ucx.sh --node` puts one
# there in a mount namespace of the test's own, which needs root; nothing outside
# it changes. `--tls rc` or `--tls ud` comes next for tests of the upper layer.
. "$(dirname "$0")/common.sh"
if [ "${1:?--node, ucx_info or ucx_perftest}" = --node ]; then
	shift
	unshare --mount true 2>/dev/null || {
		echo "skipped: no mount namespace of one's own without root"
		exit 77
	}
	made=
	[ -d /dev/infiniband ] || made=/dev/infiniband
	mkdir -p /dev/infiniband
	# The shell stays for its trap; the child has the namespace.
	status=0
	unshare --mount sh -ec "
		mount -t tmpfs none /dev/infiniband
		mknod -m 666 /dev/infiniband/uverbs-$DEVICE c 1 3
		exec \"\$0\" \"\$@\"" "$here/ucx.sh" "$@" || status=$?
	[ -z "$made" ] || rmdir "$made" 2>/dev/null || true
	exit "$status"
fi
# The upper layer chooses among the transports that it is given.
if [ "$1" = --tls ]; then
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
