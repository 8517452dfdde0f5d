# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Two gateways, each a process, and an infiniband node between them. A test
# sources this; see ../gateways.sh.
FOLDER=gateway
. "$(dirname "$0")/../gateways.sh"

"$BUSBAR" devices 2>/dev/null | grep -q soft0 || skip "no adapter soft0"

# Ports of our own: other tests run at the same time.
port=$((20000 + $$ % 6000 * 2))
: "${MODE:=RC}"

# sender NAME PORT: a generator to the infiniband node, and a copy to a file.
sender() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = {
				type = "signal"; signal = "mixed"; values = 8;
				rate = ${RATE:-1000}; limit = ${LIMIT:-1000000};
			};
			ib = {
				type = "infiniband"; rdma_transport_mode = "$MODE";
				in = { address = "${HOST_A:-127.0.0.1}:$2"; };
				out = {
					address = "${HOST_B:-127.0.0.1}:$port";
					max_inline_data = ${INLINE:-128};
					# For a receiver that does not run for a while.
					max_wrs = 4096; cq_size = 4096;
					reconnect_interval = 200;
				};
			};
			copy = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv"; out = { };
			};
		};
		paths = ( { in = "g"; out = ( "ib", "copy" ); } );
	CONF
	run "$1" -q
}

# receiver NAME: the infiniband node to a file.
receiver() {
	cat >"$tmp/$1.conf" <<-CONF
		nodes = {
			ib = {
				type = "infiniband"; rdma_transport_mode = "$MODE";
				in = {
					address = "${HOST_B:-127.0.0.1}:$port";
					polling = "${POLLING:-auto}";
					# UC loses what finds no receive: enough for a
					# receiver that does not run for two seconds.
					max_wrs = 4096; cq_size = 4096; buffer_subtraction = 64;
					signals = { count = 8; type = "float"; };
				};
			};
			f = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "ib"; out = "f"; } );
	CONF
	run "$1" -q
}
