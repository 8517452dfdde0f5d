#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ibv_devices lists the adapter.
. "$(dirname "$0")/common.sh"
need ibv_devices

once() {
	run_client ibv_devices
	expect client "^ *${DEVICE}[[:space:]]"
}

repeat
