#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# fabric.sh PROVIDER OPTIONS: fi_pingpong of libfabric over one of its providers
# that stand on verbs; it checks the data (-c). `fabric.sh fi_info OPTIONS`: the
# list of what libfabric finds.
. "$(dirname "$0")/common.sh"
provider=${1:?verbs, verbs;ofi_rxm ...}
shift
need fi_info fi_pingpong
# The layer over connected endpoints takes the end of a connection for more urgent
# than the completions that came before, and loses them then. So let it look less
# often than every 10 ms whether a connection ended.
export FI_OFI_RXM_CM_PROGRESS_INTERVAL=500000
place_options "$@"

ready() {
	tcp_listens "$port"
}

# bytes, sent, acknowledged (as "=10": the same number), ...
check() {
	for side in client server; do
		expect "$side" '^[0-9]*[km]\{0,1\}  *[0-9k]*  *=[0-9k]* '
	done
}

once() {
	if [ "$provider" = fi_info ]; then
		alone "fi_info $options"
		expect client 'provider: verbs'
		expect client "domain: $DEVICE"
		return
	fi
	free_port
	pair ready "fi_pingpong -p $provider -c $options -B $port" \
		"fi_pingpong -p $provider -c $options -P $port 127.0.0.1"
	refused || check
}

repeat
