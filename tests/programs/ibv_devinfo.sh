#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ibv_devinfo -v describes the adapter: an active port and RoCE v2 addresses.
# It imports a function of the private interface, so it also shows that the
# version node of the installed library is there.
. "$(dirname "$0")/common.sh"
need ibv_devinfo

once() {
	run_client ibv_devinfo -v -d "$DEVICE"
	expect client "hca_id:[[:space:]]*$DEVICE"
	expect client 'state:[[:space:]]*PORT_ACTIVE'
	expect client 'link_layer:[[:space:]]*Ethernet'
	expect client 'GID\[.*RoCE v2'
	expect client 'max_qp:[[:space:]]*[1-9]'
}

repeat
