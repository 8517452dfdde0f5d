#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# terminates_tshark.sh PROGRAM: tshark as referee of the captures of the test terminates.c: it reads
# each TERMINATE as the test has found or sent it, in the same order, and all 26 codes of DDP and
# RDMAP are among them.
set -u
program=${1:?the test terminates.c}
command -v tshark >/dev/null && command -v mergecap >/dev/null || exit 77
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-tshark.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

BUSBAR_CAPTURE=$dir/%p.pcapng "$program" >"$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}
sed -n 's/^TERMINATE //p' "$dir/log" >"$dir/want"
mergecap -w "$dir/all" "$dir"/*.pcapng || exit 1
t=iwarp_rdma.term
# It shows a code under the name of its layer and type; of a local error of DDP it shows none. Some of
# the ports that the kernel gives are other protocols'.
tshark -r "$dir/all" -o tcp.try_heuristic_first:TRUE --disable-protocol rpcordma \
	--disable-protocol smb_direct -Y 'iwarp_rdma.opcode == 7' -T fields -E separator=, \
	-e ${t}_layer -e ${t}_etype_rdma -e ${t}_etype_ddp -e ${t}_etype_llp -e ${t}_errcode_rdma \
	-e ${t}_errcode_ddp_tagged -e ${t}_errcode_ddp_untagged -e ${t}_errcode_llp \
	-e ${t}_errcode 2>/dev/null |
	awk -F, '{ print $1, $2 $3 $4, $5 $6 $7 $8 $9 }' >"$dir/got"
failed=0
diff "$dir/want" "$dir/got" || {
	echo 'failed: tshark reads other TERMINATEs'
	failed=1
}
codes=$(grep -c -E '^0x0[01] ' <<END
$(sort -u "$dir/got")
END
)
[ "$codes" -eq 26 ] || {
	echo "failed: $codes codes of DDP and RDMAP"
	failed=1
}
exit $failed
