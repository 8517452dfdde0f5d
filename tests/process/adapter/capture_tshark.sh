#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# capture_tshark.sh PROGRAM: tshark as referee of the captures of the test capture.c: no
# packet is malformed, all are RoCE v2, the checksums of IP and UDP are right, and tshark
# knows the operations. (The ICRC it shows and does not verify; captured.c does.) Its
# guesses at RPC over RDMA and EoIB in any payload are switched off.
set -u
program=${1:?the test capture.c}
command -v tshark >/dev/null && command -v mergecap >/dev/null || exit 77
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-tshark.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

CAPTURED_IN=$dir "$program" >"$dir/log" 2>&1 &&
	CAPTURED_IN=$dir ADAPTER_TRANSPORT=loop BUSBAR_TRANSPORTS=loop,shm \
		"$program" >>"$dir/log" 2>&1 || {
	cat "$dir/log"
	failed=1
}
mergecap -w "$dir/all" "$dir"/*.pcapng || exit 1
# One run of tshark for all, as its start takes half a second.
tshark -r "$dir/all" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
	--disable-heuristic rpcrdma_infiniband --disable-heuristic mellanox_eoib \
	-T fields -e frame.number -e _ws.malformed -e infiniband -e ip.checksum.status \
	-e udp.checksum.status -e infiniband.bth.opcode 2>/dev/null >"$dir/shown"
count=$(wc -l <"$dir/shown")
[ "$count" -gt 500 ] || {
	echo "failed: only $count packets"
	failed=1
}
# IPv6 has no checksum of its own.
awk -F '\t' '$2 != "" || $3 == "" || ($4 != "" && $4 != 1) || $5 != 1' "$dir/shown" >"$dir/bad"
[ ! -s "$dir/bad" ] || {
	echo "failed: tshark dislikes (number, malformed, InfiniBand, checksums, opcode)"
	head -20 "$dir/bad"
	failed=1
}
cut -f 6 "$dir/shown" | sort -n | uniq -c >"$dir/opcodes"
# RC: SEND, WRITE, READ, answers, atomics; UC, UD, XRC.
for opcode in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 23 32 33 34 36 41 100 101 160 161 162 177; do
	grep -q " $opcode\$" "$dir/opcodes" || {
		echo "failed: no packet with opcode $opcode"
		failed=1
	}
done
[ $failed = 0 ] || cat "$dir/opcodes"
exit $failed
