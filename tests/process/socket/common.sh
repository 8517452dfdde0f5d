# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Two gateways, each a process, with a socket node between them. A test sources
# this. Nothing sleeps for luck: what has to happen is waited for, at most LIMIT_S
# seconds.
#
#   BUSBAR  the executable under test (required)
#
# Exit status: 0 passed, 1 failed, 77 this host does not allow it.
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
limit_s=${LIMIT_S:-20}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-socket.XXXXXX")
pids=

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
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

# Runs the test again in a network of its own, where only it is root.
own_network() {
	[ "${IN_NETWORK:-}" ] && return
	command -v ip >/dev/null || skip "no ip (iproute2)"
	unshare -n true 2>/dev/null || skip "no right to make a network namespace"
	rm -rf "$tmp"
	IN_NETWORK=1 exec unshare -n "$0" "$@"
}

# Two free ports of our own; other tests run at the same time.
port=$((20000 + $$ % 6000 * 2))

# sender NAME NODE: a generator to the node `s`, whose settings are given, and a
# copy to a file. What the copy has was given to the node.
sender() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = {
				type = "signal"; signal = "${SIGNAL:-mixed}"; values = ${VALUES:-4};
				rate = ${RATE:-2000}; limit = ${LIMIT:-2000};
				realtime = ${REALTIME:-true}; vectorize = ${VECTORIZE:-1};
			};
			s = { type = "socket"; $2 };
			copy = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "g"; out = ( "s", "copy" ); } );
	CONF
	run "$1"
}

# receiver NAME NODE: the node to a file.
receiver() {
	cat >"$tmp/$1.conf" <<-CONF
		nodes = {
			s = {
				type = "socket"; vectorize = ${VECTORIZE:-1};
				signals = "${VALUES:-4}f"; $2
			};
			f = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "s"; out = "f"; } );
	CONF
	run "$1"
}

# run NAME: sets $last to the process, once it has started.
run() {
	: >"$tmp/$1.log"
	"$BUSBAR" run "$tmp/$1.conf" >"$tmp/$1.out" 2>>"$tmp/$1.log" &
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

rows() {
	[ -f "$tmp/$1.csv" ] || echo 0
	[ ! -f "$tmp/$1.csv" ] || grep -vc '^#' "$tmp/$1.csv" || true
}

# has_rows NAME COUNT: whether the file of NAME has that many samples.
has_rows() {
	[ "$(rows "$1")" -ge "$2" ]
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

# same SENDER RECEIVER: all samples, in order and unchanged.
same() {
	data "$1" >"$tmp/sent"
	data "$2" >"$tmp/received"
	[ -s "$tmp/sent" ] || fail "nothing was sent"
	cmp "$tmp/sent" "$tmp/received" || fail "what was received is not what was sent"
}
