#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# exports_every_symbol_of_the_system_library_at_its_version: usage
# symbols.sh OUR_LIBRARY SONAME. A node that ours does not have at all is a newer
# interface, and only told; but a private node stops every BIND_NOW program.
set -eu
. "$(dirname "$0")/lib.sh"

command -v nm >/dev/null || skip "nm is not installed"
ours=$1
theirs=$(system_library "$2") || skip "the system has no $2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

exported "$ours" >"$work/ours"
exported "$theirs" >"$work/theirs"
nodes "$ours" >"$work/our-nodes"
nodes "$theirs" >"$work/their-nodes"
[ -s "$work/theirs" ] || { echo "no versioned symbols in $theirs"; exit 1; }

for node in $(comm -13 "$work/our-nodes" "$work/their-nodes"); do
	case $node in
	*PRIVATE*)
		echo "$theirs has the node $node: add it to symbols.list"
		failed=1 ;;
	*)
		echo "note: $theirs has the newer node $node" ;;
	esac
done

# Other private nodes than the system's one may have their default elsewhere.
awk -v nodes="$work/our-nodes" -v ours="$work/ours" '
	BEGIN {
		while ((getline line <nodes) > 0)
			have_node[line] = 1
		while ((getline line <ours) > 0)
			have[line] = 1
	}
	{
		node = name = $0
		sub(/.*@/, "", node)
		sub(/@.*/, "", name)
		if (node in have_node && !($0 in have) && !(node ~ /PRIVATE/ && (name "@" node) in have))
			print "missing: " $0
	}' "$work/theirs" >"$work/missing"
if [ -s "$work/missing" ]; then
	cat "$work/missing"
	failed=1
fi

# A function there is a function here, and data is data: the loader would not say.
kinds()
{
	nm -D --defined-only "$1" | awk '$2 ~ /^[TtWiBbDdRrVu]$/ {
		sub(/@.*/, "", $3)
		print $3, $2 ~ /^[BbDdRrV]$/ ? "data" : "function"
	}' | sort -u
}
kinds "$ours" >"$work/our-kinds"
kinds "$theirs" >"$work/their-kinds"
awk 'NR == FNR { ours[$1] = $2; next }
	$1 in ours && ours[$1] != $2 { print $1 " is " $2 " there and " ours[$1] " here" }' \
	"$work/our-kinds" "$work/their-kinds" >"$work/other-kinds"
if [ -s "$work/other-kinds" ]; then
	cat "$work/other-kinds"
	failed=1
fi

# What is ours alone carries our node, or one that the system's has not (yet).
comm -23 "$work/ours" "$work/theirs" | awk -v nodes="$work/their-nodes" -v file="$theirs" '
	BEGIN {
		while ((getline line <nodes) > 0)
			theirs[line] = 1
	}
	{
		node = $0
		sub(/.*@/, "", node)
		if (node != "BUSBAR_1" && node !~ /PRIVATE/ && node in theirs)
			print "not in " file ": " $0
	}' >"$work/extra"
if [ -s "$work/extra" ]; then
	cat "$work/extra"
	failed=1
fi

[ "$failed" -eq 0 ] &&
	echo "$(wc -l <"$work/theirs") symbols of $theirs are all there"
exit "$failed"
