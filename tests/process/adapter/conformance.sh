#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# conformance.sh [--check FILE] PROGRAM...: the table of rules and of the cases
# that show them, from what the adapter's test programs say of themselves. With
# --check: fails when FILE holds another one; `ninja conformance-table` in the
# build folder writes it.
set -eu

table() {
	cat <<'EOF'
# Conformance

Which case of the adapter's suite shows which rule of the InfiniBand specification
(IBTA, volume 1; the numbers of its sections are those of release 1.3 and later), of
its RoCE annexes, or of a manual page. Every case runs with both sides in one process
and in two, unless it is about one of them only, and on every transport that there
is. A rule without a source is one that programs rely on all the same.

Made from the test programs by `ninja -C build conformance-table`.

## Between two hosts

`sudo ninja -C build conformance-hosts` runs every program that does not need what
only one host has, with its two processes in two network namespaces, joined by Ethernet
interfaces: once by IPv4 with interfaces of 4500 bytes, once by IPv6 with 1500, where long
packets leave in fragments. `make test` runs some of them. Left out are the programs about shared memory, about
processes that look at each other, and about groups.

## Completion statuses that cannot occur

The others are produced one by one under "status".

| status | why not |
|---|---|
| LOC_EEC_OP_ERR, LOC_RDD_VIOL_ERR, REM_INV_RD_REQ_ERR, INV_EECN_ERR, INV_EEC_STATE_ERR | of the reliable datagram service, which the verbs cannot ask for |
| LOC_ACCESS_ERR | of a WRITE with immediate that is refused when it has taken a receive: its rights are checked before it takes one |
| REM_ABORT_ERR | of messages of several packets that the sender of a reliable datagram, or of an unreliable service with a shared receive queue, gives up half way: a datagram is one packet, and UC has no shared receive queues (ibv_create_qp(3)) |
| BAD_RESP_ERR but over iWARP ("terminates") | an answer to nothing that was asked: a peer that breaks the rules loses the link, and what is outstanding ends with RETRY_EXC_ERR |
| FATAL_ERR, RESP_TIMEOUT_ERR, GENERAL_ERR | of faults inside a real adapter |
| TM_ERR, TM_RNDV_INCOMPLETE | of tag matching, which is not offered |

## rdma-core's own tests of its Python bindings

`scripts/test-pyverbs.sh build/busbar`, with Debian 12's python3-pyverbs 44.0: 143 good,
0 bad, 130 skipped. Of these 130:

| tests | why they are skipped |
|---|---|
| 97 | they are about the devices of one vendor (63, 14 and 2 mlx5, 16 EFA), or call its library (2, for a time stamp in nanoseconds) |
| 14 | raw packet queue pairs, which are not offered; those of flow steering and of receive side scaling among them |
| 10 | DMA-BUF: Debian builds the bindings without the allocator that these tests need |
| 4 | tag matching, which is not offered |
| 3 | huge pages, which the host has none of; they are good in a guest that has some (`meson test -C build --suite qemu`), which makes 146 |
| 2 | CUDA |
EOF
	for program; do
		title=$(basename "$program")
		printf '\n## %s\n\n| rule | case |\n|---|---|\n' "${title#adapter-}"
		"$program" --rules | LC_ALL=C sort -s -t '	' -k 1,1 -V |
			awk -F '	' '{ gsub("_", " ", $2); printf "| %s | %s |\n", $1, $2 }'
	done
}

if [ "${1:-}" != --check ]; then
	table "$@"
	exit
fi
file=$2
shift 2
table "$@" | diff -u "$file" - || {
	echo "failed: $file is not current: ninja -C build conformance-table"
	exit 1
}
