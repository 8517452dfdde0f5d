#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# failed-tests.sh BUILD: the last lines of each test of the last run that failed.
# meson prints them where they come by; this is for those who see the end only.
set -eu
# The newest log; its name ends with that of the setup, if --setup was given.
log=$(ls -t "$1"/meson-logs/testlog*.txt 2>/dev/null | head -n 1)
[ -n "$log" ] || exit 0
awk '
	function show() {
		if (!bad)
			return
		print "---- " name ": " result
		for (i = n > LINES ? n - LINES + 1 : 1; i <= n; i++)
			print line[i]
	}
	BEGIN { LINES = 40 }
	/^=+ +[0-9]+\/[0-9]+ +=+$/ { show(); n = bad = 0; next }
	/^test: / { name = substr($0, 7); sub(/^ +/, "", name) }
	/^result: / {
		result = substr($0, 9)
		sub(/^ +/, "", result)
		bad = result !~ /^(exit status (0|77)$|SKIP|OK)/
	}
	/^Summary of Failures:/ { exit }
	{ line[++n] = substr($0, 1, 300) }
	END { show() }
' "$log"
