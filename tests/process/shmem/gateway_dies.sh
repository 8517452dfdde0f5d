#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A gateway is killed: its simulator notices. Both are killed: the next gateway
# takes over what they left.
. "$(dirname "$0")/common.sh"

gateway
gateway_pid=$last
simulator
until_true logged gateway 1 'connected'
flows
killed "$gateway_pid"
ends "$last"

gateway
gateway_pid=$last
simulator
echo_pid=$last
until_true logged gateway 2 'connected'
flows
# Both, so that nobody is there to clear up.
kill -STOP "$echo_pid"
killed "$gateway_pid"
killed "$echo_pid"
[ -e "/dev/shm/$name-in" ] || fail "who removed the objects?"
rm -f "$tmp"/*.csv
gateway
gateway_pid=$last
simulator
until_true logged gateway 3 'connected'
flows
in_order
stops "$gateway_pid"
ends "$last"
