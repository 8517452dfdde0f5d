#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar doctor` between two hosts (network namespaces) finds nothing where nothing is
# wrong, and names what is: a port that is dropped, an MTU that is smaller elsewhere, nobody
# who answers, a port that is taken. Needs root for the namespaces; what one host tells is
# tried without.
#
#   BUSBAR  the executable under test (required)
set -eu
here=$(realpath "$(dirname "$0")")
BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
. "$here/../../scripts/two-hosts.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-doctor.XXXXXX")
server=
holder=

cleanup() {
	status=$?
	trap '' EXIT INT TERM
	for pid in $server $holder; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	remove_hosts
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || tail -n 50 "$tmp"/*.log
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

# doctor STATUS OPTIONS: on host A.
doctor() {
	want=$1
	shift
	# Who gets no processor for a quarter of a second loses a probe.
	for _ in 1 2 3 4 5 6; do
		status=0
		on_a "$BUSBAR" doctor "$@" >"$tmp/doctor.log" 2>&1 || status=$?
		grep -q 'short probes, or their answers, were lost' "$tmp/doctor.log" || break
	done
	[ "$status" -eq "$want" ] || fail "doctor $* ends with status $status, not $want"
}

# says PATTERN: a finding; lacks PATTERN: there is none.
says() {
	grep -q -e "$1" "$tmp/doctor.log" || fail "it does not say: $1"
}

lacks() {
	! grep -q -e "$1" "$tmp/doctor.log" || fail "it says, and should not: $1"
}

# serve [OPTIONS]: on host B, until it listens.
serve() {
	: >"$tmp/serve.log"
	(on_b_exec "$BUSBAR" doctor --serve "$@") >"$tmp/serve.log" 2>&1 &
	server=$!
	wait_line serve "$server" 'answering probes'
}

# wait_line NAME PID PATTERN
wait_line() {
	tries=0
	until grep -q -e "$3" "$tmp/$1.log"; do
		kill -0 "$2" 2>/dev/null || fail "$1 ended"
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "$1 does not say: $3"
		sleep 0.01
	done
}

stop_serving() {
	kill -INT "$server"
	wait "$server" || fail "doctor --serve ends with status $?"
	server=
}

# Usage.
status=0
"$BUSBAR" doctor --port 0 2>/dev/null || status=$?
[ "$status" -eq 2 ] || fail "port 0 is accepted"
"$BUSBAR" doctor --help | grep -q -- --serve || fail "no help"

two_hosts 4500 >"$tmp/why" || {
	echo "skipped: $(cat "$tmp/why")"
	exit 77
}

echo "nothing is wrong"
serve
doctor 0 10.77.0.2
says 'UDP port 4791 is free'
says 'address 10.77.0.1 on net0, MTU 4500, GID ::ffff:10.77.0.1'
says '10.77.0.2 is reached from 10.77.0.1 on net0'
says 'path MTU of RDMA, 4096, fits into the MTU 4500 of net0'
says 'none of 100 short probes was lost'
says 'all sizes pass in both directions'
lacks BAD
grep -q 'probes come from 10.77.0.1' "$tmp/serve.log" || fail "the server does not name who asks"
if have_ipv6; then
	doctor 0 fd77::2
	says 'all sizes pass in both directions'
fi

echo "MTU 1500 at both"
for host in "$host_a" "$host_b"; do
	ip -n "$host" link set net0 mtu 1500
done
doctor 0 10.77.0.2
says 'at most 1024 fits into the MTU 1500 of net0'
says "'-m 1024'"
says 'up to path MTU 1024 pass in both directions'

echo "a smaller MTU there"
ip -n "$host_a" link set net0 mtu 4500
doctor 1 10.77.0.2
says '^BAD .*path MTU 2048 .* vanish on the way there'
says "-> .*same MTU at both hosts.*'-m 1024'"
says '^BAD .*interface takes path MTU 1024 at most, and this one.s 4096'
ip -n "$host_b" link set net0 mtu 4500

# Without a packet filter: a rule of the routes that comes before those of local addresses.
echo "the port is dropped"
if ip -n "$host_b" rule add pref 100 lookup local 2>/dev/null &&
	ip -n "$host_b" rule del pref 0 2>/dev/null &&
	ip -n "$host_b" rule add pref 10 ipproto udp dport 4791 blackhole 2>/dev/null; then
	doctor 1 10.77.0.2
	says '^BAD .*firewall drops UDP port 4791: 10.77.0.2 answers on port 14791'
	says '-> open it in both directions'
	ip -n "$host_b" rule del pref 10
else
	echo "not here: rules of routes by port"
fi

echo "nobody answers"
stop_serving
doctor 1 10.77.0.2
says '^BAD .*10.77.0.2 is there, but nobody answers on its UDP port 4791'
doctor 1 10.77.0.9
says '^BAD .*10.77.0.9 does not answer on the link\|^BAD .*nothing comes back from 10.77.0.9'
doctor 1 192.0.2.1
says '^BAD .*no way leads to 192.0.2.1'
doctor 1 no-such-host.invalid
says '^BAD .*the address of no-such-host.invalid is not found'

echo "another port"
serve --port 5000
doctor 0 --port 5000 10.77.0.2
says 'all sizes pass in both directions'
stop_serving

echo "a server that ends by itself"
doctor 1 --serve --time 1 --port 5001
says '^BAD .*no probe came'

echo "iWARP"
doctor 1 --iwarp 6000 10.77.0.2
says '^BAD .*10.77.0.2 is there, but nobody listens on its TCP port 6000'
lacks UDP
serve_stream() {
	: >"$tmp/serve.log"
	(on_b_exec "$BUSBAR" doctor --serve --iwarp 6000) >"$tmp/serve.log" 2>&1 &
	server=$!
	wait_line serve "$server" 'taking calls on TCP port 6000'
}
serve_stream
doctor 0 --iwarp 6000 10.77.0.2
says 'address 10.77.0.1 on net0'
says 'TCP port 6000 of 10.77.0.2 takes calls'
lacks UDP
wait_line serve "$server" 'a call comes from 10.77.0.1'
if have_ipv6; then
	doctor 0 --iwarp 6000 fd77::2
	wait_line serve "$server" 'a call comes from fd77::1'
fi
if ip -n "$host_b" rule add pref 10 ipproto tcp dport 6000 blackhole 2>/dev/null; then
	doctor 1 --iwarp 6000 10.77.0.2
	says '^BAD .*nothing comes back from TCP port 6000 of 10.77.0.2'
	says "tcp dport 6000 accept"
	ip -n "$host_b" rule del pref 10
fi
stop_serving
doctor 2 --iwarp 6000 --port 5000
doctor 1 --serve --iwarp 6000 --time 1
says '^BAD .*no call came'

echo "a port that is taken"
: >"$tmp/holder.log" # here, so that it is there to be looked at
(on_a_exec "$BUSBAR" doctor --serve) >"$tmp/holder.log" 2>&1 &
holder=$!
wait_line holder "$holder" 'answering probes'
doctor 0
says "^note UDP port 4791 is used by 'busbar doctor --serve' here"
doctor 1 --serve
says '^BAD .*runs here already'
kill -INT "$holder"
status=0
wait "$holder" || status=$?
holder=
[ "$status" -eq 1 ] || fail "a server that nobody asked ends with status $status"

if command -v python3 >/dev/null; then
	: >"$tmp/holder.log"
	(on_a_exec python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4791))
print("bound", flush=True)
time.sleep(60)') >"$tmp/holder.log" 2>&1 &
	holder=$!
	wait_line holder "$holder" bound
	doctor 1
	says '^BAD .*UDP port 4791 is taken'
	kill -KILL "$holder"
	wait "$holder" || true
	holder=
fi

# Its programs may not be loaded with the sanitizers' libraries.
if command -v rping >/dev/null && [ -z "${SANITIZED:-}" ]; then
	(on_a_exec "$BUSBAR" exec -- rping -s -a 10.77.0.1) >"$tmp/holder.log" 2>&1 &
	holder=$!
	tries=0
	until on_a grep -q '@busbar\.roce\.service\.' /proc/net/unix; do
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "rping does not listen"
		sleep 0.01
	done
	doctor 0
	says 'UDP port 4791 is shared by busbar programs of this user'
	doctor 1 --serve
	says '^BAD .*used by busbar programs of this user'
fi
