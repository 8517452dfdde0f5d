#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# Every tool, by all of its names.
tools="node pipe signal hook convert compare test-config conf2json graph"
# Built where libzmq is.
$BUSBAR --help | grep -q '^  zmq-keygen ' && tools="$tools zmq-keygen"
for tool in $tools; do
	for call in "villas-$tool" "villas $tool" "$BUSBAR $tool"; do
		expect 0 "$call -h" $call -h
		says "$call -h" "^usage: .*$tool " out
		expect 0 "$call -V" $call -V
		says "$call -V" '^busbar [0-9]' out
	done
	$BUSBAR --help | grep -q "^  $tool " || fail "busbar --help does not know $tool"
	status=2
	[ $tool = compare ] && status=6
	expect $status "$tool with a wrong option" "villas-$tool" -@
	says "$tool with a wrong option" "^usage: villas-$tool "
	expect $status "$tool with a wrong level" "villas-$tool" -d loud
done

# Blanks and quotes in arguments stay.
echo 'nodes = { }' >'a file  with blanks.conf'
expect 0 'blanks' villas conf2json 'a file  with blanks.conf'
printf '1.0(0)\t1\n' >in
expect_in 0 'quotes' villas convert -o '{"type": "csv", "separator": " "}'
says 'quotes' '^1 000000000 nan 0 1.0$' out
expect_in 0 'an argument of stars' villas hook -o 'output=* *.json' -o format=json stats
[ -f '* *.json' ] || fail 'an argument was split or expanded'

expect 2 'an unknown tool' villas signl
says 'gets the nearest' "did you mean 'signal'"
expect 2 'no tool' villas
expect 0 'help' villas --help
says 'help' '^  test-config ' out

# Whose log it is.
expect 1 'an error' env VILLAS_LOG_PREFIX='lab 7: ' "$dir/bin/villas-conf2json" none.conf
says 'has the prefix of the environment' '^lab 7: ..:..:..'
expect_in 0 'debug' villas convert -d debug
expect_in 0 'off' villas convert -d off
[ -s log ] && fail 'off is not silent'
exit "$failed"
