#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# rules.sh SOURCE: what CONTRIBUTING.md promises about the tree and a machine can
# check: licence lines, who may include whom, size of files, pages for plug-ins.
set -u
cd "${1:?the source folder}" || exit 1
failed=0

complain() {
	echo "failed: $*"
	failed=1
}

sources() {
	find src lib tests examples man scripts .ci Makefile meson.build \
		-type f ! -name '*.md' ! -name '.*' 2>/dev/null
}

# Text data for tests and lists that are read line by line have no comments.
for file in $(sources); do
	case $file in
	*.csv | *.json | *.human | *.log | *.dat | *.scd | *.pyc) continue ;;
	esac
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' ||
		complain "$file has no SPDX line in its first lines"
done

# room: the rooms that it may include besides itself
while read -r room below; do
	[ -d "src/$room" ] || continue
	allowed=" $room $below "
	for file in $(find "src/$room" -name '*.[ch]'); do
		for other in $(sed -n 's|^#include "\([a-z]*\)/.*|\1|p' "$file" | sort -u); do
			case $allowed in
			*" $other "*) ;;
			*) complain "$file includes the room '$other', allowed:$allowed" ;;
			esac
		done
	done
done <<'ROOMS'
util
wire util
hca wire util
transport hca wire util
verbs transport hca wire util
rdmacm verbs transport hca wire util
gateway util
bench util
cli bench gateway util
ROOMS

for file in $(find src -name '*.[ch]'); do
	lines=$(wc -l <"$file")
	[ "$lines" -le 1000 ] || complain "$file has $lines lines, at most 1000"
done

for node in src/gateway/node/*/; do
	[ -d "$node" ] || continue
	page=man/busbar-node-$(basename "$node").7.scd
	[ -f "$page" ] || complain "$node has no manual page $page"
done
for page in man/*.scd; do
	name=$(basename "$page" .scd)
	grep -q "'$name'" man/meson.build ||
		complain "$page is not in man/meson.build"
done
exit "$failed"
