#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# conformance.sh [--check FILE] PROGRAM...: the table of rules and of the cases
# that show them, from what the adapter's test programs say of themselves. With
# --check: fails when FILE holds another one; `ninja conformance-table` in the
# build folder writes it.
set -eu

table() {
	cat <<'EOF'
# Conformance

Which case of the adapter's suite shows which rule of the InfiniBand specification
(IBTA, volume 1), of its RoCE annexes, or of a manual page. Every case runs with both
sides in one process and in two, unless it is about one of them only, and on every
transport that there is. A rule without a source is one that programs rely on all the
same.

Made from the test programs by `ninja -C build conformance-table`.
EOF
	for program; do
		title=$(basename "$program")
		printf '\n## %s\n\n| rule | case |\n|---|---|\n' "${title#adapter-}"
		"$program" --rules | LC_ALL=C sort -s -t '	' -k 1,1 -V |
			while IFS='	' read -r rule name; do
				printf '| %s | %s |\n' "$rule" \
					"$(echo "$name" | tr _ ' ')"
			done
	done
}

if [ "${1:-}" != --check ]; then
	table "$@"
	exit
fi
file=$2
shift 2
table "$@" | diff -u "$file" - || {
	echo "failed: $file is not current: ninja -C build conformance-table"
	exit 1
}
