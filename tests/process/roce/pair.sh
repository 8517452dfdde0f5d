#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# pair.sh MTU IP-VERSION PROGRAM...: programs of the adapter's tests with their two processes
# on two hosts, joined by interfaces of this MTU. Arguments of a program may follow it,
# separated by commas: adapter-data,inline_data. Needs root.
. "$(dirname "$0")/network.sh"
own_network "$@"
mtu=$1 version=$2
shift 2
two_hosts "$mtu" "$version"
export ADAPTER_TRANSPORT=roce-hosts ADAPTER_NETNS="/proc/$other/ns/net"
export BUSBAR_TRANSPORTS=roce BUSBAR_LOG="${BUSBAR_LOG:-error}"

programs=0 failed=
for words; do
	program=${words%%,*}
	arguments=$(echo "${words#"$program"}" | tr , ' ')
	programs=$((programs + 1))
	echo "--- ${program##*/}"
	# shellcheck disable=SC2086
	"$program" $arguments >"$tmp/said" 2>&1 || failed="$failed ${program##*/}"
	cat "$tmp/said" >>"$tmp/all"
	cat "$tmp/said"
done
echo "$(grep -c '^ok ' "$tmp/all") cases of $programs programs between two hosts"
[ -z "$failed" ] || fail "$failed"
