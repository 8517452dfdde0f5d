#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The command line of busbar itself: help, unknown names, exit statuses.
set -u
: "${BUSBAR:?set it to the busbar executable}"
failed=0

# check WHAT STATUS PATTERN COMMAND...: exit status, and a line of the output.
check() {
	what=$1 want=$2 pattern=$3
	shift 3
	output=$("$@" 2>&1)
	got=$?
	if [ "$got" -ne "$want" ]; then
		echo "failed: $what: status $got instead of $want"
		echo "$output"
		failed=1
	elif ! echo "$output" | grep -q -e "$pattern"; then
		echo "failed: $what: no '$pattern' in"
		echo "$output"
		failed=1
	fi
}

check "--help lists the commands" 0 '^  exec ' "$BUSBAR" --help
check "no command is a usage error" 2 'usage: busbar' "$BUSBAR"
check "--version prints the version" 0 '^busbar [0-9]' "$BUSBAR" --version
check "version says what was left out" 0 'left out' "$BUSBAR" version
check "a misspelt command gets the nearest" 2 "did you mean 'devices'" "$BUSBAR" devcies
check "swapped letters count as one mistake" 2 "did you mean 'exec'" "$BUSBAR" exce
check "nonsense gets no suggestion" 2 "see 'busbar --help'" "$BUSBAR" qqqqqqqq
check "bench names are checked alike" 2 "did you mean 'floor'" "$BUSBAR" bench flor
for command in devices exec bench; do
	check "$command has --help" 0 "usage: busbar $command" "$BUSBAR" "$command" --help
done
for command in list record play; do
	check "sv $command has --help" 0 "usage: busbar sv $command" "$BUSBAR" sv "$command" --help
done
check "sv record needs a file or an interface" 1 'neither a capture file nor' \
	"$BUSBAR" sv record ./nothing ./nothing.csv
check "floor refuses one CPU twice" 2 'two different CPU' "$BUSBAR" bench floor --cpus 0,0
check "floor refuses an unknown name" 2 "no measurement 'nonsense'" "$BUSBAR" bench floor nonsense
exit "$failed"
