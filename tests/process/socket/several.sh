#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A tcp-server reads from all of its clients and writes to all of them. A client
# that takes nothing costs the others nothing but its own samples, and what arrives
# at each is whole.
. "$(dirname "$0")/common.sh"

# The server sends to whoever is there; one client reads, one does not at all.
LIMIT=1000000 RATE=1000 VECTORIZE=8 VALUES=32
sender server 'layer = "tcp-server"; format = "csv";
	in = { address = "127.0.0.1:'$port'"; };
	out = { full = "drop"; buffer_size = 65536; };'
server_pid=$last
until_true logged server 1 'listening on'
# Takes nothing.
python3 - "$port" "$tmp" 2>"$tmp/deaf.log" <<-'PY' &
	import socket, sys, time
	s = socket.socket()
	s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
	s.connect(("127.0.0.1", int(sys.argv[1])))
	time.sleep(60)
PY
deaf_pid=$!
pids="$pids $deaf_pid"
until_true logged server 1 'has connected'
receiver one 'layer = "tcp-client"; format = "csv"; in = { };
	out = { address = "127.0.0.1:'$port'"; };'
one_pid=$last
receiver two 'layer = "tcp-client"; format = "csv"; in = { };
	out = { address = "127.0.0.1:'$port'"; };'
two_pid=$last
until_true logged server 1 'takes too little'
until_true has_rows one 1000
until_true has_rows two 1000
kill "$deaf_pid"
stops "$server_pid"
# Behind the last sample.
until_true logged one 1 'is gone'
until_true logged two 1 'is gone'
stops "$one_pid"
stops "$two_pid"
for name in one two; do
	data server >"$tmp/sent"
	data "$name" >"$tmp/received"
	at=$(grep -n -x -F -e "$(head -n 1 "$tmp/received")" "$tmp/sent" | cut -d: -f1)
	tail -n +"$at" "$tmp/sent" >"$tmp/expected"
	cmp "$tmp/expected" "$tmp/received" || fail "$name misses samples"
done

# Two clients send, the server's path gets both.
LIMIT=500 RATE=2000 VECTORIZE=1 VALUES=4
# The built-in hooks would take two senders for one that starts anew.
receiver all 'builtin = false; layer = "tcp-server"; format = "csv"; in = { address = "127.0.0.1:'$port'"; };'
all_pid=$last
until_true logged all 1 'listening on'
to='layer = "tcp-client"; format = "csv"; out = { address = "127.0.0.1:'$port'"; };'
sender left "$to"
left_pid=$last
sender right "$to"
ends "$last"
ends "$left_pid"
sent=$(($(rows left) + $(rows right)))
until_true has_rows all "$sent"
stops "$all_pid"
[ "$(rows all)" -eq "$sent" ] || fail "$(rows all) samples of $sent"
exit 0
