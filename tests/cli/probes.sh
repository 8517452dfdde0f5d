#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# probes.sh LIBRARY PAGE: the notes of the probes that the manual page documents
# are in the library, with as many arguments, and no others.
set -u
command -v readelf >/dev/null || { echo "skipped: no readelf"; exit 77; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-probes.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# name and number of arguments, once each
readelf -n "$1" | awk '
	/Provider:/ { ours = $2 == "busbar" }
	/Name:/ { name = $2 }
	ours && /Arguments:/ { print name, NF - 1 }' | sort -u >"$tmp/library"
awk '
	/^#/ { inside = $2 == "PROBES" }
	inside && /^\*/ {
		line = $0
		while (match(line, /\*[a-z_]+\*\([^)]*\)/)) {
			probe = substr(line, RSTART + 1, RLENGTH - 1)
			line = substr(line, RSTART + RLENGTH)
			name = substr(probe, 1, index(probe, "*") - 1)
			print name, split(probe, arguments, ",")
		}
	}' "$2" | sort -u >"$tmp/page"
for name in post_send post_recv transmit receive complete retry rnr qp_state \
	link_up link_down cq_event mr_reg mr_dereg; do
	grep -q "^$name " "$tmp/library" || { echo "failed: no probe $name"; exit 1; }
done
if ! diff -u "$tmp/page" "$tmp/library"; then
	echo "failed: the manual page (-) and the library (+) differ"
	exit 1
fi
echo "$(wc -l <"$tmp/library") probes"
