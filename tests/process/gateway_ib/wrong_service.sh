#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A sender of another service type than the receiver's is not connected, says
# for which type nobody is there, once, and does not disturb the receiver: a
# sender of the right type then is.
. "$(dirname "$0")/common.sh"

receiver receiver
receiver_pid=$last
until_true logged receiver 1 'listening on'

right=$MODE
MODE=${OTHER:?the mode of the wrong sender}
sender wrong $((port + 1))
wrong_pid=$last
until_true logged wrong 1 "cannot reach .*: nobody listens there for $OTHER"

MODE=$right
sender sender $((port + 2))
sender_pid=$last
until_true has_rows receiver 200
logged wrong 1 'connected to' && fail "a sender of mode $OTHER is connected to a receiver of mode $MODE"
logged wrong 2 'cannot reach' && fail "an attempt was logged more than once"
logged receiver 1 'connection lost' && fail "the receiver was disturbed"
stops "$wrong_pid"
stops "$sender_pid"
stops "$receiver_pid"
exit 0
