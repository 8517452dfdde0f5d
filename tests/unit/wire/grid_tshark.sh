#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# grid_tshark.sh PROGRAM FIELD...: tshark as referee of the random messages that PROGRAM writes
# (grid_dump.h): each field of each frame is what our decoder says, and no frame is malformed.
#
#   COUNT    frames (2000)
#   SEED     (1)
set -eu
program=$1
shift
command -v tshark >/dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
seed=${SEED:-1}
"$program" "$dir/pcap" "$dir/want" "${COUNT:-2000}" "$seed"
args=
for field; do args="$args -e $field"; done
# The last fields are what must be empty.
# shellcheck disable=SC2086
tshark -r "$dir/pcap" -T fields $args -e _ws.malformed -e _ws.expert.message \
	>"$dir/all" 2>"$dir/errors" || {
	cat "$dir/errors"
	exit 1
}
awk -F '\t' -v OFS='\t' -v n=$# '
	$(n + 1) != "" || $(n + 2) != "" { print "frame " NR ": " $(n + 1) " " $(n + 2) | "cat >&2"; bad = 1 }
	{ NF = n; print }
	END { exit bad }' "$dir/all" >"$dir/got" || {
	echo "seed $seed: frames are malformed"
	exit 1
}
if ! diff "$dir/want" "$dir/got" >"$dir/diff"; then
	echo "seed $seed: tshark (>) reads other values than our decoder (<)"
	head -20 "$dir/diff"
	exit 1
fi
