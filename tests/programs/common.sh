# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# For tests that run other people's programs, unmodified, on busbar's adapter.
# A test sources this, defines once() and ends with `repeat`.
#
#   BUSBAR  the executable under test (required)
#   N       repetitions (1)
#   DEVICE  the device to use (soft0)
#   PACKAGE what to install when the program is not there
#   EXEC_OPTIONS  of `busbar exec`
#   EXPECT  the message that must end the run; by default it must succeed
#
# Exit status: 0 passed, 1 failed, 77 a program that is needed is not here.
# Nothing here sleeps for luck: a server is ready when it listens.
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
DEVICE=${DEVICE:-soft0}
# Messages of the adapter would stand between the programs' own lines.
export BUSBAR_LOG="${BUSBAR_LOG:-error}"
# The same on every host: datagrams as long as they can be inside of it.
export BUSBAR_MTU="${BUSBAR_MTU:-4096}"
limit_s=${LIMIT_S:-120}
# For those that run a file of this folder.
# shellcheck disable=SC2034
here=$(realpath "$(dirname "$0")")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-programs.XXXXXX")
server_pid=
# Some programs leave files where they stand.
cd "$tmp"

cleanup() {
	status=$?
	trap - EXIT INT TERM
	[ -z "$server_pid" ] || stop_server
	cd /
	rm -rf "$tmp"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
# Of who ends a test that takes too long.
trap 'code=143; fail "it was ended"' TERM

# need PROGRAM...: skips the test when one is not installed.
need() {
	for needed; do
		if ! command -v "$needed" >/dev/null; then
			echo "skipped: $needed is not installed${PACKAGE:+ ($PACKAGE)}"
			exit 77
		fi
	done
}

# fail WORDS: says why, with what the two programs printed.
fail() {
	echo "failed: $*"
	for log in "$tmp"/*.log; do
		[ -s "$log" ] || continue
		echo "--- $(basename "$log")"
		tail -n 40 "$log"
	done
	exit "${code:-1}"
}

# A program on busbar's adapter, with a time limit. `timeout` becomes the
# process itself, so that $! of a background call can be signalled.
on_busbar() {
	# shellcheck disable=SC2086 # words
	exec timeout --kill-after=2 "$limit_s" "$BUSBAR" exec ${EXEC_OPTIONS:-} -- "$@"
}

# tcp_listens PORT: whether a socket listens there (state 0A), v4 or v6.
tcp_listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$(printf %04X "$1")" '
		$4 == "0A" { n = split($2, a, ":"); if (a[n] == port) found = 1 }
		END { exit !found }'
}

# cm_listens PORT: whether an identifier of the RDMA CM listens there. Its port is
# a name in the abstract namespace of Unix sockets (src/rdmacm/id/port.c).
cm_listens() {
	awk -v port="$1" '
		$4 == "00010000" && $NF ~ "^@busbar\\.cm\\.[0-9a-f]+\\." port "\\." { found = 1 }
		END { exit !found }' /proc/net/unix
}

# A TCP port that nothing listens on; below the range of outgoing connections.
free_port() {
	port=$((16000 + ($$ * 13 + ${port_step:-0} * 101) % 16000))
	while tcp_listens "$port"; do
		port=$((port + 1))
	done
	port_step=$((${port_step:-0} + 1))
}

# start_server COMMAND...: in the background, output in server.log.
start_server() {
	: >"$tmp/server.log"
	(on_busbar "$@") >"$tmp/server.log" 2>&1 &
	server_pid=$!
}

server_alive() {
	kill -0 "$server_pid" 2>/dev/null
}

# wait_ready TEST...: until TEST succeeds; fails when the server ends first or
# ten seconds pass.
wait_ready() {
	tries=0
	until "$@"; do
		refused || server_alive || fail "the server ended before it was ready"
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "the server was not ready in ten seconds"
		sleep 0.01
	done
}

# The server's own exit status, which must be 0 as well.
finish_server() {
	status=0
	wait "$server_pid" || status=$?
	server_pid=
	[ "$status" -eq 0 ] || fail "the server ended with status $status"
}

# For servers that have no end of their own.
stop_server() {
	kill "$server_pid" 2>/dev/null || true
	wait "$server_pid" 2>/dev/null || true
	server_pid=
}

# run_client COMMAND...: in the foreground, output in client.log.
run_client() {
	status=0
	(on_busbar "$@") >"$tmp/client.log" 2>&1 || status=$?
	[ "$status" -eq 0 ] || fail "the client ended with status $status"
}

# expect FILE PATTERN: a line of the log that must be there (basic regex).
expect() {
	grep -q -- "$2" "$tmp/$1.log" || fail "no line like '$2' in the $1's output"
}

# The number of the first RoCE v2 address.
first_gid() {
	"$BUSBAR" devices "$DEVICE" |
		awk '$1 == "gid" && $3 == "RoCE" && $4 == "v2" { print $2; exit }'
}

first_gid6() {
	"$BUSBAR" devices "$DEVICE" |
		awk '$1 == "gid" && $4 == "v2" && $5 !~ /^::ffff:/ { print $2; exit }'
}

# place_options WORDS: into $options, with GID, GID6 and FILE in the place of what
# only the run knows.
place_options() {
	options=
	for option; do
		case $option in
		GID)
			option=$(first_gid)
			[ -n "$option" ] || fail "$DEVICE has no RoCE v2 address"
			;;
		GID6)
			option=$(first_gid6)
			if [ -z "$option" ]; then
				echo "skipped: no IPv6 address here"
				exit 77
			fi
			;;
		*FILE)
			truncate -s 32M "$tmp/file"
			option=${option%FILE}$tmp/file
			;;
		esac
		options="$options $option"
	done
}

# Whether this run is one that must be refused.
refused() {
	[ -n "${EXPECT:-}" ]
}

# said MESSAGE: in the output of the client or the server.
said() {
	cat "$tmp"/*.log | grep -q -F -- "$1"
}

# alone "COMMAND": to its end, which must be good, or, when EXPECT is set, bad
# with that message.
alone() {
	status=0
	# shellcheck disable=SC2086 # commands are words
	(on_busbar $1) >"$tmp/client.log" 2>&1 || status=$?
	if refused; then
		[ "$status" -ne 0 ] || fail "it works, and should say: $EXPECT"
		said "$EXPECT" || fail "it ended without saying: $EXPECT"
	else
		[ "$status" -eq 0 ] || fail "it ended with status $status"
	fi
}

# pair READY "SERVER" "CLIENT": both to their ends, good or bad likewise. A
# server that has to be refused may end before it is ready.
pair() {
	# shellcheck disable=SC2086
	start_server $2
	if refused; then
		wait_ready ready_or_ended "$1"
		alone "$3"
		stop_server
	else
		wait_ready "$1"
		# shellcheck disable=SC2086
		run_client $3
		finish_server
	fi
}

ready_or_ended() {
	! server_alive || "$1"
}

# Runs once() N times.
repeat() {
	n=0
	while [ "$n" -lt "${N:-1}" ]; do
		n=$((n + 1))
		once
	done
}
