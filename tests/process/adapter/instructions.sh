#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# instructions.sh PROGRAM TABLE COMPILER: how many instructions a small message costs, from
# posting to its completion, in one process (rounds.c). The figures of TABLE may be
# exceeded by 3 %; the output says when one is 10 % lower, so that the table can follow.
# COMPILER is what the code was made with ("gcc-12 x86_64 O2"): where the table has no line
# for it, and without valgrind, the test is skipped.
#
# While the progress thread runs, posting takes locks that it otherwise leaves out. The
# least of many short counts is one without that, and is the same each time. BUSBAR_TSC=0:
# valgrind claims rdtscp also where the processor has none.
set -u
program=${1:?} table=${2:?} compiler=${3:?}
rounds=100 # COUNTED_ROUNDS of rounds.c

command -v valgrind >/dev/null || {
	echo "skipped: no valgrind"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
known=no
for what in send write; do
	allowed=$(awk -F '\t' -v key="$compiler" -v what=$what \
		'$1 == key && $2 == what { print $3 }' "$table")
	count=0
	# Again while the progress thread was at work all the time.
	for _ in 1 2 3 4 5 6 7 8; do
		BUSBAR_DEVICES=soft BUSBAR_TSC=0 valgrind --tool=callgrind --collect-atstart=no \
			--toggle-collect=counted --dump-after=counted \
			--callgrind-out-file="$dir/$what" "$program" "$what" >"$dir/log" 2>&1 || {
			grep -v '^--' "$dir/log" | tail -20
			echo "failed: $program $what"
			exit 1
		}
		# One file a call, and one for the rest, in which nothing was counted.
		count=$(awk -v rounds=$rounds '
			/^totals:/ && $2 > 0 && (!least || $2 < least) { least = $2 }
			END { print int(least / rounds + 0.5) }' "$dir/$what".*)
		[ "$count" -gt 0 ] && [ $((count * 100)) -le $((${allowed:-0} * 103)) ] && break
		rm -f "$dir/$what".*
	done
	echo "$what of 8 bytes: $count instructions, the table says ${allowed:-nothing}"
	[ -n "$allowed" ] || continue
	known=yes
	if [ "$count" -eq 0 ] || [ $((count * 100)) -gt $((allowed * 103)) ]; then
		echo "failed: more than $allowed and 3 %, or nothing was counted"
		failed=1
	elif [ $((count * 100)) -lt $((allowed * 90)) ]; then
		echo "note: $count should be put into $table"
	fi
done
[ $known = yes ] || {
	echo "skipped: $table knows nothing of $compiler"
	exit 77
}
exit $failed
