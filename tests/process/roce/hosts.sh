#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# hosts.sh MTU IP-VERSION some|none BUSBAR [FAULTS]: pingpong programs between two hosts, whose
# packets have up to 4096 bytes of data; they check these themselves. Each host is server
# and client once. Whether IP fragments were made.
. "$(dirname "$0")/network.sh"
own_network "$@"
mtu=$1 version=$2 cut=$3 busbar=$(realpath "$4")
for needed in ibv_rc_pingpong ibv_ud_pingpong; do
	command -v "$needed" >/dev/null || skip "no $needed (ibverbs-utils)"
done
two_hosts "$mtu" "$version"
# Packets of any length, whatever the interface takes.
export BUSBAR_MTU=4096 BUSBAR_TRANSPORTS=roce BUSBAR_LOG=warn BUSBAR_FAULTS="${5:-}"

# listens WHERE: a TCP port of the pingpong programs does.
listens() {
	"$1" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '
		$4 == "0A" && $2 ~ /:4855$/ { found = 1 } END { exit !found }'
}

# run SERVER-HOST CLIENT-HOST SERVER-ADDRESS PROGRAM OPTIONS...
run() {
	server=$1 client=$2 at=$3
	shift 3
	echo "$* from $client to $server"
	"$server" timeout 30 "$busbar" exec -- "$@" >"$tmp/server" 2>&1 &
	pid=$!
	tries=0
	until listens "$server"; do
		tries=$((tries + 1))
		[ $tries -lt 500 ] && kill -0 $pid 2>/dev/null || break
		sleep 0.02
	done
	status=0
	"$client" timeout 30 "$busbar" exec -- "$@" "$at" >"$tmp/client" 2>&1 || status=$?
	wait $pid || status=$?
	if [ $status != 0 ]; then
		cat "$tmp/server" "$tmp/client"
		fail "$*: status $status"
	fi
	# The remedy is named, once by each process, where it is needed.
	warned=$(cat "$tmp/server" "$tmp/client" | grep -c 'too long for interface wire' || true)
	case $cut in
	some) [ "$warned" = 2 ] || fail "$warned warnings" ;;
	none) [ "$warned" = 0 ] || fail "$warned warnings" ;;
	esac
}

both() {
	run in_this in_other "$(address "$version" 1)" "$@"
	run in_other in_this "$(address "$version" 2)" "$@"
}

# Pads, packets below and above the limit, trains.
for size in 4097 1048573; do
	both ibv_rc_pingpong -d soft0 -g 0 -p 18517 -m 4096 -c -n 20 -s $size
done
[ -n "$BUSBAR_FAULTS" ] || # nobody sends a datagram again
	both ibv_ud_pingpong -d soft0 -g 0 -p 18517 -c -n 100 -s 4096
expect_fragments "$cut"
