#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Receiver first: every sample arrives, in order and unchanged. Sender first: it
# says once that nobody is there, and what it sends after that arrives.
. "$(dirname "$0")/common.sh"

LIMIT=2000
receiver receiver
receiver_pid=$last
until_true logged receiver 1 'listening on'
sender sender $((port + 1))
ends "$last"
lost=$(absent sender)
until_true has_rows receiver $(($(rows sender) - lost))
stops "$receiver_pid"
data sender | tail -n +$((lost + 1)) >"$tmp/sent"
data receiver >"$tmp/received"
[ -s "$tmp/sent" ] || fail "nothing was sent"
cmp "$tmp/sent" "$tmp/received" || fail "what was received is not what was sent"

rm "$tmp"/*.csv "$tmp"/*.log
LIMIT=1000000
sender sender $((port + 1))
sender_pid=$last
until_true logged sender 1 'cannot reach'
until_true has_rows sender 300
receiver receiver
receiver_pid=$last
until_true has_rows receiver 500
stops "$sender_pid"
stops "$receiver_pid"
logged sender 2 'cannot reach' && fail "an attempt was logged more than once"
data sender >"$tmp/sent"
data receiver >"$tmp/received"
grep -Fxq -f "$tmp/sent" "$tmp/received" || fail "the received samples are not the sent ones"
extra=$(sort "$tmp/sent" "$tmp/sent" "$tmp/received" | uniq -u | wc -l)
[ "$extra" -eq 0 ] || fail "$extra samples were received but not sent"
exit 0
