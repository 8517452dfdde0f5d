#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# Numbers that other printers cut, and a time that others misread.
printf '1.5(7)\t1e-20\t-0.0\t1e300\t0.1\n2.000000001+1e-6(8)F\tnan\t-inf\t3\t123456789.123456789\n' >in
expect_in 0 'text to csv' villas-convert -o csv
grep -v '^#' out >got
printf '1,500000000,nan,7,1e-20,-0.0,1e300,0.1\n' >wanted
printf '2,000000001,0.000001000,8,nan,-inf,3.0,123456789.12345679\n' >>wanted
equal 'half a second is half a second and small numbers stay' got wanted

# No line is too long, whatever -t says or does not say.
for values in 1 64 65 200 512 5000; do
	villas-signal -n -l 20 -v $values mixed >in 2>log
	samples "$values values are generated" 20 in
	for format in csv tsv '{"type": "csv", "separator": ";"}'; do
		expect_in 0 "$values values to $format" villas-convert -o "$format"
		mv out in.other
		villas-convert -i "$format" <in.other >out 2>log ||
			fail "$values values from $format"
		equal "$values values by way of $format" in out
	done
done

printf '1.0(0)\t1.5\t-3\t1\t1.5-2.0i\n' >in
expect_in 0 'types' villas-convert -t 1f1i1b1c -o csv
says 'types of values are kept' '^1,000000000,nan,0,1.5,-3,1,1.5-2.0i$' out
expect_in 1 'a real number is no integer' villas-convert -t 1i
expect_in 2 'nonsense types' villas-convert -t 12x
says 'types that are wrong are shown' "'12x' is not a list of signals"

# What can be read of bad input is written, and where it is bad is said.
printf '# a comment\n1.0(0)\t1\n2.0(1)\t2\n3.0(2)\tzero\n4.0(3)\t3\n' >in
expect_in 1 'a bad line' villas-convert
samples 'what came before a bad line is there' 2 out
says 'the bad line is named' 'stdin:4: value "zero" is not a real number'
villas-signal -n -l 3000 -v 20 sine >in
echo nonsense >>in
expect_in 1 'a bad line far behind' villas-convert
samples 'all that came before is there' 3000 out
says 'the line is counted over all pieces of the input' 'stdin:3002: '

# Objects have no end of line of their own.
printf '{"data": [1.0]}\n\n{"data": [1.0}\n{"data": [2.0]}\n' >in
expect_in 1 'a bad object' villas-convert -i json
says 'its line is named' 'stdin:3: not JSON'
printf '{"data": [x]}' >in
expect_in 1 'a bad object without an end of line' villas-convert -i json
says 'its line is named, too' 'stdin:1: not JSON'

# A stream that the caller has closed is none of the tool's own descriptors.
wanted=1 what='closed input'
timeout 20 villas-convert >out 2>log <&-
check_status $?
says 'it is an error' "cannot read 'stdin': Bad file descriptor"
printf '1.0(0)\t1\n' >in
wanted=1 what='closed output'
timeout 20 villas-convert 2>log <in >&-
check_status $?
says 'it is an error, too' 'cannot write to standard output: Bad file descriptor'

printf '1.0(0)\t1\n2.0(1)\t2' >in
expect_in 0 'a last line without its end' villas-convert
samples 'it is a sample too' 2 out
: >in
expect_in 0 'no input' villas-convert
expect 2 'an unknown format' villas-convert -o vilas.human
says 'gets the nearest one' "did you mean 'villas.human'"
expect 2 'an unknown option of a format' "$BUSBAR" convert -o '{"type": "csv", "seperator": ";"}'
says 'gets the nearest key' "did you mean 'separator'"
expect 2 'a file is no argument' villas-convert in

# Whoever reads may have enough.
villas-signal -n -l 100000 sine >in
{ villas-convert <in 2>log; echo $? >status; } | head -n 1 >out
says 'a reader that has gone is no error' '^0$' status
[ -s log ] && fail "a reader that has gone is told: $(cat log)"

# round_trip FORMAT [OPTIONS of compare]: what is written can be read back, in pieces
# of any length.
round_trip() {
	has formats "$1" || return
	format=$1
	shift
	villas-convert -t 4f -o "$format" <in >there 2>log || fail "to $format: $(cat log)"
	villas-convert -t 4f -i "$format" <there >back 2>log || fail "from $format: $(cat log)"
	expect 0 "by way of $format" villas-compare -e 0 "$@" in back
	dd bs=61 <there 2>/dev/null | villas-convert -t 4f -i "$format" >pieces 2>log ||
		fail "$format in pieces: $(cat log)"
	cmp -s back pieces || fail "$format in pieces is not the same"
}
# Values that also have a place in 32 bits.
villas-signal -n -l 2000 -v 4 -a 0.25 -r 100 counter >in
for format in villas.human csv tsv busbar.binary protobuf json villas.binary villas.web; do
	round_trip $format
