#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A simulator is killed, three times; the gateway goes on, says so, and works with
# the next one. What was on its way is never delivered in halves.
. "$(dirname "$0")/common.sh"

gateway
gateway_pid=$last
for turn in 1 2 3; do
	simulator
	until_true logged gateway "$turn" 'connected'
	flows
	killed "$last"
	until_true logged gateway "$turn" 'the simulator has gone'
done
simulator
until_true logged gateway 4 'connected'
flows
in_order
stops "$gateway_pid"
ends "$last"
