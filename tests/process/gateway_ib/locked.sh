#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A gateway whose memory is locked (mlockall), with a connection of infiniband to
# itself, has less than 32 MiB resident. LOCK: the object that locks it.
. "$(dirname "$0")/common.sh"

cat >"$tmp/locked.conf" <<-CONF
	hugepages = 0;
	nodes = {
		g = { type = "signal"; signal = "mixed"; values = 8; rate = 1000; };
		out = {
			type = "infiniband"; in = { address = "127.0.0.1:$((port + 1))"; };
			out = { address = "127.0.0.1:$port"; };
		};
		in = {
			type = "infiniband";
			in = { address = "127.0.0.1:$port"; signals = { count = 8; type = "float"; }; };
		};
		f = { type = "file"; format = "csv"; uri = "$tmp/locked.csv"; out = { flush = true; }; };
	};
	paths = ( { in = "g"; out = "out"; }, { in = "in"; out = "f"; } );
CONF
LD_PRELOAD=$LOCK
export LD_PRELOAD
run locked -q
unset LD_PRELOAD
until_true has_rows locked 100
! logged locked 1 'mlockall is refused' || skip 'this host does not let it lock its memory'
kib() {
	sed -n "s/^$1:[[:blank:]]*\\([0-9]*\\) kB/\\1/p" "/proc/$last/status"
}
[ "$(kib VmLck)" -gt 0 ] || fail 'nothing is locked'
echo "$(kib VmRSS) KiB are resident"
[ "$(kib VmRSS)" -lt $((32 << 10)) ] || fail "$(kib VmRSS) KiB are resident"
stops "$last"
exit 0
