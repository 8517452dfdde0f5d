#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# left-out.sh BUILD: one line about the tests that did not run, and why; nothing when all did.
# Left out of the build: folders whose meson.build was not read, and tests that need cmocka
# where it is missing. Skipped: tests of the last run that ended with status 77; the reason is
# their last line.
set -eu
build=${1:?the build folder}
source=$(cd "$(dirname "$0")/.." && pwd)
files=$build/meson-info/intro-buildsystem_files.json
log=$(ls -t "$build"/meson-logs/testlog*.txt 2>/dev/null | head -n 1)

without_cmocka() {
	grep -q '"cmocka"' "$build/meson-info/intro-dependencies.json" && return
	(cd "$source" && find tests -name meson.build | sort) | while read -r file; do
		folder=${file#tests/}
		folder=${folder%/meson.build}
		# A folder that was read may have tests that need cmocka and were left out.
		if ! grep -q "/$file\"" "$files"; then
			echo "$folder"
		elif [ "$folder" != meson.build ] && grep -q 'cmocka.*found()' "$source/$file"; then
			echo "a part of $folder"
		fi
	done | awk '{ text = text (NR > 1 ? ", " : "") $0 }
		END { if (NR) printf "%d folders (no cmocka: install libcmocka-dev): %s", NR, text }'
}

# "3 of qemu (no qemu-system-x86_64)", for each suite.
skipped() {
	[ -f "$log" ] || return 0
	awk '
		function take() {
			if (result !~ /^(exit status 77|SKIP)/)
				return
			if (!count[suite]++)
				suites[++n] = suite
			reason = last == "" ? name : last
			if (!seen[suite, reason]++)
				reasons[suite] = reasons[suite] (reasons[suite] == "" ? "" : "; ") reason
		}
		/^=+ +[0-9]+\/[0-9]+ +=+$/ { take(); result = last = ""; inside = 0; next }
		/^test: / {
			name = $0
			sub(/^test: +/, "", name)
			suite = name
			sub(/^[^:]*:/, "", suite)
			sub(/ \/ .*/, "", suite)
			sub(/.* \/ /, "", name)
		}
		/^result: / { result = $0; sub(/^result: +/, "", result) }
		/^Summary of Failures:|^Ok: / { exit }
		/^-+ (stdout|stderr) -+$/ { inside = 1; next }
		/^=+$/ { inside = 0 }
		inside && NF { last = substr($0, 1, 120); sub(/^skipped: */, "", last) }
		END {
			take()
			for (i = 1; i <= n; i++)
				printf "%s%d of %s (%s)", (i > 1 ? ", " : ""), count[suites[i]], suites[i],
					reasons[suites[i]]
		}' "$log"
}

folders=$(without_cmocka)
tests=$(skipped)
[ -n "$folders$tests" ] || exit 0
echo "tests that did not run:${folders:+ left out of the build $folders}${folders:+${tests:+;}}${tests:+ skipped $tests}"
