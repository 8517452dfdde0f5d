# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# For tests of transport roce in networks of their own: one host, or two that an Ethernet
# cable connects. Sourced; the first call is own_network "$@".
#
# Exit status: 0 passed, 1 failed, 77 no right to make a network, or a program is missing.
set -eu

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "failed: $*"
	exit 1
}

other= # a process in the other host's network
tmp=
clean() {
	status=$?
	trap - EXIT
	[ -z "$other" ] || kill "$other"
	rm -rf "$tmp"
	exit "$status"
}

# own_network ARGUMENTS: the script again, in a network namespace that ends with it. There
# it has a folder, $tmp, which it removes in the end.
own_network() {
	if [ "${IN_NETWORK:-}" ]; then
		tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-roce.XXXXXX")
		trap clean EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
		return
	fi
	command -v ip >/dev/null || skip "no ip (iproute2)"
	unshare -n true 2>/dev/null || skip "no right to make a network namespace"
	IN_NETWORK=1 exec unshare -n "$0" "$@"
}

# address IP-VERSION HOST: of host 1 or 2.
address() {
	if [ "$1" = 4 ]; then
		echo "10.9.0.$2"
	else
		echo "fd09::$2"
	fi
}

# configure HOST MTU IP-VERSION COMMAND...: the interface `wire` and the loopback interface
# of a network, by COMMAND. IP-VERSION: 4, 6 or 46, both.
configure() {
	host=$1 mtu=$2 version=$3
	shift 3
	"$@" ip link set lo mtu "$mtu" up
	"$@" ip addr flush dev lo
	"$@" ip link set wire addrgenmode none mtu "$mtu" up
	case $version in *4*)
		"$@" ip addr add 127.0.0.1/8 dev lo
		"$@" ip addr add "$(address 4 "$host")/24" dev wire ;;
	esac
	case $version in *6*)
		"$@" ip addr add ::1/128 dev lo
		"$@" ip addr add "$(address 6 "$host")/64" dev wire nodad ;;
	esac
}

in_this() {
	"$@"
}

in_other() {
	nsenter -t "$other" -n "$@"
}

# two_hosts MTU IP-VERSION
two_hosts() {
	command -v nsenter >/dev/null || skip "no nsenter"
	unshare -n sleep 300 &
	other=$!
	tries=0
	while [ "$(readlink "/proc/$other/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || fail "no second network"
		sleep 0.02
	done
	ip link add wire type veth peer name wire netns "$other" || skip "no veth interfaces"
	configure 1 "$1" "$2" in_this
	configure 2 "$1" "$2" in_other
}

# one_host MTU IP-VERSION: its interface leads back to itself. IP-VERSION `lo`: it has only the
# loopback interface.
one_host() {
	if [ "$2" = lo ]; then
		ip link set lo up
		return
	fi
	ip link add wire type veth peer name end || skip "no veth interfaces"
	configure 1 "$1" "$2" in_this
	# Without an address no group is joined there, which would bring second copies.
	ip link set end addrgenmode none mtu "$1" up
}

# fragments: how many this network has made.
fragments() {
	awk '/^Ip:/ && !column { for (i = 1; i <= NF; i++) if ($i == "FragCreates") column = i; next }
		/^Ip:/ { made += $column }
		$1 == "Ip6FragCreates" { made += $2 }
		END { print made + 0 }' /proc/net/snmp /proc/net/snmp6
}

# expect_fragments some|none
expect_fragments() {
	made=$(fragments)
	echo "$made fragments"
	case $1 in
	some) [ "$made" -gt 0 ] || fail "nothing was cut" ;;
	none) [ "$made" -eq 0 ] || fail "packets were cut" ;;
	esac
}
