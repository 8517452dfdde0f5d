#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Ctrl-C in the second of two cases: the file of the first is whole, that of the
# second holds what came and says that it is not complete.
. "$(dirname "$0")/common.sh"

cat >"$tmp/rtt.conf" <<-CONF
	nodes = {
		rtt = {
			type = "test_rtt"; prefix = "stopped"; output = "$tmp";
			format = "csv"; values = 2;
			cases = (
				{ rates = 1000; count = 50; },
				# Would take much longer than this test may.
				{ rates = 10.0; count = 100000; }
			);
		};
		between = { type = "loopback"; };
	};
	paths = (
		{ in = "rtt"; out = "between"; },
		{ in = "between"; out = "rtt"; }
	);
CONF
first="$tmp/stopped_values2_rate1000.log" second="$tmp/stopped_values2_rate10.log"
has_sample() {
	[ -f "$second" ] && grep -q '^[0-9]' "$second"
}
start rtt
until_true has_sample
kill -INT "$last"
ends "$last"
holds "$first" 50
is "$first" complete true
is "$first" received 50
is "$second" complete false
holds "$second" "$(figure "$second" received)"
