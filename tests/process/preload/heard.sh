#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# heard.sh WAYS LIBRARY...: WAYS posts and polls in all ways. Libraries that are preloaded, one over
# the other, hear each request and each completion, and what one hides nobody above it sees.
set -eu
ways=${1:?the program}
below=$2 above=$3
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-heard.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0

# run LIBRARIES [hides]: what each said, without its name, has to be the same.
run() {
	libraries=$1
	shift
	status=0
	LD_PRELOAD=$libraries BUSBAR_DEVICES=soft "$BUSBAR" exec -q "$@" -- "$ways" $hides \
		>"$tmp/said" 2>&1 || status=$?
	if [ $status -ne 0 ] || [ "$(sed 's/^[^:]*: //' "$tmp/said" | sort -u | wc -l)" -ne 1 ] ||
		[ "$(wc -l <"$tmp/said")" -ne "$lines" ]; then
		echo "failed: $libraries $* $hides: status $status"
		cat "$tmp/said"
		failed=1
	fi
}

hides='' lines=1
run ''
hides=hides lines=2
run "$below"
lines=3
run "$above $below"
# The trace beside them.
LD_PRELOAD="$below" BUSBAR_DEVICES=soft "$BUSBAR" exec -q --trace="$tmp/trace" -- "$ways" hides \
	>"$tmp/said" 2>&1 || {
	cat "$tmp/said"
	failed=1
}
exit $failed
