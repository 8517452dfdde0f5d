#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar exec --trace`: several processes in one file, sums of the data path, calls
# that do not return, and that nothing is there without the option.
set -u
: "${BUSBAR:?set it to the busbar executable}"
command -v ibv_rc_pingpong >/dev/null || { echo "skipped: no ibv_rc_pingpong"; exit 77; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-trace.XXXXXX")
waiter=
trap 'kill $waiter 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

# has FILE PATTERN WHAT
has() {
	grep -qE -e "$2" "$1" || { fail "$3: no '$2' in"; cat "$1"; }
}

# The processes of a tree write whole lines into one file.
"$BUSBAR" exec --trace="$tmp/both" -- sh -c '
	ibv_rc_pingpong -d soft0 -g 0 -p 19871 >/dev/null &
	server=$!
	tries=0
	until ibv_rc_pingpong -d soft0 -g 0 -p 19871 localhost >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 50 ] || exit 1
		sleep 0.1
	done
	wait $server' || fail "ping-pong under --trace"
line='^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} [0-9]+/[0-9]+ (counted: |ibv_)'
if grep -vE "$line" "$tmp/both"; then
	fail "lines of another form (above)"
fi
has "$tmp/both" 'ibv_modify_qp\(qp 0x[0-9a-f]+, RTR -> RTS, .*\) = 0 <' "calls"
sums=$(sed -n 's/.* counted: ibv_post_send [0-9]* (\([0-9]*\) requests, \([0-9]*\) bytes).*/\1 \2/p' \
	"$tmp/both" | awk '{ n += $1; bytes += $2 } END { print n, bytes }')
[ "$sums" = "2000 8192000" ] || fail "the sums are $sums, not 2000 8192000"
[ "$(awk '/ibv_close_device/ { split($2, p, "/"); print p[1] }' "$tmp/both" | sort -u | wc -l)" \
	-ge 2 ] || fail "not both processes are there"
if grep -q 'ibv_post_send(qp' "$tmp/both"; then
	fail "each call of the data path is there without --trace-data"
fi

# Each call of the data path.
"$BUSBAR" exec --trace-data="$tmp/data" -- sh -c '
	ibv_rc_pingpong -d soft0 -g 0 -p 19871 -n 5 >/dev/null &
	server=$!
	tries=0
	until ibv_rc_pingpong -d soft0 -g 0 -p 19871 -n 5 localhost >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 50 ] || exit 1
		sleep 0.1
	done
	wait $server' || fail "ping-pong under --trace-data"
[ "$(grep -c 'ibv_post_send(qp 0x[0-9a-f]*, {wr_id 0x2, SEND, SIGNALED, 4096 bytes' "$tmp/data")" = 10 ] ||
	fail "ten requests are wanted in $(cat "$tmp/data")"
has "$tmp/data" 'ibv_poll_cq\(.* = [12] -> \{wr_id 0x1, qp 0x[0-9a-f]+, SUCCESS, RECV, 4096 bytes\}' \
	"completions"

# A call that does not return.
"$BUSBAR" exec --trace="$tmp/waits" -- ibv_asyncwatch -d soft0 >/dev/null 2>&1 &
waiter=$!
tries=0
until grep -q 'ibv_get_async_event(soft0) has not returned yet: it waits' "$tmp/waits" 2>/dev/null; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || { fail "nothing is said about a call that waits"; break; }
	sleep 0.1
done

# Without the option there is nothing of it.
env -u LD_PRELOAD "$BUSBAR" exec -q -- env >"$tmp/without"
if grep -E 'BUSBAR_TRACE|busbar-trace' "$tmp/without"; then
	fail "the environment has a trace without --trace"
fi
env -u LD_PRELOAD "$BUSBAR" exec -q -- cat /proc/self/maps >"$tmp/without"
if grep -q busbar-trace "$tmp/without"; then
	fail "the library is loaded without --trace"
fi
"$BUSBAR" exec --trace="$tmp/no/such/file" -- true 2>"$tmp/error"
[ $? = 1 ] || fail "a file that cannot be written is no error"
has "$tmp/error" "trace file '.*/no/such/file': No such file" "message"
# Programs that do not use verbs go on as ever, and standard error is theirs.
"$BUSBAR" exec -q --trace -- sh -c 'echo text' >"$tmp/out" 2>&1
[ "$(cat "$tmp/out")" = text ] || fail "a program without verbs writes $(cat "$tmp/out")"
exit $failed
