#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# netlink.sh PROGRAM KERNEL: RDMA netlink below `busbar exec` (the PROGRAM is netlink.c), without
# RDMA in the kernel and with it (the library KERNEL, netlink_kernel.c); and rdma(8).
set -u
: "${BUSBAR:?set it to the busbar executable}"
unset BUSBAR_EXEC_DIR BUSBAR_LOG LD_PRELOAD
# One whose kernel has RDMA is asked for more than this test knows.
"$1" none >/dev/null || { echo "skipped: the kernel has RDMA netlink"; exit 77; }
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

"$BUSBAR" exec -q -- "$1" || fail "a kernel without RDMA"
"$BUSBAR" exec -q -- sh -c 'LD_PRELOAD=$LD_PRELOAD:$2 exec "$1" kernel' sh "$1" "$2" ||
	fail "a kernel with RDMA"
BUSBAR_DEVICES=system "$BUSBAR" exec -q -- "$1" none || fail "without soft0"
"$BUSBAR" exec -q --bare -- "$1" none || fail "--bare"

# says PATTERN ARGUMENTS...: of rdma(8).
says() {
	pattern=$1
	shift
	said=$("$BUSBAR" exec -q -- rdma "$@" 2>&1) || fail "rdma $*: $said"
	echo "$said" | tr -d ' ' | grep -q -e "$pattern" || fail "rdma $*: $said"
}
if command -v rdma >/dev/null; then
	says ':soft0:node_typecafwbusbarnode_guid' dev
	says 'MEM_WINDOW,XRC' -d dev show soft0
	says '^linksoft0/1state[A-Z]*physical_state[A-Z_]*netdev' link
	says '"ifname":"soft0","port":1,"state":"[A-Z]*","physical_state":"[A-Z_]*","netdev":"[^"]' \
		link show -j
	says 'netnsshared' system show
	export BUSBAR_DEVICES=iwarp
	says ':soft1:node_typernicfwbusbarnode_guid' dev
	says '"ifname":"soft1","port":1,"state":"[A-Z]*"' link show -j
	"$BUSBAR" exec -q -- rdma dev show soft0 >/dev/null 2>&1 && fail "soft0 was not wanted"
	BUSBAR_DEVICES=all
	says ':soft0:node_typeca' dev
	says ':soft1:node_typernic' dev
	unset BUSBAR_DEVICES
	"$BUSBAR" exec -q -- rdma dev show soft7 >/dev/null 2>&1 && fail "there is no soft7"
fi
exit "$failed"
