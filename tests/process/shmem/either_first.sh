#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The simulator may be started after the gateway, which waits for it without
# holding up anything, or before it.
. "$(dirname "$0")/common.sh"

gateway
gateway_pid=$last
until_true logged gateway 1 'waiting for a simulator'
simulator
until_true logged gateway 1 'connected'
flows
in_order
stops "$gateway_pid"
# It sees that the gateway has closed.
ends "$last"

rm -f "$tmp"/*.csv
simulator
echo_pid=$last
until_true test -e "/dev/shm/$name-in"
gateway
gateway_pid=$last
until_true logged gateway 2 'connected'
flows
in_order
# The other way round: the simulator leaves first.
stops "$echo_pid"
until_true logged gateway 1 'the simulator has gone'
stops "$gateway_pid"
