#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# layers.sh LAYER [FORMAT]: every sample that one gateway writes to a socket node arrives
# at the other, in order and unchanged; over tcp and unix also as fast as the
# machine can, over the others at a rate that it can keep up with.
. "$(dirname "$0")/common.sh"

layer=$1
case $layer in
ip | ip6 | eth | multicast | multicast6) own_network "$@" ;;
esac
format='format = "'${2:-csv}'";'
# Whole numbers, which also single precision holds.
case ${2:-csv} in
villas.*) SIGNAL=counter ;;
esac
wait_for='receiving at'
case $layer in
udp)
	from='layer = "udp"; in = { address = "*:'$port'"; };'
	to='layer = "udp"; out = { address = "127.0.0.1:'$port'"; };'
	;;
udp6)
	# What comes from elsewhere is not taken: the test below sees to it.
	from='in = { address = "[::1]:'$port'"; verify_source = true; };
		out = { address = "[::1]:'$((port + 1))'"; };'
	to='in = { address = "[::1]:'$((port + 1))'"; };
		out = { address = "[::1]:'$port'"; };'
	;;
ip)
	ip link set lo up
	from='layer = "ip"; in = { address = "127.0.0.1:254"; };'
	to='layer = "ip"; out = { address = "127.0.0.1:254"; };'
	;;
ip6)
	ip link set lo up
	from='layer = "ip"; in = { address = "[::1]:254"; };'
	to='layer = "ip"; out = { address = "[::1]:254"; };'
	;;
eth)
	ip link set lo up
	from='layer = "eth"; in = { address = "12:34:56:78:90:ab%lo:34997"; };'
	to='layer = "eth"; out = { address = "12:34:56:78:90:ab%lo:34997"; };'
	;;
unix)
	from='layer = "unix"; in = { address = "'$tmp'/there"; };'
	to='layer = "local"; out = { address = "'$tmp'/there"; };'
	;;
abstract)
	from='layer = "unix"; in = { address = "@busbar-'$$'"; };'
	to='layer = "unix"; out = { address = "@busbar-'$$'"; };'
	;;
multicast)
	ip link set lo up multicast on
	from='in = { address = "*:'$port'"; multicast = { group = "239.1.2.3"; interface = "lo"; }; };'
	to='out = { address = "239.1.2.3:'$port'"; multicast = { interface = "lo"; loop = true; ttl = 0; }; };'
	;;
multicast6)
	# The loopback interface has no multicast of IPv6.
	ip link add left type veth peer name right 2>/dev/null || skip "no veth"
	ip addr add fd00::1/64 dev left nodad
	ip link set left up
	ip link set right up
	from='in = { address = "*:'$port'"; multicast = { group = "ff15::42"; interface = "left"; }; };'
	to='out = { address = "[ff15::42]:'$port'"; multicast = { interface = "left"; loop = true; ttl = 1; }; };'
	;;
tcp)
	from='layer = "tcp-server"; in = { address = "127.0.0.1:'$port'"; };'
	to='layer = "tcp-client"; out = { address = "localhost:'$port'"; };'
	wait_for='listening on'
	;;
tcp6)
	from='layer = "tcp-server"; framing = "length"; in = { address = "[::1]:'$port'"; };'
	to='layer = "tcp-client"; framing = "length"; out = { address = "[::1]:'$port'"; };'
	wait_for='listening on'
	;;
esac

# once: the samples of one sender, with the present RATE and so on.
once() {
	rm -f "$tmp"/*.csv
	receiver receiver "$format $from"
	receiver_pid=$last
	until_true logged receiver 1 "$wait_for"
	sender sender "$format $to"
	ends "$last"
	until_true has_rows receiver "$(rows sender)"
	stops "$receiver_pid"
	same sender receiver
	grep -q ' messages: ' "$tmp"/*.log && fail "something was wrong with messages"
	return 0
}

LIMIT=600 RATE=5000
once
case $layer in
tcp* | unix)
	REALTIME=false LIMIT=20000 VECTORIZE=16
	once
	[ "$(rows receiver)" -eq 20000 ] || fail "only $(rows receiver) of 20000 samples"
	;;
esac
exit 0
