#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# perftest.sh: programs that keep their send queue full, post by ibv_wr_*() and by ibv_post_send(), poll
# by ibv_poll_cq() or wait for events, end with the shield on an adapter with all pitfalls, and have room
# for all requests that they asked for, beside the probes.
set -eu
command -v ib_read_bw >/dev/null || { echo "skipped: no ib_read_bw"; exit 77; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-shield.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0
port=$((20000 + $$ % 10000))

# program PARTS NAME OPTIONS...
program() {
	parts=$1 name=$2
	shift 2
	(cd "$tmp" && BUSBAR_DEVICES=soft timeout 60 "$BUSBAR" exec -q $parts -- "$name" --odp \
		-s 65536 -n 300 -p $port "$@")
}

# both PARTS NAME OPTIONS...: the server's and the client's process.
both() {
	port=$((port + 1))
	program "$@" >"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		status=0
		program "$@" 127.0.0.1 >"$tmp/client" 2>&1 || status=$?
		grep -q "Couldn't connect" "$tmp/client" || break
		sleep 0.1
	done
	wait $server || status=$?
	[ $status -eq 0 ] && return
	echo "failed: $*: status $status"
	cat "$tmp/client" "$tmp/server"
	failed=1
}

export BUSBAR_PAGING=connectx4
for name in ib_read_bw ib_write_bw; do
	both --odp-shield $name
	both --odp-shield=probe $name
done
both --odp-shield=probe ib_write_bw --use_old_post_send
both --odp-shield=probe,touch ib_read_bw --events
# An adapter without memory on demand: the shield has nothing to do.
unset BUSBAR_PAGING
both --odp-shield ib_write_bw
exit $failed
