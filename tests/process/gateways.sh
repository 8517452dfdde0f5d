# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# What tests with gateways as processes share; the common.sh beside a test sources it.
# What has to happen is waited for, at most LIMIT_S seconds; nothing sleeps for luck.
#
#   BUSBAR  the executable under test (required)
#
# Exit status: 0 passed, 1 failed, 77 this host or build cannot do it. A function
# `at_end` of the test, if there is one, runs before the folder is removed, with the
# status in `status`, which it may change.
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
limit_s=${LIMIT_S:-30}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-${FOLDER:-gateway}.XXXXXX")
pids=

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	! command -v at_end >/dev/null || at_end
	case $status in
	0 | 77) ;;
	*)
		for log in "$tmp"/*.log; do
			echo "--- $log"
			cat "$log"
		done
		;;
	esac
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

skip() {
	echo "skipped: $*"
	exit 77
}

# started PROCESS: is ended with the test. Sets $last to it.
started() {
	last=$1
	pids="$pids $1"
}

# run NAME [OPTIONS]: a gateway with $tmp/NAME.conf.
run() {
	run_name=$1
	shift
	[ -f "$tmp/$run_name.log" ] || : >"$tmp/$run_name.log"
	"$BUSBAR" run "$@" "$tmp/$run_name.conf" >"$tmp/$run_name.out" \
		2>>"$tmp/$run_name.log" &
	started $!
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

# absent NAME...: how many samples these lost because nobody was there yet, as where a
# connection takes long; they say so at their end.
absent() {
	for name; do
		sed -n 's/.*: \([0-9]*\) for a peer that is not there$/\1/p' "$tmp/$name.log"
	done | awk '{ sum += $1 } END { print sum + 0 }'
}

# rows NAME: samples in its file.
rows() {
	# Looked for once: it may come at any moment.
	if [ -f "$tmp/$1.csv" ]; then
		grep -vc '^#' "$tmp/$1.csv" || true
	else
		echo 0
	fi
}

has_rows() {
	[ "$(rows "$1")" -ge "$2" ]
}

has_ended() {
	! kill -0 "$1" 2>/dev/null ||
		[ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" = Z ]
}

# ends PID [STATUS ...]: waits for its end and wants success, or one of these.
ends() {
	ended=$1
	shift
	until_true has_ended "$ended"
	status=0
	wait "$ended" || status=$?
	case " ${*:-0} " in
	*" $status "*) ;;
	*) fail "process $ended ended with status $status" ;;
	esac
}

# stops PID [STATUS ...]
stops() {
	kill -INT "$1"
	ends "$@"
}

# Sequence number and values, without the times of the host.
data() {
	grep -v '^#' "$tmp/$1.csv" | cut -d, -f4-
}
