#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# beside.sh SOURCE: scripts/bench-beside.sh measures a row in one namespace and one in two, with
# few messages, prints what it has, leaves out what it cannot do, and leaves no namespace behind.
set -u
: "${BUILD:?set it to the build folder}"
script=${1:?the source folder}/scripts/bench-beside.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-beside.XXXXXX")
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
export RUNS=1 SCALE=1
failed=0

fail() {
	echo "failed: $*"
	cat "$tmp/out" "$tmp/errors"
	failed=1
}

# expect STATUS ARGUMENTS...
expect() {
	want=$1
	shift
	status=0
	timeout 100 "$script" --build "$BUILD" "$@" >"$tmp/out" 2>"$tmp/errors" || status=$?
	[ "$status" -eq "$want" ] || fail "bench-beside.sh $*: status $status, not $want"
}

says() {
	grep -q -e "$1" "$tmp/out" "$tmp/errors" || fail "nothing like '$1' in what it prints"
}

status=0
"$script" --build "$BUILD" epoll >"$tmp/out" 2>"$tmp/errors" || status=$?
if [ "$status" -eq 77 ]; then
	echo "skipped: $(cat "$tmp/errors")"
	exit 77
fi
[ "$status" -eq 0 ] || fail "row epoll: status $status"
says '^epoll .* epoll_rdma:p50  *[1-9][0-9.]* us .* epoll_tcp:p50  *[1-9][0-9.]* us  *[0-9.]* \[.* 1  below 1$'

expect 0 --list
says '^small .* write8:p50 '
expect 0 --help
expect 2 nonsense
says 'no row nonsense'
expect 2 --nonsense
expect 2 --build
RUNS=x expect 2 epoll

# Without the tools of a row there is nothing to compare.
mkdir "$tmp/bin"
for tool in awk cut dirname grep id ip mktemp realpath rm sed sh sleep tail taskset timeout tr uniq; do
	ln -s "$(command -v "$tool")" "$tmp/bin/$tool"
done
PATH=$tmp/bin expect 77 events
says '^ib_send_lat is not here (perftest)'

# Between two namespaces; and when it is ended in the middle, they go all the same.
expect 0 --json epoll epoll-hosts
if grep -q 'epoll-hosts is left out' "$tmp/errors"; then
	echo "no two namespaces: $(cat "$tmp/errors")"
	exit "$failed"
fi
python3 - "$tmp/out" <<-'END' || fail "the JSON does not have the rows"
	import json, sys
	out = json.load(open(sys.argv[1]))
	rows = [r for r in out["rows"] if r["row"] == "epoll-hosts"]
	assert rows and out["floor"]["system_call_ns"]["median"] > 0
	for r in rows:
	    assert r["n"] == out["runs"] == 1 and r["value"] > 0 and r["beside_value"] > 0, r
	    assert r["low"] <= r["ratio"] <= r["high"], r
END
SCALE=100 RUNS=1000 "$script" --build "$BUILD" epoll-hosts >"$tmp/out" 2>"$tmp/errors" &
pid=$!
tries=0
until ip netns list | grep -q "^busbar-$pid-b" || [ $((tries += 1)) -gt 1000 ]; do
	sleep 0.02
done
ip netns list | grep -q "^busbar-$pid-b" || fail "it makes no namespaces"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 143 ] || fail "ended in the middle, its status is $status"
! ip netns list | grep "^busbar-$pid-" || fail "namespaces are left"
pid=
exit "$failed"
