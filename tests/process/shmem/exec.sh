#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A simulator that the node starts: it gets the first sample, its end is said, and
# it ends with the gateway, even with one that is killed. One that cannot be
# started is an error.
. "$(dirname "$0")/common.sh"

child() {
	sed -n 's/.*node sim: started .* process \([0-9]*\)$/\1/p' "$tmp/gateway.log" | tail -n 1
}

line="exec = [ \"$ECHO\", \"$name-in\", \"$name-out\", \"1\", \"$MODE\" ];"
gateway "$line"
gateway_pid=$last
flows
in_order
# Unless this machine was too slow to start it in time.
logged gateway 1 'waiting for a simulator' ||
	awk -F, '/^#/ { next } { exit $4 > 5 }' "$tmp/back.csv" ||
	fail "the beginning did not come back"
stops "$gateway_pid"
kill -0 "$(child)" 2>/dev/null && fail "the simulator is still there"

rm -f "$tmp"/*.csv
gateway "$line"
gateway_pid=$last
flows
simulator_pid=$(child)
kill -KILL "$simulator_pid"
until_true logged gateway 1 "process $simulator_pid was ended by signal 9"
stops "$gateway_pid"

gateway "$line"
gateway_pid=$last
flows
simulator_pid=$(child)
killed "$gateway_pid"
until_true has_ended "$simulator_pid"

gateway 'exec = [ "/nonexistent/simulator" ];'
gateway_pid=$last
until_true has_ended "$gateway_pid"
wait "$gateway_pid" && fail "a simulator that is not there was started"
logged gateway 1 "cannot start '/nonexistent/simulator': No such file" || fail "nothing said why"
