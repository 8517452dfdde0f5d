#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The library exports what its symbol list says, with the versions said there
# and nothing else; where the system has a librdmacm.so.1 of the same age, that
# exports the same but for our own node. symbols.sh LIBRARY LIST
set -u
exports() {
	nm -D --defined-only "$1" |
		sed -n 's/.* T \([a-z_0-9]*\)@@*\(RDMACM_[0-9.]*\|BUSBAR_1\)$/\1 \2/p' | sort
}
ours=$(exports "$1")
listed=$(grep -v '^#' "$2" | sort)
if [ "$ours" != "$listed" ]; then
	echo "the library and $2 differ"
	exit 1
fi
others=$(nm -D --defined-only "$1" | grep -v ' A ' | grep -c -v -e '@RDMACM_' -e '@BUSBAR_1')
if [ "$others" != 0 ]; then
	echo "$others symbols without a version are exported"
	exit 1
fi
for system in /usr/lib/*/librdmacm.so.1 /usr/lib64/librdmacm.so.1; do
	[ -e "$system" ] || continue
	exports "$system" | grep -q RDMACM_1.4 && continue
	if [ "$(exports "$system")" != "$(echo "$ours" | grep -v BUSBAR_1)" ]; then
		echo "$system exports something else"
		exit 1
	fi
done
exit 0
