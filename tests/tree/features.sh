#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# features.sh SOURCE: every node-type, hook and format of the build has a manual page,
# stands in an example, and has a row in docs/features/; the page of a node-type names the
# figures that it shows.
set -u
: "${BUSBAR:?set it to the busbar executable}"
cd "${1:?the source folder}" || exit 1
failed=0 count=0

fail() {
	echo "failed: $*"
	failed=1
}

# names KEY: of that list in the capabilities, which have one name on each line.
names() {
	"$BUSBAR" node -C | awk -v key="\"$1\": [" '
		index($0, key) { inside = 1; next }
		/\]/ { inside = 0 }
		inside { gsub(/[ ",]/, ""); print }'
}

# is_line WORD LINES: one of the lines is the word.
newline='
'
is_line() {
	case $newline$2$newline in
	*"$newline$1$newline"*) ;;
	*) return 1 ;;
	esac
}

# The words of all first columns, and the types in examples, one on each line.
rows=$(awk -F'|' '/^\|/ { print $2 }' docs/features/*.md | tr -c 'a-zA-Z0-9_.\n-' '\n')
types=$(grep -rhoE 'type *[=:] *"[^"]+"' examples | cut -d '"' -f 2 | sort -u)

for list in nodes hooks formats; do
	kind=${list%s}
	for name in $(names "$list"); do
		count=$((count + 1))
		[ -f "man/busbar-$kind-$name.7.scd" ] || fail "$kind $name has no manual page"
		is_line "$name" "$rows" || fail "$kind $name has no row in docs/features"
		[ "$kind" = node ] || continue
		is_line "$name" "$types" || fail "$kind $name is in no example"
	done
done
# Figures of node-types: each is one row of a table of struct node_figure.
figures=0
for source in $(grep -rl 'struct node_figure .*\[' src/gateway/node); do
	type=$(basename "$(dirname "$source")")
	for figure in $(awk '/^static const struct node_figure / { inside = 1; next } /^};/ { inside = 0 }
		inside && match($0, /= { "[a-z_]+"/) { print substr($0, RSTART + 5, RLENGTH - 6) }' "$source"); do
		figures=$((figures + 1))
		grep -qF "*$figure*" "man/busbar-node-$type.7.scd" ||
			fail "the page of node-type $type does not name its figure $figure"
	done
done
[ "$figures" -ge 25 ] || fail "only $figures figures found"
[ "$count" -ge 50 ] || fail "only $count plug-ins found"
echo "$count plug-ins looked at"
exit "$failed"
