#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Generators that wait for nothing write into files of both line formats: each
# sample is there once, in order.
. "$(dirname "$0")/common.sh"

count=20000
for format in csv villas.human; do
	for type in signal signal.v2; do
		signals='values = 8;'
		[ "$type" = signal ] || signals='in = { signals = "8f"; };'
		cat >"$tmp/run.conf" <<-CONF
			idle_stop = true;
			nodes = {
				g = {
					type = "$type"; realtime = false; rate = 10000;
					limit = $count; $signals
				};
				f = {
					type = "file"; uri = "$tmp/out"; format = "$format";
					out = { append = false; };
				};
			};
			paths = ( { in = "g"; out = "f"; } );
		CONF
		start run
		ends "$last"
		if [ "$format" = csv ]; then
			numbers='s/^[^,]*,[^,]*,[^,]*,\([0-9]*\),.*/\1/'
		else
			numbers='s/^[^(]*(\([0-9]*\)).*/\1/'
		fi
		grep -v '^#' "$tmp/out" | sed "$numbers" >"$tmp/numbers"
		seq 0 $((count - 1)) | cmp - "$tmp/numbers" ||
			fail "$type to $format: not all samples once and in order"
	done
done
