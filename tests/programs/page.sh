#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes docs/programs.md from table.txt. `page.sh --check` fails when the page is
# not what the table says.
set -eu
cd "$(dirname "$0")"
page=../../docs/programs.md

make_page() {
	awk -v tick='`' '
	function verdict(words,    kind, text) {
		kind = words
		sub(/ .*/, "", kind)
		text = words
		sub(/^[a-z]+ ?/, "", text)
		if (kind == "works")
			return "yes"
		if (kind == "long")
			return "yes (soak only)"
		if (kind == "later")
			return "not yet: " tick text tick
		if (kind == "program")
			return "no, refused by the program: " tick text tick
		if (kind == "never")
			return "no: " tick text tick
		print "no such verdict: " words >"/dev/stderr"
		exit 1
	}
	/^#/ || NF == 0 { next }
	/^\[/ {
		name = substr($0, 2, length($0) - 2)
		next
	}
	/^(run|package|shows|note): / {
		key = $1
		value = substr($0, length(key) + 2)
		if (key == "package:")
			package = value
		if (key == "note:")
			note = note "\n" value "\n"
		if (key == "shows:") {
			shows = value
			fresh = 1
		}
		next
	}
	fresh {
		printf "\n## %s\n\n%s. Tried with %s.\n%s\n", name, shows,
			package, note
		print "| options | shows | works |"
		print "|---|---|---|"
		fresh = 0
		note = ""
	}
	{
		if (split($0, column, / \| /) < 2) {
			print "not a row: " $0 >"/dev/stderr"
			exit 1
		}
		options = column[1] == "default" ? "" : tick column[1] tick
		printf "| %s | %s | %s |\n", options, column[3], verdict(column[2])
	}
	' table.txt
}

count() {
	grep -c -E "^[^#|]* \| ($1)( |$)" table.txt || true
}

whole_page() {
	cat <<TEXT
# Other people's programs on the adapter

Verbs programs as Debian 12 ships them, unmodified, started by \`busbar exec\` on
\`soft0\`, or on \`soft1\` where it is about iWARP, two processes on one host where they need a partner. Each line is a run
to the program's normal end: both sides exit with 0 and print complete results.

This page is made from \`tests/programs/table.txt\` by \`tests/programs/page.sh\`;
\`make test-all\` runs every line that says yes once, \`make test\` a quarter of them, and \`tests/programs/soak.sh\` runs
them ten times with one processor taken by something else. To run one section:

    BUSBAR=build/busbar tests/programs/section.sh ib_send_lat

$(count 'works|long') combinations work. $(count program) are refused by the programs themselves, on every
adapter, and $(count never) need what this adapter does not mean to have; those runs must
end with the message that is shown. $(count later) are not there yet, and \`later.sh\` tries
them again.
TEXT
	make_page
}

case ${1:-} in
--check)
	whole_page | diff -u "$page" - || {
		echo "failed: run tests/programs/page.sh"
		exit 1
	}
	;;
'') whole_page >"$page.new" && mv "$page.new" "$page" ;;
*)
	echo "usage: $0 [--check]" >&2
	exit 2
	;;
esac
