#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# plain.sh LIBDIR PINGPONG: programs of infiniband-diags on soft0 without a fabric, by our libibumad.so.3:
# ibstat sees its port, two ibping of one user reach each other, perfquery counts what ibv_rc_pingpong sends,
# and what has no answer ends with an error.
set -u
libdir=${1:?folder of the drop-in libraries}
for program in ibstat ibping perfquery ibv_rc_pingpong; do
	command -v "$program" >/dev/null || {
		echo "skipped: no $program"
		exit 77
	}
done
export LD_LIBRARY_PATH="$libdir" BUSBAR_DEVICES=soft
unset BUSBAR_FABRIC
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-umad.XXXXXX") || exit 1
server=
finish() {
	[ -n "$server" ] && kill "$server" 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
failed=0
complain() {
	echo "failed: $*"
	failed=1
}

ibstat >"$dir/stat" 2>&1 || complain "ibstat: $(cat "$dir/stat")"
grep -q "CA 'soft0'" "$dir/stat" && grep -q 'State: Active' "$dir/stat" || complain 'ibstat does not see soft0'

# Only one program serves a class. The other clients of this host may do so, too.
timeout 60 ibping -S >"$dir/server" 2>&1 &
server=$!
waited=0
until ibping -c 1 1 >"$dir/ping" 2>&1 && grep -q '1 received' "$dir/ping"; do
	waited=$((waited + 1))
	[ "$waited" -lt 20 ] || break
done
grep -q '1 received' "$dir/ping" || complain "ibping: $(cat "$dir/ping" "$dir/server")"

# perfquery sums over the processes that live, so the server of the pingpong is asked while it waits.
words() {
	perfquery 2>"$dir/errors" | sed -n 's/^PortXmitData:\.*//p'
}
ibv_rc_pingpong -d soft0 -g 0 -p 0 -s 65536 -n 100000000 >/dev/null 2>&1 &
pong=$!
waited=0
before=$(words)
port=
while [ -z "$port" ] && [ "$waited" -lt 100 ]; do
	sleep 0.05
	port=$(ss -tlnpH 2>/dev/null | sed -n "s/.*:\([0-9]*\) .*pid=$pong,.*/\1/p" | head -n 1)
	waited=$((waited + 1))
done
if [ -n "$port" ]; then
	ibv_rc_pingpong -d soft0 -g 0 -p "$port" -s 65536 -n 100000000 localhost >/dev/null 2>&1 &
	ping=$!
	waited=0
	until [ "$(words)" -gt $((${before:-0} + 1000000)) ] || [ "$waited" -ge 100 ]; do
		waited=$((waited + 1))
	done
	[ "$waited" -lt 100 ] || complain "perfquery counts $(words) words after ${before:-none}"
	kill "$ping" 2>/dev/null
fi
kill "$pong" 2>/dev/null
[ -n "$port" ] || echo 'the port of ibv_rc_pingpong was not found: no traffic'

# No subnet: a question to another LID ends with an error.
perfquery -t 100 7 >"$dir/other" 2>&1 && complain 'perfquery of a LID that does not exist succeeds'
exit $failed
