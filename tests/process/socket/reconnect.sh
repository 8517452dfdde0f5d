#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# reconnect.sh ROLE: a TCP connection of two gateways comes (back) whichever is
# started first, killed and started anew. ROLE is what the receiving one is: server
# or client. The sender's node is only written, the receiver's only read.
. "$(dirname "$0")/common.sh"

server='layer = "tcp-server"; format = "csv"; in = { address = "127.0.0.1:'$port'"; };'
client='layer = "tcp-client"; format = "csv";
	out = { address = "127.0.0.1:'$port'"; reconnect_interval = 100; };'
LIMIT=1000000
case $1 in
server) to="$client" from="$server" ;;
client) to="$server out = { };" from="$client in = { };" ;;
esac

kill_now() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null || true
}

# Sender first: it waits for the receiver and says so once.
sender sender "$to"
sender_pid=$last
until_true has_rows sender 100
receiver receiver "$from"
receiver_pid=$last
until_true has_rows receiver 100

# The receiver dies and comes back.
kill_now "$receiver_pid"
until_true logged sender 1 'is gone'
until_true has_rows sender "$(($(rows sender) + 300))"
rm "$tmp/receiver.csv"
receiver receiver "$from"
receiver_pid=$last
until_true has_rows receiver 100

# The sender dies and comes back.
kill_now "$sender_pid"
until_true logged receiver 1 'is gone'
have=$(rows receiver)
sender second "$to"
second_pid=$last
until_true has_rows receiver $((have + 100))

stops "$second_pid"
# Behind the last sample.
until_true logged receiver 2 'is gone'
stops "$receiver_pid"
[ "$(grep -c 'cannot reach' "$tmp/sender.log")" -le 2 ] ||
	fail "an attempt was logged more than once"
# What came of the second sender is what that one sent, from some sample on and
# with nothing missing.
data second >"$tmp/sent"
data receiver | awk -F, '
	$1 < last { n = 0 }
	{ last = $1; line[n++] = $0 }
	END { for (i = 0; i < n; i++) print line[i] }' >"$tmp/received"
first=$(head -n 1 "$tmp/received")
grep -n -x -F -e "$first" "$tmp/sent" >"$tmp/at" || fail "the first sample was never sent"
tail -n +"$(cut -d: -f1 "$tmp/at")" "$tmp/sent" >"$tmp/expected"
cmp "$tmp/expected" "$tmp/received" || fail "samples are missing in the middle"
exit 0
