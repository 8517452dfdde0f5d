# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Starting two gateways and stopping them again; sourced by run-demo.sh and bench-udp.sh,
# which set BUSBAR and OUT. Only processes that were started
# here are ever signalled, each by its id. A function `at_end`, if there is one, runs
# when they have ended.

pids=

# Runs when the script ends in whatever way; a second Ctrl-C must not disturb it.
stop_all() {
	status=$?
	trap '' EXIT INT TERM
	for pid in $pids; do
		kill -TERM "$pid" 2>/dev/null || continue
		# A gateway that does not stop in five seconds is ended.
		wait_end "$pid" 5 || kill -KILL "$pid" 2>/dev/null || true
	done
	! command -v at_end >/dev/null || at_end
	exit "$status"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

alive() {
	kill -0 "$1" 2>/dev/null
}

# wait_end PID SECONDS: whether it ended in that time. One sleeping process and no
# loop of short ones: those would take the gateways' CPUs from them, some ms each.
wait_end() {
	timeout "$2" tail --pid="$1" -s 0.2 -f /dev/null
}

# start NAME COMMAND...: in the background, log in OUT/NAME.log; sets `pid`.
start() {
	name=$1
	shift
	: >"$OUT/$name.log" # here, so that it is there to be looked at
	"$@" >"$OUT/$name.log" 2>&1 &
	pid=$!
	pids="$pids $pid"
}

die() {
	echo "$*" >&2
	exit 1
}

# show_log NAME: what a gateway had to say before it failed.
show_log() {
	echo "--- $OUT/$1.log" >&2
	tail -n 20 "$OUT/$1.log" >&2
}

# wait_log NAME PID COUNT PATTERN: until COUNT lines of the log match.
wait_log() {
	tries=0
	until [ "$(grep -c -e "$4" "$OUT/$1.log")" -ge "$3" ]; do
		tries=$((tries + 1))
		if ! alive "$2" || [ "$tries" -gt 500 ]; then
			show_log "$1"
			die "gateway $1 was not ready"
		fi
		sleep 0.02
	done
}

# finish NAME PID SECONDS: waits for its end and fails when it failed.
finish() {
	wait_end "$2" "$3" || {
		show_log "$1"
		die "gateway $1 did not end within $3 seconds"
	}
	status=0
	wait "$2" || status=$?
	[ "$status" -eq 0 ] || {
		show_log "$1"
		die "gateway $1 ended with status $status"
	}
}

all_cpus() {
	awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status
}

# cpu_mask N: the mask of the Nth (0, 1) CPU of this process; 0 when it has only
# one, which leaves the gateways unpinned.
cpu_mask() {
	all_cpus | awk -v n="$1" '{
		count = split($1, part, ",")
		k = 0
		for (i = 1; i <= count; i++) {
			m = split(part[i], r, "-")
			for (c = r[1]; c <= (m > 1 ? r[2] : r[1]); c++)
				cpu[k++] = c
		}
		print (k > 1 ? 2 ^ cpu[n] : 0)
	}'
}
