#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A gateway whose peer is killed in the middle of the stream says so, goes on,
# and is connected again when the peer is back, and says after which time: first
# the receiver, then the sender. Datagrams have no connection: their sender finds
# out by looking, their receiver never does and takes the next sender as well.
. "$(dirname "$0")/common.sh"

receiver first
first_pid=$last
until_true logged first 1 'listening on'
sender sender $((port + 1))
sender_pid=$last
until_true has_rows first 200
kill -KILL "$first_pid"
wait "$first_pid" 2>/dev/null || true
[ "$MODE" = UD ] || until_true logged sender 1 'connection lost'

receiver second
second_pid=$last
until_true has_rows second 200
logged sender 1 'connection lost' || fail "samples arrive over a connection that was not lost"
logged sender 2 'connection lost' && fail "the connection was lost twice"
until_true logged sender 1 'connected to .* ms after the connection was lost'

kill -KILL "$sender_pid"
wait "$sender_pid" 2>/dev/null || true
[ "$MODE" = UD ] || until_true logged second 1 'connection lost'
rows=$(grep -vc '^#' "$tmp/second.csv")
sender again $((port + 1))
again_pid=$last
until_true has_rows second $((rows + 200))
[ "$MODE" = UD ] || until_true logged second 1 'connected to .* ms after the connection was lost'

stops "$again_pid"
stops "$second_pid"
logged second 1 'not given back' && fail "samples were not released"
logged sender 1 'not given back' && fail "samples were not released"
exit 0
