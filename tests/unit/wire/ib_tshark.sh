#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark as referee of the packets that ib_dump prints. Left out: FLUSH, ATOMIC WRITE and
# the XRCETH, which tshark 4.0 does not know; of a SEND with invalidate it does not find the
# payload.
set -u
dump=$1
command -v tshark >/dev/null && command -v text2pcap >/dev/null || exit 77
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
"$dump" >"$dir/hex" || exit 1
text2pcap -q -u 49152,4791 "$dir/hex" "$dir/pcap" >/dev/null 2>&1 || exit 1

i=infiniband
# What an atomic has in common with a RETH goes by the names of that.
tshark -r "$dir/pcap" -T fields -E separator=, -E occurrence=f \
	-e $i.bth.opcode -e $i.bth.se -e $i.bth.m -e $i.bth.padcnt -e $i.bth.p_key \
	-e $i.bth.destqp -e $i.bth.a -e $i.bth.psn -e $i.immdt -e $i.ieth -e $i.reth.va \
	-e $i.reth.r_key -e $i.reth.dmalen -e $i.aeth.syndrome -e $i.aeth.msn \
	-e $i.atomiceth.swapdt -e $i.atomiceth.cmpdt -e $i.atomicacketh.origremdt \
	-e $i.deth.q_key -e $i.deth.srcqp -e $i.invariant.crc >"$dir/got" 2>/dev/null
cat >"$dir/want" <<END
5,1,1,3,65535,0x010203,1,658188,11223344,,,,,,,,,,,,0xcccccccc
22,0,1,0,65535,0x010203,0,658188,,55667788,,,,,,,,,,,
43,0,1,0,65535,0x010203,0,658188,99aabbcc,,0x0102030405060708,0x11121314,4,,,,,,,,0xcccccccc
12,0,1,0,65535,0x010203,0,658188,,,0x1112131415161718,0x21222324,65536,,,,,,,,0xcccccccc
16,0,1,1,65535,0x010203,0,658188,,,,,,31,3224115,,,,,,0xcccccccc
17,0,1,0,65535,0x010203,0,658188,,,,,,98,4276803,,,,,,0xcccccccc
19,0,1,0,65535,0x010203,0,658188,,,0x5152535455565758,0x61626364,,,,77,88,,,,0xcccccccc
18,0,1,0,65535,0x010203,0,658188,,,,,,0,7434867,,,99,,,0xcccccccc
100,0,1,0,65535,0x010203,0,658188,,,,,,,,,,,0x0000000081828384,0x00919293,0xcccccccc
END
diff "$dir/want" "$dir/got"
