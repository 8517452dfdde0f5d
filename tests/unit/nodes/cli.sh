#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# cli.sh BUSBAR: delivery and simulate keep their exit statuses, a simulated
# fault survives a trip through the file node unharmed, and steps that a generator left
# out are not counted as lost.
set -u
busbar=${1:?the program}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# expect STATUS what command...
expect() {
	wanted=$1 what=$2
	shift 2
	"$@" >"$dir/log" 2>&1
	got=$?
	[ $got -eq "$wanted" ] && return
	echo "failed: $what: exit status $got, expected $wanted"
	cat "$dir/log"
	failed=1
}

sent=$dir/sent.csv
expect 0 'a fault is simulated' "$busbar" simulate fault -o "$sent" --duration 0.1 --fault-at 0.02
expect 0 'a file equals itself' "$busbar" delivery --expect-lossless "$sent" "$sent"

sed 100d "$sent" >"$dir/lossy.csv"
expect 0 'a loss is no difference' "$busbar" delivery "$sent" "$dir/lossy.csv"
expect 1 'unless none is expected' "$busbar" delivery --expect-lossless "$sent" "$dir/lossy.csv"
sed '/^0,0*,/d' "$sent" >"$dir/late.csv"
expect 0 'start-up is no loss' "$busbar" delivery --expect-lossless "$sent" "$dir/late.csv"
sed '50s/,\(-*\)\([0-9]\)/,\1\29/5' "$sent" >"$dir/wrong.csv"
expect 1 'a wrong value is a difference' "$busbar" delivery "$sent" "$dir/wrong.csv"
echo nonsense >>"$dir/wrong.csv"
expect 2 'a malformed file is refused' "$busbar" delivery "$sent" "$dir/wrong.csv"
expect 2 'a missing file is refused' "$busbar" delivery "$sent" "$dir/none.csv"
expect 2 'one file is not enough' "$busbar" delivery "$sent"
expect 2 'an impossible line is refused' "$busbar" simulate fault --location 7
expect 2 'what cannot be simulated is refused' "$busbar" simulate weather
expect 1 'an unwritable file is an error' "$busbar" simulate fault -o "$dir/x/y"

# An object has no end of line of its own: the bad one is in line 3 all the same.
printf '{"data": [1.0]}\n\n{"data": [1.0}\n{"data": [2.0]}\n' >"$dir/bad.json"
cat >"$dir/bad.conf" <<-CONF
	idle_stop = true;
	nodes = {
		a = { type = "file"; uri = "$dir/bad.json"; format = "json";
			in = { epoch_mode = "original"; }; };
	};
	paths = ( { in = "a"; } );
CONF
expect 0 'a bad object is passed over' "$busbar" run "$dir/bad.conf"
grep -q 'bad.json:3: not JSON' "$dir/log" || {
	echo 'failed: the line of a bad object is told'
	cat "$dir/log"
	failed=1
}

grep -q '^  1 malformed$' "$dir/log" || {
	echo 'failed: the summary counts a bad object'
	failed=1
}

# A source whose number stands still: what is left out is counted, and the log says why.
printf '1.0(5)\t1\n2.0(5)\t2\n3.0(5)\t3\n' >"$dir/still.txt"
cat >"$dir/still.conf" <<-CONF
	idle_stop = true;
	nodes = { a = { type = "file"; uri = "$dir/still.txt"; in = { epoch_mode = "original"; }; }; };
	paths = ( { in = "a"; } );
CONF
expect 0 'a number stands still' "$busbar" run "$dir/still.conf"
grep -q '^  2 left out by hook drop of a$' "$dir/log" &&
	grep -q 'a: sample after sample has the sequence number 5' "$dir/log" || {
	echo 'failed: what is left out is told'
	cat "$dir/log"
	failed=1
}

# Steps that a generator left out are no lost samples at a receiver of the same gateway.
# Of those behind the last sample it does not know.
cat >"$dir/steps.conf" <<-CONF
	idle_stop = true;
	nodes = {
		made = { type = "signal"; signal = "counter"; rate = 1000.0; };
		way = { type = "loopback"; };
		kept = { type = "file"; uri = "$dir/steps.csv"; format = "csv"; out = { flush = true; }; };
	};
	paths = ( { in = "made"; out = "way"; }, { in = "way"; out = "kept"; } );
CONF
timeout 60 "$busbar" run "$dir/steps.conf" >"$dir/log" 2>"$dir/err" &
run=$!
for _ in $(seq 500); do
	grep -qs '^[0-9].*,20,' "$dir/steps.csv" && break
	sleep 0.02
done
child=$(pgrep -P $run)
kill -STOP "$child"
sleep 0.3
kill -CONT "$child"
sleep 0.3
kill -TERM "$child"
wait $run
awk '$2 == "signal" { made = $9 } $2 == "loopback" { way = $9; lost = $7 }
	END { exit !(way > 100 && way <= made && lost == 0) }' "$dir/log" || {
	echo 'failed: steps that were left out are not lost'
	cat "$dir/log" "$dir/err"
	failed=1
}

# The header of a recording names the signals of both sources, before the second has sent.
cat >"$dir/two.conf" <<-CONF
	idle_stop = true;
	nodes = {
		first = { type = "signal"; signal = "ramp"; values = 3; rate = 100.0; limit = 5; };
		later = { type = "signal"; signal = "sine"; values = 2; rate = 10.0; limit = 2; };
		plain = { type = "file"; uri = "$dir/two.csv"; out = { };
			format = { type = "csv"; columns = "plain"; }; };
		human = { type = "file"; uri = "$dir/two.txt"; out = { }; };
	};
	paths = ( { in = ( "first", "later" ); out = ( "plain", "human" ); } );
CONF
expect 0 'two sources are recorded' "$busbar" run "$dir/two.conf"
awk -F, 'NF != 6 { print; bad = 1 } END { exit bad || NR < 2 }' "$dir/two.csv" &&
	awk -F '\t' '{ exit NF != 6 }' "$dir/two.txt" || {
	echo 'failed: a header names all signals'
	head "$dir/two.csv" "$dir/two.txt"
	failed=1
}

for format in villas.human tsv csv; do
	cat >"$dir/run.conf" <<-CONF
		idle_stop = true;
		nodes = {
			a = { type = "file"; uri = "$sent"; format = "csv";
				in = { epoch_mode = "original"; }; vectorize = 16; };
			b = { type = "file"; uri = "$dir/out.$format"; format = "$format";
				out = { append = false; buffering = "memory"; }; };
		};
		paths = ( { in = "a"; out = "b"; } );
	CONF
	expect 0 "a file is copied to $format" "$busbar" run "$dir/run.conf"
	# Different formats cannot be given apart, so by way of csv only.
	[ $format = csv ] &&
		expect 0 'and nothing is lost' "$busbar" delivery --expect-lossless "$sent" "$dir/out.csv"
	[ "$(grep -vc '^#' "$dir/out.$format")" -eq 1000 ] || {
		echo "failed: $format does not hold 1000 samples"
		failed=1
	}
done
exit $failed
