#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Over shared memory to another gateway, which returns everything.
. "$(dirname "$0")/common.sh"
needs shmem

there=/busbar-shmem-rtt-there-$$ back=/busbar-shmem-rtt-back-$$
cat >"$tmp/echo.conf" <<-CONF
	nodes = {
		shm = {
			type = "shmem";
			in = { name = "$there"; signals = "8f"; };
			out = { name = "$back"; };
		};
	};
	paths = ( { in = "shm"; out = "shm"; } );
CONF
cat >"$tmp/rtt.conf" <<-CONF
	nodes = {
		rtt = {
			type = "test_rtt"; timeout = 20; shutdown = true; prefix = "shm"; output = "$tmp";
			cases = { rates = 500; values = 8; count = 100; warmup = 0.2; };
		};
		shm = {
			type = "shmem";
			in = { name = "$back"; signals = "8f"; };
			out = { name = "$there"; };
		};
	};
	paths = ( { in = "rtt"; out = "shm"; }, { in = "shm"; out = "rtt"; } );
CONF
start echo
echo_pid=$last
until_true logged echo 1 'is running'
start rtt
ends "$last"
kill -INT "$echo_pid" 2>/dev/null || true
ends "$echo_pid"
holds "$tmp/shm_values8_rate500.log" 100
is "$tmp/shm_values8_rate500.log" received 100
for name in "$there" "$back"; do
	[ ! -e "/dev/shm$name" ] || fail "$name is left behind"
done
