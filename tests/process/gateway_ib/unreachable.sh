#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A sender whose peer is at no address of this host says that no adapter reaches
# it; with neither fallback nor repetition that ends the
# gateway, with 1.
. "$(dirname "$0")/common.sh"
# Which leads to no other host.
export BUSBAR_TRANSPORTS=shm

cat >"$tmp/sender.conf" <<-CONF
	nodes = {
		g = { type = "signal"; signal = "mixed"; values = 8; rate = 100; };
		ib = {
			type = "infiniband"; rdma_transport_mode = "$MODE";
			in = { address = "127.0.0.1:$port"; };
			out = {
				address = "198.51.100.77:$port";
				use_fallback = false; reconnect_interval = 0;
			};
		};
	};
	paths = ( { in = "g"; out = "ib"; } );
CONF
run sender
ends "$last" 1
logged sender 1 "cannot reach 198.51.100.77:$port: no adapter reaches this address" ||
	fail "the log does not say why"
exit 0
