# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# A gateway and villas-shmem, each a process. A test sources this. What has to
# happen is waited for, at most LIMIT_S seconds; at the end nothing may be left in
# /dev/shm.
#
#   BUSBAR, ECHO  the executables (required)    MODE  pthread or polling
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
ECHO=$(realpath "${ECHO:?set it to the villas-shmem executable}")
: "${MODE:=pthread}"
limit_s=${LIMIT_S:-20}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-shmem.XXXXXX")
name=${tmp##*/}
pids=

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	# A simulator of a gateway that was killed, where it outlived it.
	for pid in $(sed -n 's/.*node sim: started .* process \([0-9]*\)$/\1/p' \
		"$tmp/gateway.log" 2>/dev/null); do
		! grep -q "$name" "/proc/$pid/cmdline" 2>/dev/null || kill -KILL "$pid"
	done
	left=$(find /dev/shm -name "$name*" 2>/dev/null)
	if [ -n "$left" ]; then
		[ "$status" -ne 0 ] || {
			echo "failed: left behind: $left"
			status=1
		}
		rm -f "/dev/shm/$name-in" "/dev/shm/$name-out"
	fi
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

# gateway [LINE]: numbered samples to the simulator, what comes back to a file;
# LINE stands in the node. Sets $last to the process.
gateway() {
	cat >"$tmp/gateway.conf" <<-CONF
		nodes = {
			g = {
				type = "signal"; signal = "counter"; values = 3;
				rate = ${RATE:-2000}; timer = "timerfd";
			};
			sim = {
				type = "shmem"; mode = "$MODE"; queuelen = 256;
				${1-}
				in = {
					name = "$name-in";
					signals = { count = 3; type = "float"; };
				};
				out = { name = "/$name-out"; };
			};
			f = {
				type = "file"; format = "csv"; uri = "$tmp/back.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "g"; out = "sim"; }, { in = "sim"; out = "f"; } );
	CONF
	"$BUSBAR" run -q "$tmp/gateway.conf" >"$tmp/gateway.out" 2>>"$tmp/gateway.log" &
	last=$!
	pids="$pids $last"
}

simulator() {
	"$ECHO" "$name-in" "$name-out" 4 "$MODE" 2>>"$tmp/echo.log" &
	last=$!
	pids="$pids $last"
}

until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt $((limit_s * 50)) ] || fail "waited in vain for: $*"
		sleep 0.02
	done
}

# logged COUNT TEXT: whether TEXT stands at least COUNT times in the gateway's log.
logged() {
	[ "$(grep -c -e "$2" "$tmp/gateway.log")" -ge "$1" ]
}

rows() {
	[ -f "$tmp/back.csv" ] || { echo 0; return; }
	grep -vc '^#' "$tmp/back.csv" || true
}

has_rows() {
	[ "$(rows)" -ge "$1" ]
}

# Samples come back now: more than before.
flows() {
	before=$(rows)
	until_true has_rows $((before + 100))
}

gone() {
	! kill -0 "$1" 2>/dev/null || [ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" = Z ]
}

# ends PID: waits for its end and wants success.
ends() {
	until_true gone "$1"
	wait "$1" || fail "process $1 ended with status $?"
}

stops() {
	kill -INT "$1"
	ends "$1"
}

killed() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null || true
}

# The counter is the sequence number: a sample that was mixed from two would show.
# What is there is in order.
in_order() {
	awk -F, 'BEGIN { last = -1 }
		/^#/ { next }
		NF < 7 { next } # the line being written
		$5 != $4 || $4 <= last { print "failed: " $0 " after " last; exit 1 }
		{ last = $4 }' "$tmp/back.csv"
}
