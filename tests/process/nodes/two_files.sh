#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Two recordings and a generator in one path, waited for together by their
# descriptors: no sample of either is missing, and the path ends with the last.
. "$(dirname "$0")/common.sh"

for name in a b; do
	i=0
	while [ $i -lt 50 ]; do
		echo "100.$(printf '%03d' $((i * 4)))000000($i)	$i.0"
		i=$((i + 1))
	done >"$tmp/$name"
done
cat >"$tmp/run.conf" <<-CONF
	idle_stop = true;
	nodes = {
		a = { type = "file"; uri = "$tmp/a"; in = { signals = "1f"; }; };
		b = { type = "file"; uri = "$tmp/b"; in = { rate = 500; signals = "1f"; }; };
		g = { type = "signal"; rate = 200; limit = 20; signal = "counter"; };
		out = { type = "file"; uri = "$tmp/out"; out = { }; };
	};
	paths = ( { in = ("a", "b", "g"); out = "out"; poll = true; end = "all"; original_sequence_no = false; } );
CONF
start run
ends "$last"
! grep -q 'each gets a thread' "$tmp/run.log" || fail 'not all offer a descriptor'
# A generator may miss steps, files miss none.
lines=$(grep -vc '^#' "$tmp/out")
[ "$lines" -ge 101 ] && [ "$lines" -le 120 ] || fail "$lines of 120 samples"
[ "$(tail -n 1 "$tmp/out" | cut -f2-3)" = '49.0	49.0' ] || fail 'the last values are not there'
