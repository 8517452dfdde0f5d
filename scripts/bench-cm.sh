#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-cm.sh [BUILD]: how fast connections are made and what an idle one costs.
# cmtime, unmodified (package rdmacm-utils), between two processes on 127.0.0.1:
# its steps add up to the time in which all connections were made, used and
# ended. Then a program of ours holds idle ones. No kind of `busbar bench` makes connections.
#
#   COUNT  connections of cmtime (2000)      RUNS  runs, the best counts (5)
#   IDLE   connections held (10000)
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
BUSBAR=$build/busbar
export BUSBAR
COUNT=${COUNT:-2000} RUNS=${RUNS:-5} IDLE=${IDLE:-10000}

if [ ! -x "$BUSBAR" ]; then
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
fi
# Starting pairs of programs, free ports, waiting until a server listens.
. tests/programs/common.sh
need cmtime
# Of the shells that are sh somewhere all know it.
# shellcheck disable=SC3045
ulimit -n "$(ulimit -Hn)"

ready() { cm_listens "$port"; }

# Set-up: all steps but disconnect and destroy.
steps() {
	awk -F: -v count="$COUNT" '
		/^(create|resolve|connect|disconnect|destroy)/ {
			split($2, v, " ")
			all += v[1]
			if ($1 !~ /^d/)
				up += v[1]
		}
		END { if (up) printf "%.0f %.0f\n", count * 1000 / up, count * 1000 / all }'
}

: >"$tmp/rates"
run=0
while [ "$run" -lt "$RUNS" ]; do
	run=$((run + 1))
	free_port
	start_server cmtime -b 127.0.0.1 -p "$port" -c "$COUNT"
	wait_ready ready
	run_client cmtime -s 127.0.0.1 -p "$port" -c "$COUNT"
	stop_server
	steps <"$tmp/client.log" >>"$tmp/rates"
	cp "$tmp/client.log" "$tmp/steps"
done
sort -n "$tmp/rates" | tail -n 1 |
	while read -r up all; do
		echo "$COUNT connections: $up/s made, $all/s made and ended (best of $RUNS)"
	done
cat "$tmp/steps"

for qp in qp noqp; do
	echo "$IDLE idle connections, $qp:"
	"$BUSBAR" exec -- "$build/tests/process/rdmacm/rdmacm_idle" "$IDLE" $qp
done
