#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What needs a right that the gateway does not have is refused with its name.
. "$(dirname "$0")/common.sh"

[ "$(id -u)" -eq 0 ] || skip "only root can give rights away"
setpriv --bounding-set -net_admin true 2>/dev/null || skip "no setpriv"

# without RIGHT NAME TEXT: runs a configuration and wants TEXT in its log.
without() {
	: >"$tmp/$2.log"
	setpriv --bounding-set "$1" --inh-caps "$1" timeout 10 "$BUSBAR" run "$tmp/$2.conf" \
		>"$tmp/$2.out" 2>"$tmp/$2.log" && fail "$2 ran without $1"
	logged "$2" 1 "$3" || fail "$2: the missing right is not named"
}

conf() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = { type = "signal"; signal = "sine"; limit = 1; };
			s = { type = "socket"; format = "csv"; $2 };
		};
		paths = ( { in = "g"; out = "s"; } );
	CONF
}

conf mark 'out = { address = "127.0.0.1:9"; fwmark = 5; };'
# Newer kernels take CAP_NET_RAW for it as well.
without -net_admin,-net_raw mark 'out.fwmark: .*CAP_NET_ADMIN'
conf ip 'layer = "ip"; out = { address = "127.0.0.1:254"; };'
without -net_raw ip 'CAP_NET_RAW'
conf eth 'layer = "eth"; out = { address = "02:00:00:00:00:01%lo:34997"; };'
without -net_raw eth 'CAP_NET_RAW'
exit 0
