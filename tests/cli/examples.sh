#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# examples.sh SOURCE: every configuration that is shown to users is one that
# `busbar check` takes: the files in examples/ and what README.md and the manual
# pages print between ``` lines.
set -u
: "${BUSBAR:?set it to the busbar executable}"
cd "${1:?the source folder}" || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-examples.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0 count=0
# What examples/demo/a.conf has no default for.
export FILE=recording.csv

if ! "$BUSBAR" --help | grep -q '^  check '; then
	echo "skipped: this build has no 'busbar check'"
	exit 77
fi

# Plug-ins whose libraries were not there when this was built.
left_out=$("$BUSBAR" version | sed -n 's/^ *left out *//p' | tr ',' '\n' |
	sed -n 's/^ *\(hook\|node-type\|format\) //p')

check() {
	for name in $left_out; do
		grep -q "type = \"$name\"" "$1" && return
	done
	count=$((count + 1))
	if ! output=$("$BUSBAR" check -q "$1" 2>&1); then
		echo "failed: $2:"
		echo "$output"
		failed=1
	fi
}

for file in $(find examples -name '*.conf' -o -name '*.json'); do
	check "$file" "$file"
done
for page in README.md man/*.scd; do
	# Blocks that define nodes and paths; others show parts or commands.
	awk -v to="$tmp/$(basename "$page")" '
		/^```/ {
			inside = !inside
			if (!inside && text ~ /(^|\n)nodes = / && text ~ /\npaths = /)
				printf "%s", text >(to "." ++n ".conf")
			text = ""
			next
		}
		inside { text = text $0 "\n" }' "$page"
done
for file in "$tmp"/*.conf; do
	[ -f "$file" ] && check "$file" "$(basename "$file" .conf)"
done
[ "$count" -ge 5 ] || { echo "failed: only $count examples found"; failed=1; }
echo "$count examples checked"
exit "$failed"
