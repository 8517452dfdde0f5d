#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs unmodified programs of other projects with our libraries, on 127.0.0.1: a server and
# a client; both must end with 0. programs.sh LIBDIR PORT "SERVER" "CLIENT"
# PORT "mcast": both are members of a multicast group.
set -u
dir=$1 port=$2
server=$(echo "$3" | sed "s/PORT/$port/")
client=$(echo "$4" | sed "s/PORT/$port/")
for program in "$server" "$client"; do
	command -v "${program%% *}" >/dev/null || exit 77
done
export LD_LIBRARY_PATH="$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT
# shellcheck disable=SC2086
timeout 20 $server >"$log/server" 2>&1 &
pid=$!
# Waits until the server has bound its port, or joined a group: both are names of
# abstract sockets.
name="@busbar\.cm\.[0-9a-f]*\.$port\."
[ "$port" != mcast ] || name='@busbar\.mcast\.'
tries=0
until grep -q "$name" /proc/net/unix; do
	tries=$((tries + 1))
	if [ $tries -gt 100 ] || ! kill -0 $pid 2>/dev/null; then
		echo "the server does not come up"
		break
	fi
	sleep 0.1
done
# shellcheck disable=SC2086
timeout 20 $client >"$log/client" 2>&1
rc=$?
[ $rc = 0 ] || kill $pid 2>/dev/null
wait $pid
server_rc=$?
if [ $rc != 0 ] || [ $server_rc != 0 ]; then
	echo "client $rc, server $server_rc"
	echo "--- $server"
	tail -20 "$log/server"
	echo "--- $client"
	tail -20 "$log/client"
	exit 1
fi
