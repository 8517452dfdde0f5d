#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Two gateways on two hosts (network namespaces of the test's own), connected by the
# connection manager over the network: 8 values at 2 kHz for two seconds. By RC every
# sample arrives once, in order and equal; UC and UD may lose some where the machine is
# busy, but what arrives is in order and equal. Then the receiver is killed: the sender
# finds out and is connected to the next one. Skipped without root.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../../../scripts/two-hosts.sh"

at_end() {
	remove_hosts
}
two_hosts "${INTERFACE_MTU:-4500}" >"$tmp/why" || skip "$(cat "$tmp/why")"
HOST_A=10.77.0.1 HOST_B=10.77.0.2
RATE=2000

# Instead of that of ../gateways.sh: the sender on A, receivers on B.
run() {
	run_name=$1
	shift
	[ -f "$tmp/$run_name.log" ] || : >"$tmp/$run_name.log"
	host=b
	[ "$run_name" != sender ] || host=a
	("on_${host}_exec" "$BUSBAR" run "$@" "$tmp/$run_name.conf") \
		>"$tmp/$run_name.out" 2>>"$tmp/$run_name.log" &
	started $!
}

receiver first
first_pid=$last
until_true logged first 1 'listening on'
LIMIT=4000
sender sender $((port + 1))
ends "$last"
sent=$(rows sender)
[ "$sent" -gt 1000 ] || fail "only $sent samples were sent"
wanted=$sent
[ "$MODE" = RC ] || wanted=$((sent / 2))
until_true has_rows first "$wanted"
stops "$first_pid"
data sender >"$tmp/sent"
data first >"$tmp/received"
if [ "$MODE" = RC ]; then
	cmp "$tmp/sent" "$tmp/received" || fail "what arrived is not what was sent"
else
	awk 'NR == FNR { at[$0] = FNR; next }
		!($0 in at) || at[$0] <= last { exit 1 }
		{ last = at[$0] }' "$tmp/sent" "$tmp/received" ||
		fail "what arrived was not sent, or not in this order"
fi
for name in first sender; do
	! logged "$name" 1 'not given back' || fail "samples were not released"
done

# UC acknowledges nothing: nothing tells its sender that a host or its program is gone.
[ "$MODE" != UC ] || exit 0
receiver second
second_pid=$last
until_true logged second 1 'listening on'
LIMIT=1000000
# The send queue holds what is sent until the retries are over, some seconds.
RATE=300
sender sender $((port + 1))
sender_pid=$last
until_true has_rows second 50
kill -KILL "$second_pid"
wait "$second_pid" 2>/dev/null || true
receiver third
third_pid=$last
until_true has_rows third 50
[ "$MODE" = UD ] || until_true logged sender 1 'connected to .* ms after the connection was lost'
stops "$sender_pid"
stops "$third_pid"
