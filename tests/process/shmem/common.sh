# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# A gateway and villas-shmem, each a process. A test sources this; see ../gateways.sh.
# At the end nothing may be left in /dev/shm.
#
#   BUSBAR, ECHO  the executables (required)    MODE  pthread or polling
LIMIT_S=${LIMIT_S:-20} FOLDER=shmem
. "$(dirname "$0")/../gateways.sh"

ECHO=$(realpath "${ECHO:?set it to the villas-shmem executable}")
: "${MODE:=pthread}"
name=${tmp##*/}

at_end() {
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
	run gateway -q
}

simulator() {
	"$ECHO" "$name-in" "$name-out" 4 "$MODE" 2>>"$tmp/echo.log" &
	started $!
}

# Samples come back now: more than before.
flows() {
	before=$(rows back)
	until_true has_rows back $((before + 100))
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
