#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# With a librdmacm that has no rdma_create_id2(), the system's, a node of mode UC
# is an error of the configuration that names key and remedy, and RC is none.
set -eu

system=$(for dir in /usr/lib/*/ /usr/lib64/; do
	[ -e "$dir/librdmacm.so.1" ] && echo "$dir"
done | head -n 1)
[ -n "$system" ] || { echo "skipped: the system has no librdmacm.so.1"; exit 77; }
if nm -D "$system/librdmacm.so.1" | grep -q rdma_create_id2; then
	echo "skipped: the system's librdmacm.so.1 has rdma_create_id2"
	exit 77
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-gateway.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

check() {
	cat >"$tmp/node.conf" <<-CONF
		nodes = {
			ib = {
				type = "infiniband"; rdma_transport_mode = "$1";
				in = { address = "127.0.0.1:1337"; };
			};
		};
	CONF
	LD_LIBRARY_PATH=$system "$BUSBAR" check "$tmp/node.conf" >"$tmp/log" 2>&1
}

check RC || { echo "failed: RC was refused:"; cat "$tmp/log"; exit 1; }
check UC && { echo "failed: UC was accepted:"; cat "$tmp/log"; exit 1; }
grep -q 'node.conf:3: nodes.ib.rdma_transport_mode: .*rdma_create_id2' "$tmp/log" ||
	{ echo "failed: the message does not say what is missing:"; cat "$tmp/log"; exit 1; }
exit 0
