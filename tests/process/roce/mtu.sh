#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mtu.sh BUSBAR: the MTU that the port offers is one that the network takes, so that
# programs which take it send no fragments. Needs root.
. "$(dirname "$0")/network.sh"
own_network "$@"
busbar=$(realpath "$1")

# offers "ACTIVE (max MAX)" [SETTING...]
offers() {
	want=$1
	shift
	said=$(env "$@" "$busbar" devices soft0 | sed -n 's/.*, MTU \([0-9]* (max [0-9]*)\).*/\1/p')
	[ "$said" = "$want" ] || fail "it offers $said, expected $want${*:+, with $*}"
}

ip link set lo up
offers "4096 (max 4096)"
two_hosts 1500 4
offers "1024 (max 4096)"
offers "1024 (max 4096)" BUSBAR_TRANSPORTS=roce
offers "4096 (max 4096)" BUSBAR_TRANSPORTS=shm
offers "4096 (max 4096)" BUSBAR_MTU=4096
offers "512 (max 512)" BUSBAR_MTU=512
ip link set wire mtu 9000
offers "4096 (max 4096)"
# One that leads nowhere does not count.
ip link add small mtu 600 type dummy 2>/dev/null && ip link set small up &&
	offers "4096 (max 4096)" && ip addr add 10.10.0.1/24 dev small &&
	offers "512 (max 4096)" && ip link del small

# What programs take that are not told otherwise: they agree on the smaller one. The other
# host still has 1500.
for program in ib_write_bw ib_send_lat; do
	command -v "$program" >/dev/null || continue
	in_other timeout 30 "$busbar" exec -- "$program" -d soft0 -F -x 0 -n 20 -s 20000 \
		>"$tmp/server" 2>&1 &
	pid=$!
	tries=0
	until in_other cat /proc/net/tcp /proc/net/tcp6 | awk '
		$4 == "0A" && $2 ~ /:4853$/ { found = 1 } END { exit !found }'; do
		tries=$((tries + 1))
		[ $tries -lt 500 ] && kill -0 $pid 2>/dev/null || break
		sleep 0.02
	done
	status=0
	timeout 30 "$busbar" exec -- "$program" -d soft0 -F -x 0 -n 20 -s 20000 \
		"$(address 4 2)" >"$tmp/client" 2>&1 || status=$?
	wait $pid || status=$?
	if [ $status != 0 ] || ! grep -q 'Mtu  *: 1024' "$tmp/client"; then
		cat "$tmp/server" "$tmp/client"
		fail "$program: status $status"
	fi
done
expect_fragments none
