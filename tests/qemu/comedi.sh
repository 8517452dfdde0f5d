#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# comedi.sh: in a guest with the module comedi_test, a board without hardware: its inputs 0 and 1
# make a sawtooth and a square of one volt, the others have the codes of the outputs when they are
# read singly.
set -u
: "${BUSBAR:?set it to the busbar executable}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail() {
	echo "failed: $*"
	[ ! -s log ] || sed 's/^/  /' log
	exit 1
}

[ -e /dev/comedi0 ] || fail 'the module has made no /dev/comedi0'

cat >stream.conf <<'CONF'
idle_stop = true;
nodes = {
	board = {
		type = "comedi"; device = "/dev/comedi0";
		in = {
			mode = "stream"; rate = 1000.0; bufsize = 64;
			signals = ( { name = "saw"; channel = 0; }, { name = "square"; type = "integer"; channel = 1; } );
		};
	};
	rec = { type = "file"; uri = "in.csv"; format = "csv"; out = { append = false; }; };
};
paths = ( { in = "board"; out = "rec"; } );
CONF
timeout 60 "$BUSBAR" run -t 4 stream.conf >out 2>log || fail "streaming: exit status $?"
grep -q 'driver comedi_test' log || fail 'the log does not name the driver'
# secs,nanosecs,offset,sequence,saw,square
awk -F, '
	/^[0-9]/ {
		at = $1 + $2 / 1e9
		if (n && $4 != last + 1) gaps++
		if (n && at < before) back++
		if (!n) first = at
		if (!n || $5 < low) low = $5
		if (!n || $5 > high) high = $5
		codes[$6] = 1
		last = $4; before = at; n++
	}
	END {
		rate = n > 1 ? (n - 1) / (before - first) : 0
		for (c in codes) different++
		printf "%d scans, %d gaps, %d steps back, %.1f Hz, %g to %g V, %d codes of the square\n",
			n, gaps, back, rate, low, high, different
		exit !(n > 1000 && !gaps && !back && rate > 950 && rate < 1050 &&
			low < -0.9 && low > -1.1 && high > 0.9 && high < 1.1 && different == 2)
	}' in.csv >result || fail "streaming: $(cat result)"
cat result

# The outputs, at once and by a command, and read again.
for row in '2.5 -1.25' '-3.0 4.0 mode = "stream"; rate = 500.0; bufsize = 8;'; do
	read -r a b rate <<-ROW
		$row
	ROW
	cat >both.conf <<CONF
idle_stop = true;
nodes = {
	level = { type = "signal"; signal = "constant"; values = 2; amplitude = 0.0; offset = [$a, $b]; rate = 500; };
	board = {
		type = "comedi"; device = "/dev/comedi0";
		out = { $rate signals = ( { name = "a"; channel = 2; }, { name = "b"; channel = 3; } ); };
		in = { mode = "single"; rate = 50.0; signals = ( { name = "a"; channel = 2; }, { name = "b"; channel = 3; } ); };
	};
	rec = { type = "file"; uri = "loop.csv"; format = "csv"; out = { append = false; }; };
};
paths = ( { in = "level"; out = "board"; }, { in = "board"; out = "rec"; } );
CONF
	timeout 60 "$BUSBAR" run -t 4 both.conf >out 2>log
	status=$?
	[ $status = 0 ] || fail "outputs, '$rate': exit status $status"
	tail -n 1 loop.csv
	tail -n 1 loop.csv | awk -F, -v a="$a" -v b="$b" '
		{ exit !($5 - a > -0.001 && $5 - a < 0.001 && $6 - b > -0.001 && $6 - b < 0.001) }' ||
		fail "outputs, '$rate': the inputs have $(tail -n 1 loop.csv)"
done
exit 0
