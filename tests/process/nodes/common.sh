# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Gateways for the tests in this folder, which source this. What has to happen is
# waited for, at most LIMIT_S seconds; nothing sleeps for luck.
#
#   BUSBAR  the executable under test (required)
#
# Exit status: 0 passed, 1 failed, 77 what is needed is not in this build.
set -eu

BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
limit_s=${LIMIT_S:-30}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-nodes.XXXXXX")
pids=

cleanup() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || for log in "$tmp"/*.log; do
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

# needs TYPE: skips where the node-type is not in this build.
needs() {
	cat >"$tmp/needs.conf" <<-CONF
		nodes = { n = { type = "$1"; }; };
		paths = ( );
	CONF
	! "$BUSBAR" check "$tmp/needs.conf" 2>&1 | grep -q "no node-type '$1'" || {
		echo "skipped: no node-type $1"
		exit 77
	}
}

# start NAME: a gateway with $tmp/NAME.conf; sets $last to the process.
start() {
	"$BUSBAR" run -q --summary=none "$tmp/$1.conf" >"$tmp/$1.out" 2>"$tmp/$1.log" &
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

has_ended() {
	! kill -0 "$1" 2>/dev/null ||
		[ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" = Z ]
}

# ends PID: waits for its end and wants success.
ends() {
	until_true has_ended "$1"
	wait "$1" || fail "process $1 ended with status $?"
}

# figure FILE KEY: of the results in its last line.
figure() {
	tail -n 1 "$1" | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2-
}

# is FILE KEY VALUE
is() {
	[ "$(figure "$1" "$2")" = "$3" ] ||
		fail "$2 of $(basename "$1") is $(figure "$1" "$2"), not $3"
}

# holds FILE COUNT: whether it has so many samples and ends with its results.
holds() {
	[ -f "$1" ] || fail "there is no $(basename "$1")"
	[ "$(grep -vc '^#' "$1")" -eq "$2" ] ||
		fail "$(basename "$1") has $(grep -vc '^#' "$1") samples, not $2"
	tail -n 1 "$1" | grep -q '^# {.*}$' ||
		fail "$(basename "$1") does not end with its results"
}
