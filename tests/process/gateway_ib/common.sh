# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Two gateways, each a process, and an infiniband node between them. A test
# sources this. Nothing sleeps for luck: what has to happen is waited for, in
# the log, at most LIMIT_S seconds.
#
#   BUSBAR  the executable under test (required)
#
# Exit status: 0 passed, 1 failed, 77 there is no RDMA adapter.
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
limit_s=${LIMIT_S:-30}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-gateway.XXXXXX")
pids=

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ "$status" -eq 0 ] || for log in "$tmp"/*.log; do
		echo "--- $log"
		cat "$log"
	done
	rm -rf "$tmp"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "failed: $*"
	exit 1
}

"$BUSBAR" devices 2>/dev/null | grep -q soft0 || {
	echo "skipped: no adapter soft0"
	exit 77
}

# Ports of our own: other tests run at the same time.
port=$((20000 + $$ % 20000 * 2))
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
				in = { address = "127.0.0.1:$2"; };
				out = {
					address = "127.0.0.1:$port";
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
	run "$1"
}

# receiver NAME: the infiniband node to a file.
receiver() {
	cat >"$tmp/$1.conf" <<-CONF
		nodes = {
			ib = {
				type = "infiniband"; rdma_transport_mode = "$MODE";
				in = {
					address = "127.0.0.1:$port";
					polling = "${POLLING:-busy}";
					max_wrs = 512; cq_size = 512; buffer_subtraction = 64;
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
	run "$1"
}

# Sets $last to the process.
run() {
	"$BUSBAR" run -q "$tmp/$1.conf" >"$tmp/$1.out" 2>>"$tmp/$1.log" &
	last=$!
	pids="$pids $last"
}

# until_true COMMAND...: waits for its success.
until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt $((limit_s * 50)) ] || fail "waited in vain for: $*"
		sleep 0.02
	done
}

# logged NAME COUNT TEXT: whether TEXT stands at least COUNT times in the log.
logged() {
	[ "$(grep -c -e "$3" "$tmp/$1.log")" -ge "$2" ]
}

# has_rows NAME COUNT: whether the file of NAME has that many samples.
has_rows() {
	[ -f "$tmp/$1.csv" ] && [ "$(grep -vc '^#' "$tmp/$1.csv")" -ge "$2" ]
}

# ends PID: waits for its end and wants success.
ends() {
	tries=0
	while kill -0 "$1" 2>/dev/null && [ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" != Z ]; do
		tries=$((tries + 1))
		[ "$tries" -lt $((limit_s * 50)) ] || fail "process $1 does not end"
		sleep 0.02
	done
	wait "$1" || fail "process $1 ended with status $?"
}

stops() {
	kill -INT "$1"
	ends "$1"
}

# Sequence number and values, without the times of the host.
data() {
	grep -v '^#' "$tmp/$1.csv" | cut -d, -f4-
}
