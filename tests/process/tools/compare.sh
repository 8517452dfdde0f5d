#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# line SEQUENCE VALUE: a sample of second SEQUENCE.
line() {
	printf '%s.0(%s)\t%s\n' "$1" "$1" "$2"
}
{ line 0 1.0; line 1 2.0; line 2 nan; } >a
cp a b
expect 0 'equal files' villas-compare a b
[ -s out ] && fail 'equal files: something is printed'
expect 0 'three of them' villas-compare a b a
cp a in
expect_in 0 'one from standard input' villas-compare a -

{ line 0 1.0; line 1 2.0; } >short
expect 1 'a shorter one' villas-compare a short
expect 1 'a longer one' villas-compare short a
expect 1 'a longer third one' villas-compare short short a
says 'says which has how many' 'short has 2 samples' out
: >empty
expect 1 'an empty one' villas-compare a empty
expect 0 'two empty ones' villas-compare empty empty

sed 's/(1)/(5)/' a >b
expect 2 'another sequence number' villas-compare a b
says 'shows the two' 'sample 1: sequence numbers differ' out
expect 0 'unless that does not count' villas-compare -s a b
sed 's/(1)//' a >b
expect 2 'a missing sequence number' villas-compare a b
sed 's/^1.0/1.01/' a >b
expect 3 'another time' villas-compare a b
expect 0 'unless times do not count' villas-compare -T a b
expect 0 'or it is near enough' villas-compare -e 0.1 a b
# Only what comes later is late.
expect 0 'the first file is the later one' villas-compare b a
expect 3 'which a strict comparison tells' villas-compare -S b a
says 'strict: says what' 'sample 1: timestamps differ' out
expect 0 'near enough for a strict one' villas-compare -S -e 0.1 b a
expect 3 'the third file is the later one' villas-compare a a b
sed 's/2.0$/2.0\t3/' a >b
expect 4 'more values' villas-compare a b
expect 0 'unless values do not count' villas-compare -v a b
sed 's/2.0$/2.1/' a >b
expect 5 'another value' villas-compare a b
says 'says which' 'sample 1: value 0 differs' out
expect 5 'in the third file' villas-compare a a b
expect 0 'near enough' villas-compare -e 0.11 a b
sed 's/nan/1/' a >b
expect 5 'a number is not no number' villas-compare -e 1000 a b
printf '0.0(0)\tinf\n' >a
printf '0.0(0)\tinf\n' >b
expect 0 'infinities are equal' villas-compare a b
printf '0.0(0)\t-inf\n' >b
expect 5 'but for their sign' villas-compare a b
printf '0.0(0)\t9007199254740993\n' >a
printf '0.0(0)\t9007199254740992\n' >b
expect 5 'integers are compared as such' villas-compare -t 1i a b

line 0 1 | villas-convert -o csv >a.csv
expect 0 'another format' villas-compare -f csv a.csv a.csv
# No other status than 6 for what is no result.
expect 6 'a file that is not there' villas-compare a none
echo nonsense >b
expect 6 'a bad file' villas-compare a b
says 'says where' 'b:1: '
expect 6 'one file' villas-compare a
expect 6 'a wrong option' villas-compare -e much a a
expect 6 'an unknown format' villas-compare -f nothing a a
expect 6 'standard input with itself' villas-compare - -
exit "$failed"