done
round_trip opal.asyncip -T
round_trip raw -s -T
round_trip gtnet -s -T
if has formats raw; then
	expect_in 1 'reals in 8 bits' villas-convert -o '{"type": "raw", "bits": 8}'
	says 'the signal that does not fit is named' "signal0.*which the format 'raw'"
fi
if has formats villas.binary; then
	villas-convert -o villas.binary <in | head -c 100 >there
	villas-convert -i villas.binary <there >out 2>log && fail 'half a binary sample is none'
	says 'an input that is cut is reported' 'stdin: '
fi
if has formats comtrade; then
	villas-signal -n -l 50 -v 4 -r 100 sine >in
	villas-convert -o '{"type": "comtrade", "data": "float32"}' <in >there
	cp there in
	expect_in 0 'a whole record' villas-convert -i comtrade
	samples 'a whole record' 50 out
	# Of 8 bytes and 4 values; one that lacks a byte gets none from elsewhere.
	for lacks in 1 7 23; do
		head -c -$lacks there >in
		expect_in 1 "a record that lacks $lacks bytes" villas-convert -i comtrade
		samples "a record that lacks $lacks bytes" 49 out
		says 'it is told' "ends within a sample, $((24 - lacks)) bytes are left"
	done
	cat >gateway.conf <<-EOF
		nodes = { from = { type = "file"; uri = "$dir/rows"; format = "villas.human";
				in = { epoch_mode = "original"; eof = "stop"; };
				signals = ( { name = "a" }, { name = "b" } ); };
			to = { type = "file"; uri = "$dir/whole.cff"; format = "comtrade";
				out = { append = false; }; }; };
		paths = ( { in = "from"; out = "to"; } );
		hugepages = 0; stats = 0.0; idle_stop = true;
	EOF
	villas-signal -n -l 50 -v 2 -r 100 sine >rows
	expect 0 'a record in a file' villas-node gateway.conf
	cp whole.cff in
	expect_in 0 'a record of 50 rows' villas-convert -i comtrade
	# Of 8 bytes and 2 values: cut between two of them.
	head -c -32 whole.cff >in
	expect_in 1 'a record that lacks two rows' villas-convert -i comtrade
	samples 'a record that lacks two rows' 48 out
	says 'it is told' 'stdin: the record announces 50 rows, but 48 are there'
	{ cat whole.cff && tail -c 16 whole.cff; } >in
	expect_in 0 'a record with a row too many' villas-convert -i comtrade
	samples 'a record with a row too many' 50 out
	says 'it is told' 'stdin: 16 bytes stand behind the data that the record announces'
fi
# A length of 16 bits has an end, which is told as such.
awk 'BEGIN { printf "1.5(7)"; for (i = 0; i < 65536; i++) printf "\t1.5"; print "" }' >in
for format in villas.binary villas.web; do
	has formats $format || continue
	expect_in 1 "$format with 65536 values" villas-convert -o $format
	says "$format says why" "has 65536 values, .*'$format' holds 65535 (its length has 16 bits)"
done
# Values go to signals by their names: that none does is not kept quiet.
names() {
	has formats "$1" || return
	printf '%s\n%s\n' "$2" "$2" >in
	expect_in 0 "$1 with other names" villas-convert -t 2f -i "$1"
	says 'it is told that none is known' "none of the names in a message is a signal"
	[ "$(grep -c 'none of the names' log)" -eq 1 ] || fail "$1: it is told once"
	printf '%s\n' "$3" >in
	expect_in 0 "$1 with one name" villas-convert -t 2f -i "$1"
	[ -s log ] && fail "$1: one known name is enough: $(cat log)"
}
names json.edgeflex '{"volt":1,"created":5}' '{"volt":1,"signal1":2,"created":5}'
names json.kafka '{"payload":{"timestamp":5,"volt":1}}' '{"payload":{"timestamp":5,"volt":1,"signal1":2}}'
names json.reserve '{"measurements":[{"name":"volt","value":1}]}' \
	'{"measurements":[{"name":"volt","value":1},{"name":"signal0","value":1}]}'
names iotagent_ul 'volt|1' 'volt|1|signal0|2'
exit "$failed"
