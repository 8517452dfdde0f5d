#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `busbar bench floor` comes to an end, and its figures are physically possible.
set -u
: "${BUSBAR:?set it to the busbar executable}"
json=$(timeout 100 "$BUSBAR" bench floor --json)
status=$?
if [ "$(nproc)" -lt 2 ]; then
	echo "skipped: half of the floor needs two CPUs"
	exit 77
fi
if [ "$status" -ne 0 ]; then
	echo "failed: status $status"
	echo "$json"
	exit 1
fi
for wrong in '--between here' '--between a=10.0.0.1,b=10.0.0.256' '--between =10.0.0.1,b=10.0.0.2' \
	'--round-ms 0' '--round-ms 1x'; do
	# shellcheck disable=SC2086 # words
	"$BUSBAR" bench floor $wrong clock_ticks_ns >/dev/null 2>&1
	[ $? -eq 2 ] || {
		echo "failed: $wrong is taken"
		exit 1
	}
done
echo "$json" | awk '
	function bad(why) { print "failed: " why; failed = 1 }
	/"median"/ {
		gsub(/[":,{}]/, " ")
		median[$1] = $3; best[$1] = $5; n++
		# Nothing may arrive in a round in which the receiver gets no processor.
		if ($1 ~ /_stream_/ ? !($5 > 0) : !($3 > 0) && $1 !~ /_missed(_busy)?$/)
			bad($1 " has median " $3 ", best " $5)
		rate = $1 ~ /_gbs$/
		if ($1 ~ /_rtt_/ && !($7 > 0 && $9 >= $7)) bad($1 " has p50 " $7 ", p99 " $9)
		if (rate ? $5 < $3 : $5 > $3) bad($1 ": best " $5 ", median " $3)
	}
	END {
		if (n != 23) bad(n " measurements instead of 23")
		# Loose bounds that no real machine leaves.
		if (median["cacheline_oneway_ns"] < 5) bad("a cache line faster than 5 ns")
		if (median["udp_rtt_64_ns"] < 2 * best["system_call_ns"])
			bad("a UDP round trip cheaper than its system calls")
		if (median["udp_packets_rtt_64_ns"] < 2 * best["system_call_ns"])
			bad("packets cheaper than their system calls")
		if (median["tcp_sleeping_rtt_64_ns"] < 2 * best["system_call_ns"])
			bad("a sleeper answers before its system calls")
		if (best["udp_stream_1040_gbs"] > 10 * best["memcpy_64k_gbs"])
			bad("UDP is faster than copying")
		if (median["vm_writev_1m_ns"] < median["vm_writev_8_ns"])
			bad("1 MiB copied faster than 8 bytes")
		if (median["vm_readv_64k_ns"] < best["vm_readv_8_ns"])
			bad("64 KiB read faster than 8 bytes")
		exit failed
	}'
