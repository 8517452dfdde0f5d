#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh SOURCE BUILD: scripts/bench-servers.sh measures the rows whose libraries and servers are
# here (with TESTS_PART > 1 some of them), with few messages, in one namespace and between two, and says which it leaves out. When it
# is ended in the middle, no namespace and none of its processes stay.
set -u
script=${1:?the source folder}/scripts/bench-servers.sh build=${2:?the build folder}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-servers-test.XXXXXX")
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
export RUNS=1 COUNT=100 TMPDIR="$tmp"
failed=0

fail() {
	echo "failed: $*"
	cat "$tmp/out"
	failed=1
}

# expect STATUS SETTING...
expect() {
	want=$1
	shift
	status=0
	env "$@" timeout 100 "$script" "$build" >"$tmp/out" 2>&1 || status=$?
	[ "$status" -eq "$want" ] || fail "$*: status $status, not $want"
}

# rows KIND...: each has its figures, or a reason.
rows() {
	for row in "$@"; do
		grep -q -E "^$row(: left out, .*| .* [0-9.]+ [0-9.]+-[0-9.]+ .* [0-9.]+ [0-9.]+-[0-9.]+)\$" "$tmp/out" ||
			fail "no row $row"
	done
}

kinds='redis influxdb-udp'
[ "${TESTS_PART:-1}" -gt 1 ] || kinds='zeromq nanomsg nats mqtt-1 redis influxdb-udp influxdb-http'
expect 0 KINDS="$kinds"
# shellcheck disable=SC2086 # words
rows $kinds
expect 1 KINDS=nonsense
expect 1 WHERE=nonsense
expect 1 BUSY=nonsense

# Between two namespaces, if this host has them.
status=0
env WHERE=namespaces BUSY=1 KINDS='nanomsg redis' timeout 100 "$script" "$build" >"$tmp/out" 2>&1 ||
	status=$?
if [ "$status" -eq 77 ]; then
	cat "$tmp/out"
	exit "$failed"
fi
[ "$status" -eq 0 ] || fail "between namespaces: status $status"
rows nanomsg redis
[ "$(grep -c 'left out' "$tmp/out")" -lt 2 ] || exit "$failed"

# Ended while the one that asks is at work, so that all others are there.
RUNS=1000 WHERE=namespaces BUSY=2 KINDS='nanomsg redis' "$script" "$build" >"$tmp/out" 2>&1 &
pid=$!
tries=0
until ls "$tmp"/busbar-*/ping.log >"$tmp/found" 2>&1 || [ $((tries += 1)) -gt 3000 ]; do
	sleep 0.02
done
started=$(cat "/proc/$pid/task/$pid/children")
# shellcheck disable=SC2086 # words
set -- $started
[ $# -ge 4 ] || fail "it has started $# processes only"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 143 ] || fail "ended in the middle, its status is $status"
! ip netns list | grep "^busbar-$pid-" || fail "namespaces are left"
pid=
for child in $started; do
	! kill -0 "$child" 2>/dev/null || fail "$(tr '\0' ' ' <"/proc/$child/cmdline") is left"
done
! ls -d "$tmp"/busbar-* 2>/dev/null || fail 'files are left'
exit "$failed"
