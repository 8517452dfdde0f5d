#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# What is read is stamped: the offset behind the origin is another one each time.
unstamped() {
	sed 's/[-+][0-9.]*(/(/; s/^\([0-9]*,[0-9]*\),[-0-9.]*,/\1,nan,/' out >bare
}

printf '1.0(0)\t1\n2.0(1)\t2\n2.5(1)\t3\n3.0(0)\t4\n4.0(2)\t5\n' >in
for vector in 1 2 3 100; do
	expect_in 0 "drop, $vector at once" villas-hook -v $vector drop
	printf '1.000000000(0)\t1.0\n2.000000000(1)\t2.0\n4.000000000(2)\t5.0\n' >wanted
	unstamped
	equal "samples whose sequence does not grow are dropped, $vector at once" bare wanted
done
expect_in 0 'formats' villas-hook -F csv drop
unstamped
says 'the output has the format that was asked for' '^4,000000000,nan,2,5.0$' bare
mv in human
villas-convert -o csv <human >in
expect_in 0 'formats' villas-hook -f csv drop
unstamped
says 'without -F it has that of the input' '^4,000000000,nan,2,5.0$' bare

printf '5.0\t1\n6.0\t2\n' >in
expect_in 0 'fix' villas-hook fix
says 'fix numbers the samples' '^6.000000000+.*(1).2.0$' out

# Hooks that take the receive timestamp have one here as in a gateway.
expect_in 0 'ts' villas-hook -F csv ts
says 'the time of reading became the origin' '^1[0-9]\{9\},[0-9]*,0.0*,nan,2.0$' out
printf '5.0+0.25(3)\t1\n' >in
expect_in 0 'a sample that has one' villas-hook ts
says 'keeps it' '^5.250000000+0.0*(3)' out

# Settings from a file, from the command line, and from both.
printf 'format = "json"; output = "stats.json";\n' >hook.conf
cp human in
expect_in 0 'settings from a file' villas-hook -c hook.conf stats
samples 'a hook that only looks passes everything' 5 out
says 'the settings were used' '"received": *5' stats.json
expect_in 0 'the command line adds to the file' villas-hook -c hook.conf -o verbose=true stats
expect_in 0 'settings from the command line' \
	villas-hook -o format=json -o 'output="other file.json"' stats
says 'a value may hold a blank' '"received": *5' 'other file.json'
printf '{ "output": "not this.json" }\n' >hook.json
expect_in 0 'a setting in both' villas-hook -c hook.json -o output=this.json -o format=json stats
says 'that of the command line is used' '"received": *5' this.json
[ -e 'not this.json' ] && fail 'that of the file was used too'
printf '{ "output": 7 }\n' >hook.json
expect_in 2 'a setting of the wrong type' villas-hook -c hook.json stats
says 'is told with file and line' 'hook.json:1: output'
expect_in 2 'an unknown setting' "$BUSBAR" hook -o formt=json stats
says 'gets the nearest key' "did you mean 'format'"
expect_in 0 'which is passed over by the other name' villas-hook -o formt=json stats
says 'with a warning' "warn .*did you mean 'format'"
expect_in 2 'an assignment without a value' villas-hook -o format stats
expect_in 2 'an unknown hook' villas-hook dropp
says 'gets the nearest hook' "did you mean 'drop'"
expect_in 1 'a hook that cannot start' villas-hook -o output=none/there stats
expect 2 'no hook' villas-hook

if has hooks scale; then
	printf '1.0(0)\t1\t2\t3\n' >in
	expect_in 0 'a list by commas' villas-hook -o scale=2 -o signals=signal0,signal2 scale
	says 'all of the list is used' '(0).2.0.2.0.6.0$' out
	expect_in 0 'a list by repetition' \
		villas-hook -o scale=2 -o signals=signal0 -o signals=signal2 scale
	says 'all of the list is used' '(0).2.0.2.0.6.0$' out
fi

# Long samples, and what is bad.
villas-signal -n -l 1000 -v 600 mixed >in
expect_in 0 'long samples' villas-hook drop
unstamped
equal 'they pass whole' in bare
printf '1.0(0)\t1\nnonsense\n' >in
expect_in 1 'bad input' villas-hook drop
samples 'what came before is there' 1 out
says 'the line is named' 'stdin:2: '

# A sample is answered while its sender waits.
mkfifo fifo
rm out # what is there shall be new
villas-hook drop <fifo >out 2>log &
pid=$!
exec 3>fifo
printf '1.0(0)\t1\n' >&3
wait_for $pid grep -qs '(0)' out
printf '2.0(1)\t1\n' >&3
wait_for $pid grep -qs '(1)' out
kill -INT $pid
wait $pid || fail "interrupted: exit status $?"
exec 3>&-
exit "$failed"
