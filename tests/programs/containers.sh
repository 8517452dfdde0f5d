#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The table of busbar-containers(7): who reaches whom by which way, in namespaces of
# the test's own. Needs root.
. "$(dirname "$0")/common.sh"
need ib_write_bw
unshare --net --mount --pid --fork true 2>/dev/null || {
	echo "skipped: no namespaces of one's own without root"
	exit 77
}
unshare --user --map-root-user true 2>/dev/null || {
	echo "skipped: no user namespaces here (a chroot has none)"
	exit 77
}
export BUSBAR_LOG=debug
# With a process 1 that ends, the kernel kills the one that removes the program's folder; in a
# container the folder goes with it.
export TMPDIR="$tmp"
unset XDG_RUNTIME_DIR
unshare --net sh -c 'ip link set lo up; exec sleep 60' &
pod=$!
# With the status of the test.
trap 'code=$?; set +e; kill "$pod" 2>/dev/null; (exit "$code"); cleanup' EXIT
# Until it has its namespace, with its interface.
until nsenter --net --target "$pod" ip link show lo 2>/dev/null | grep -q LOWER_UP; do
	kill -0 "$pod" 2>/dev/null || fail "no network namespace"
	sleep 0.01
done
net="nsenter --net --target $pod"
alone="$net unshare --mount --ipc --uts --pid --fork --mount-proc"
users="$net unshare --user --map-root-user"
port=18515

listens() {
	$net sh -c 'cat /proc/net/tcp' | grep -q ":$(printf %04X "$port") .* 0A "
}

# reaches WAY PREFIX: a server and a client, each behind PREFIX.
reaches() {
	way=$1
	shift
	# shellcheck disable=SC2086
	"$@" "$BUSBAR" exec -- ib_write_bw -p "$port" -n 100 -s 65536 \
		>"$tmp/server.log" 2>&1 &
	server=$!
	until listens; do
		kill -0 "$server" 2>/dev/null || fail "the server ended"
		sleep 0.01
	done
	"$@" "$BUSBAR" exec -- ib_write_bw -p "$port" -n 100 -s 65536 127.0.0.1 \
		>"$tmp/client.log" 2>&1 || fail "the client ended with status $?"
	wait "$server" || fail "the server ended with status $?"
	expect client "memory.*: by $way"
	expect client '^ 65536 *100 '
}

# shellcheck disable=SC2086
{
	reaches target $alone
	reaches target $users
	export BUSBAR_MEMORY=all
	reaches procmem $alone
}
