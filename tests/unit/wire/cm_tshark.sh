#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark as referee of the CM messages that cm_dump prints: it must name each
# kind and read back the values that went in. Left out: the primary flow label
# and rate of REQ, which tshark 4.0 reads with wrong lengths, and the fields of
# SIDR, which it does not decode.
set -u
dump=$1
command -v tshark >/dev/null && command -v text2pcap >/dev/null || exit 77
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
"$dump" >"$dir/hex" || exit 1
text2pcap -q -u 49152,4791 "$dir/hex" "$dir/pcap" >/dev/null 2>&1 || exit 1

q=infiniband.cm.req r=infiniband.cm.rep j=infiniband.cm.rej d=infiniband.cm.dreq
failed=0 args='' shown=''
# expect FRAME WANT FIELD...: only adds the fields to args until tshark has shown them.
expect() {
	frame=$1 want=$2
	shift 2
	if [ -z "$shown" ]; then
		for field; do args="$args -e $field"; done
		return
	fi
	got=$(awk -F '\t' -v row=$((frame + 1)) -v fields="$*" '
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
		NR == row {
			n = split(fields, field, " ")
			for (i = 1; i <= n; i++)
				printf "%s%s", $column[field[i]], i < n ? "," : "\n"
		}' "$dir/shown")
	if [ "$got" != "$want" ]; then
		echo "frame $frame: got  $got"
		echo "         want $want"
		failed=1
	fi
}
expectations() {
	expect 1 '0x0a0b0c0d,0x06,0x4853,0x0102030405060708,0x1a2b3c,0x10,0x0f,0x14,0x01,0x00' \
		$q $q.serviceid.protocol $q.serviceid.dport $q.localcaguid $q.localqpn \
		$q.responderres $q.initdepth $q.remoteresptout $q.transpsvctype \
		$q.e2eflowctrl
	expect 1 '0x4d5e6f,0x13,0x06,0xffff,0x05,0x04,0x0d,0x01' \
		$q.startpsn $q.localresptout $q.retrcount $q.pkey $q.pppmtu \
		$q.rnrretrcount $q.maxcmretr $q.srq
	expect 1 '10.0.0.1,10.0.0.2,0x21,0x40,0x05,0x0e,0x04,0x9c41,10.0.0.1,10.0.0.2' \
		$q.prim_localgid_ipv4 $q.prim_remotegid_ipv4 $q.prim_tfcclass \
		$q.prim_hoplim $q.prim_sl $q.prim_localacktout $q.ip_cm.ipv \
		$q.ip_cm.sport $q.ip_cm.sip4 $q.ip_cm.dip4
	expect 2 '0x01020304,0x0a0b0c0d,0x3c2b1a,0x6f5e4d,0x09,0x08,0x0f,0x07,0x01' \
		$r $r.remotecommid $r.localqpn $r.startpsn $r.respres $r.initdepth \
		$r.tgtackdelay $r.rnrretrcount $r.srq
	expect 3 '0x00000001,0x00000002,0x01,0x001c' \
		$j.localcommid $j.remotecommid $j.msgrej $j.reason
	expect 4 '0x00000003,0x00000004,0x0c0d0e' \
		$d.localcommid $d.remotecommid $q.remoteqpneecn
	expect 5 'CM: ServiceIDResReqResp' _ws.col.Info
	expect 6 'CM: LoadAlternatePath' _ws.col.Info
	expect 7 'CM: AlternatePathResponse' _ws.col.Info
}
# One run of tshark shows all fields of all frames, as its start takes half a second.
expectations
# shellcheck disable=SC2086 # options
tshark -r "$dir/pcap" -T fields -E header=y $args >"$dir/shown" 2>/dev/null
shown=yes
expectations
exit $failed
