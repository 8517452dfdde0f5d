#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# section.sh SECTION [ROW]: runs the rows of one section of table.txt, or those
# whose options contain ROW, each by the section's script. All rows are tried
# even when one fails. `section.sh --list` names the sections.
#
#   BUSBAR    the executable under test (required)
#   N         repetitions of each row (1)
#   JOBS      rows that run at the same time (1)
#   TESTS_PART  runs every Nth row, of which TESTS_SEED, any text, selects which (1: all)
#   VERDICTS  the rows to run (works program never); those that are `later` are
#             expected to work, so that they say when they do
#
# Exit status: 0 all passed, 1 one failed, 77 nothing could be run.
set -u
[ -z "${BUSBAR:-}" ] || BUSBAR=$(realpath "$BUSBAR")
cd "$(dirname "$0")" || exit 1
if [ "${1:-}" = --list ]; then
	sed -n 's/^\[\(.*\)\]$/\1/p' table.txt
	exit
fi

# row TEXT: runs one row and says how it went. The section has exported what it needs.
row() {
	options=${1%% | *}
	rest=${1#* | }
	verdict=${rest%% | *}
	# The message that a refusal must give.
	case $verdict in
	program\ * | never\ *) EXPECT=${verdict#* } ;;
	*) EXPECT= ;;
	esac
	export EXPECT
	words=$options
	[ "$options" != default ] || words=
	out=$(mktemp "$tmp/out.XXXXXX")
	started=$(date +%s%N)
	status=0
	# shellcheck disable=SC2086 # words
	sh ./$run $words >"$out" 2>&1 </dev/null || status=$?
	ms=$((($(date +%s%N) - started) / 1000000))
	case $status in
	0) what=passed result=passed ;;
	77) what="skipped ($(tail -n 1 "$out"))" result=skipped ;;
	*) what=FAILED result=failed ;;
	esac
	echo $result >>"$tmp/results"
	# In one piece: others write at the same time.
	said=$(printf '%6d ms  %s%s: %s' "$ms" "$label" "$options" "$what"
		[ $result != failed ] || { echo && cat "$out"; })
	printf '%s\n' "$said"
}
if [ "${1:-}" = --row ]; then
	row "$2"
	exit 0
fi
: "${BUSBAR:?set it to the busbar executable}"
export BUSBAR
section=${1:?a section of table.txt}
only=${2:-}
verdicts=${VERDICTS:-works program never}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-section.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The script, the package, then "options | verdict | text" of each row that is wanted.
awk -v section="[$section]" -v verdicts=" $verdicts " -v only="$only" '
	/^\[/ { here = $0 == section; next }
	!here || /^#/ || NF == 0 { next }
	/^run: / { run = substr($0, 6); next }
	/^package: / { print run "\n" substr($0, 10); next }
	/^(shows|note): / { next }
	{
		split($0, column, / \| /)
		split(column[2], word, " ")
		if (index(verdicts, " " word[1] " ") && index(column[1], only))
			print
	}' table.txt >"$tmp/rows"
{ read -r run && read -r PACKAGE; } <"$tmp/rows" || {
	echo "there is no section $section in table.txt"
	exit 1
}
export PACKAGE

# The part of the rows that TESTS_PART and TESTS_SEED select, at least one row.
if [ "${TESTS_PART:-1}" -gt 1 ]; then
	tail -n +3 "$tmp/rows" | while IFS= read -r line; do
		number=$(echo "${TESTS_SEED:-} $line" | cksum)
		printf '%d %s\n' $((${number%% *} % TESTS_PART)) "$line"
	done | sort -n -s -k 1,1 | awk '$1 == 0 || NR == 1' | cut -d ' ' -f 2- >"$tmp/part"
	head -n 2 "$tmp/rows" | cat - "$tmp/part" >"$tmp/rows.part"
	mv "$tmp/rows.part" "$tmp/rows"
fi

# The program, for those sections that have one only.
label=
[ "$run" = "${run#* }" ] || label="${run#* } "

export run label tmp
# Rows wait for their programs to start and to measure the clock, so several at once are
# done sooner. Each is one of this script's own children, called with --row.
broken=
tail -n +3 "$tmp/rows" | xargs -d '\n' -r -n 1 -P "${JOBS:-1}" sh ./section.sh --row ||
	broken=1
count() {
	grep -c "^$1$" "$tmp/results"
}
: >>"$tmp/results"
failed=$(count failed)
passed=$(count passed)
echo "$section: $passed passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ] && [ -z "$broken" ] || exit 1
[ "$passed" -gt 0 ] || exit 77
