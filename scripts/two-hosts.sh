# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Two hosts in one: network namespaces joined by a pair of Ethernet interfaces, for
# tests and for `make run NETWORK=1`. Sourced. Their names have this process' number, so
# several runs do not meet. Needs root and `ip` (iproute2).
#
#   two_hosts MTU  makes them, or returns 1 with a line that says what is missing
#   host_a, host_b the names of the namespaces
#   on_a COMMAND..., on_b COMMAND...  run there; in the background give on_a_exec, which
#                  becomes the command, so that $! is its process
#   remove_hosts   removes both; harmless where there are none
#
# A is 10.77.0.1 and fd77::1, B is 10.77.0.2 and fd77::2; both interfaces are `net0`.

host_a=busbar-$$-a
host_b=busbar-$$-b

two_hosts() {
	if ! command -v ip >/dev/null; then
		echo "the program ip is not installed (package iproute2)"
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		echo "network namespaces need root"
		return 1
	fi
	ip netns add "$host_a" 2>/dev/null && ip netns add "$host_b" 2>/dev/null &&
		ip -n "$host_a" link add net0 mtu "$1" type veth \
			peer name net0 mtu "$1" netns "$host_b" 2>/dev/null || {
		remove_hosts
		echo "this host makes no network namespaces with interfaces (ip netns, veth)"
		return 1
	}
	address_host "$host_a" 1
	address_host "$host_b" 2
	# The kernel tells a moment later that there is a carrier.
	tries=0
	until ip -n "$host_a" link show net0 | grep -q 'state UP' &&
		ip -n "$host_b" link show net0 | grep -q 'state UP'; do
		tries=$((tries + 1))
		if [ "$tries" -ge 500 ]; then
			remove_hosts
			echo "the interfaces between the namespaces do not come up"
			return 1
		fi
		sleep 0.01
	done
}

# address_host NAMESPACE NUMBER. `nodad`: IPv6 addresses are usable at once.
address_host() {
	ip -n "$1" link set lo up
	ip -n "$1" addr add "10.77.0.$2/24" dev net0
	ip -n "$1" addr add "fd77::$2/64" dev net0 nodad 2>/dev/null || true
	ip -n "$1" link set net0 up
}

# Without IPv6 in the kernel the tests do without, too.
have_ipv6() {
	ip -n "$host_a" -6 addr show dev net0 2>/dev/null | grep -q fd77
}

on_a() {
	ip netns exec "$host_a" "$@"
}

on_b() {
	ip netns exec "$host_b" "$@"
}

on_a_exec() {
	exec ip netns exec "$host_a" "$@"
}

on_b_exec() {
	exec ip netns exec "$host_b" "$@"
}

remove_hosts() {
	ip netns del "$host_a" 2>/dev/null || true
	ip netns del "$host_b" 2>/dev/null || true
}
