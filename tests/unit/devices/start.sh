#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# start.sh EXAMPLE: each of the nodes of the example alone is taken by `busbar check`; a gateway
# with it names what is missing in one line and ends with status 1.
set -u
: "${BUSBAR:?set it to the busbar executable}"
example=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail() {
	echo "failed: $*"
	cat log
	exit 1
}

looked=0
# name, what the message has to name
while read -r name missing; do
	sed "s/^paths = .*/paths = ( { in = \"$name\"; out = \"rec\"; } );/" "$example" >one.conf
	"$BUSBAR" check one.conf >out 2>log || fail "$name: it is refused"
	timeout 20 "$BUSBAR" run -t 5 one.conf >out 2>log
	status=$?
	[ $status = 1 ] || fail "$name: exit status $status"
	grep -q "error .*node $name: .* needs .*$missing.*, which busbar cannot use" log ||
		fail "$name: the log does not name $missing"
	[ "$(grep -c error log)" = 1 ] || fail "$name: more than one line"
	looked=$((looked + 1))
done <<'ROWS'
terminals libethercat
card libvillas-fpga
model libOpalAsyncApi
domain RTAPI
board libuldaq
ROWS
[ $looked = 5 ] || fail "only $looked nodes looked at"
for needs in "IgH's master" libuldaq RTAPI libOpalAsyncApi libdss_capi.so; do
	"$BUSBAR" node --help 2>&1 | grep -q "needs .*$needs" || fail "the list of types does not say that $needs is needed"
done
exit 0
