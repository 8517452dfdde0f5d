#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# test-pyverbs.sh BUSBAR [DEVICE] [TESTS...]: rdma-core's own tests of its Python
# bindings, unmodified, on busbar's adapter. Debian ships them with python3-pyverbs;
# PYVERBS_TESTS names another copy (the folder tests/ of a source tree of the version
# that is installed). Without TESTS (tests.test_mr, tests.test_cq.CQTest ...) all run.
#
# Prints how many of each file were good, bad and skipped, and why they were skipped.
# Exit status: 0, 1 when one was bad, 77 when there is nothing to run.
set -eu

busbar=$(realpath "${1:?the busbar executable}")
device=${2:-soft0}
[ $# -lt 2 ] || shift
shift
tests=${PYVERBS_TESTS:-/usr/share/doc/rdma-core/tests}
# The bindings belong to the system's own Python, whatever else is in front.
python=${PYTHON:-/usr/bin/python3}

if ! "$python" -c 'import pyverbs' 2>/dev/null; then
	echo "skipped: pyverbs is not installed (python3-pyverbs)"
	exit 77
fi
if [ ! -e "$tests/run_tests.py" ]; then
	echo "skipped: no tests in $tests (set PYVERBS_TESTS)"
	exit 77
fi

tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-pyverbs.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Debian compresses the larger files of its documents.
cp -r "$tests" "$tmp/tests"
find "$tmp/tests" -name '*.gz' -exec gunzip -f {} +

status=0
(cd "$tmp" && BUSBAR_LOG="${BUSBAR_LOG:-error}" "$busbar" exec -- "$python" -B \
	tests/run_tests.py -v --dev "$device" "$@") >"$tmp/log" 2>&1 || status=$?

# A test that has a description prints its name on the line before its result.
awk '
match($0, /\(tests\.[a-z0-9_]+\./) {
	file = substr($0, RSTART + 7, RLENGTH - 8)
	name = $1
}
/ \.\.\. ok$/ || /^ok$/ { good[file]++; files[file] }
/ \.\.\. (FAIL|ERROR)$/ || /^(FAIL|ERROR)$/ {
	bad[file]++
	files[file]
	print "bad: " file " " name
}
match($0, / \.\.\. skipped /) {
	skipped[file]++
	files[file]
	why[substr($0, RSTART + RLENGTH)]++
}
END {
	for (f in files) {
		print f, good[f] + 0, bad[f] + 0, skipped[f] + 0 > table
		g += good[f]; b += bad[f]; s += skipped[f]
	}
	print "~all", g + 0, b + 0, s + 0 > table
	for (w in why)
		print why[w], w > reasons
}' table="$tmp/table" reasons="$tmp/reasons" "$tmp/log"
# Tests print, too, and a result may be lost among that: the summary counts.
if grep '^Ran [1-9]' "$tmp/log"; then
	{ echo file good bad skipped && LC_ALL=C sort "$tmp/table"; } |
		awk '{ sub(/^~/, ""); printf "%-24s %6s %6s %8s\n", $1, $2, $3, $4 }'
	[ ! -s "$tmp/reasons" ] || { echo; echo skipped:; sort -rn "$tmp/reasons"; }
else
	echo "failed: the tests did not run to their end"
	status=1
fi
if [ "$status" -ne 0 ]; then
	echo
	sed -n '/^======/,$p' "$tmp/log"
	exit 1
fi
