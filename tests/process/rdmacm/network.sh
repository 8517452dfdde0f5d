#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# network.sh PROGRAM...: runs it in a network of its own with the addresses of the loopback interface
# and 192.0.2.7, and eight ports for who wants any, from 40000 on. 77: that is not permitted.
set -eu
if [ "${NETWORK_INSIDE:-}" != 1 ]; then
	unshare --net true 2>/dev/null || exit 77
	NETWORK_INSIDE=1 exec unshare --net "$0" "$@"
fi
ip link set lo up
ip address add 192.0.2.7/32 dev lo
echo 40000 40007 >/proc/sys/net/ipv4/ip_local_port_range
exec "$@"
