#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# groups.sh IP-VERSION TRANSPORTS BUSBAR: mckey of librdmacm on two hosts: the second one
# sends, by IPv6 the first one; and what the receiver's kernel says about its memberships.
. "$(dirname "$0")/network.sh"
own_network "$@"
version=$1 busbar=$(realpath "$3")
export BUSBAR_TRANSPORTS="$2" BUSBAR_LOG=warn
command -v mckey >/dev/null || skip "no mckey (rdmacm-utils)"
two_hosts 1500 "$version"
if [ "$version" = 4 ]; then
	group=239.201.1.1 file=igmp shown=0101C9EF
else
	group=ff0e::b05:b1 file=igmp6 shown=ff0e00000000000000000000'0b0500b1'
fi

# is_member WHERE
is_member() {
	"$1" grep -qi "$shown" "/proc/net/$file"
}

# run RECEIVER RECEIVER-ADDRESS SENDER SENDER-ADDRESS
run() {
	"$1" timeout 30 "$busbar" exec -- mckey -m $group -b "$2" >"$tmp/receiver" 2>&1 &
	pid=$!
	tries=0
	until is_member "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 500 ] && kill -0 $pid 2>/dev/null || break
		sleep 0.02
	done
	is_member "$1" || fail "$2 is no member"
	status=0
	"$3" timeout 30 "$busbar" exec -- mckey -m $group -b "$4" -s >"$tmp/sender" 2>&1 ||
		status=$?
	wait $pid || status=$?
	if [ $status != 0 ]; then
		cat "$tmp/receiver" "$tmp/sender"
		fail "from $4 to $2: status $status"
	fi
	! is_member "$1" || fail "$2 is still a member"
}

# mckey waits three seconds before it sends.
if [ "$version" = 4 ]; then
	run in_this "$(address 4 1)" in_other "$(address 4 2)"
else
	run in_other "$(address 6 2)" in_this "$(address 6 1)"
fi
