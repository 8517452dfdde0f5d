#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's verbs provider finds the adapter.
. "$(dirname "$0")/common.sh"
need fi_info

once() {
	run_client fi_info -p verbs
	expect client 'provider: verbs'
	expect client "domain: $DEVICE"
}

repeat
