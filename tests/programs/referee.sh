#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# referee.sh OPERATIONS COMMAND...: the adapter's programs talk by RoCE v2 over the loopback
# interface of a namespace of their own; tshark captures and says whether it takes any of
# their packets for malformed, and roce_packets.py whether an ICRC, a pad or a length is
# wrong (tshark does not check them). Each operation that the file OPERATIONS names, one per
# line, must have been seen.
# Exit status: 0 all is right, 1 not, 77 tshark is not here or may not capture.
set -eu

if [ -z "${REFEREE_INSIDE:-}" ]; then
	for program in unshare dumpcap tshark; do
		command -v $program >/dev/null || {
			echo "skipped: $program is not installed (util-linux, tshark)"
			exit 77
		}
	done
	namespaces=-n
	[ "$(id -u)" -eq 0 ] || namespaces=-Urn
	unshare $namespaces ip link set lo up 2>/dev/null || {
		echo "skipped: this user may not make a network namespace"
		exit 77
	}
	IN_NETWORK=1 REFEREE_INSIDE=yes exec unshare $namespaces "$0" "$@"
fi

here=$(cd "$(dirname "$0")" && pwd)
operations=$1
shift
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-referee.XXXXXX")
capture_pid=
cleanup() {
	status=$?
	trap - EXIT INT TERM
	[ -z "$capture_pid" ] || kill "$capture_pid" 2>/dev/null || true
	rm -rf "$tmp"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "failed: $*"
	exit 1
}

# mark TEXT: sends a datagram with TEXT until it is in the capture; then all packets
# before it are there, too.
mark() {
	tries=0
	until grep -q -s -a -F "$1" "$tmp/packets"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "the capture does not show a datagram"
		kill -0 $capture_pid 2>/dev/null || {
			echo "skipped: dumpcap: $(tail -n 1 "$tmp/dumpcap.log")"
			exit 77
		}
		python3 -c "import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'$1', ('127.0.0.1', 9))"
	done
}

# Trains of packets are to be seen as the single packets of a wire.
ip link set lo gso_max_segs 1 up
dumpcap -q -P -B 64 -i lo -f udp -w "$tmp/packets" >"$tmp/dumpcap.log" 2>&1 &
capture_pid=$!
mark 'all after this'
for program; do
	# shellcheck disable=SC2086 # a program and its cases
	$program >"$tmp/program.log" 2>&1 || {
		cat "$tmp/program.log"
		fail "$program"
	}
done
mark 'all before this'
kill -INT $capture_pid
wait $capture_pid || true
capture_pid=
! grep -q 'dropped.*: [0-9]*/[1-9]' "$tmp/dumpcap.log" || {
	cat "$tmp/dumpcap.log"
	fail "the capture is not complete"
}

python3 "$here/roce_packets.py" "$tmp/packets" "$operations" || fail "wrong packets"
# What the messages carry means nothing, whatever tshark sees in it. A datagram without
# payload is right (its UDP length is 32, 36 with immediate); tshark 4.0 misses its payload.
tshark -r "$tmp/packets" --disable-protocol rpcordma -Y 'udp.dstport == 4791 and
	(_ws.malformed or _ws.expert.severity == error or not infiniband) and
	not (infiniband.deth and udp.length <= 36)' \
	>"$tmp/malformed" 2>/dev/null
[ ! -s "$tmp/malformed" ] || {
	head -n 20 "$tmp/malformed"
	fail "malformed packets, as tshark says: $(wc -l <"$tmp/malformed")"
}
