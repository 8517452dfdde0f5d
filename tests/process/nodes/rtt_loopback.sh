#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Two groups of cases over a loopback: a file for each, with exactly the samples
# asked for, also at a rate that is no integer in a list; the gateway stops by
# itself; a second run is appended.
. "$(dirname "$0")/common.sh"

cat >"$tmp/rtt.conf" <<-CONF
	nodes = {
		rtt = {
			type = "test_rtt"; timeout = 20; shutdown = true; prefix = "run";
			output = "$tmp/results/of today"; format = "${FORMAT:-villas.human}";
			warmup = 0.02;
			cases = (
				{ rates = (500, 333.5); values = (1, 8); count = 20; },
				{ rates = 1000.0; values = 64; duration = 0.1; count = 5; mode = "max"; }
			);
		};
		between = { type = "loopback"; };
	};
	paths = (
		{ in = "rtt"; out = "between"; },
		{ in = "between"; out = "rtt"; }
	);
CONF
for run in 1 2; do
	start rtt
	ends "$last"
	for rate in 500 333.5; do
		for values in 1 8; do
			file="$tmp/results/of today/run_values${values}_rate$rate.log"
			holds "$file" $((20 * run))
			is "$file" sent 20
			is "$file" received 20
			is "$file" lost 0
			is "$file" complete true
		done
	done
done
file="$tmp/results/of today/run_values64_rate1000.log"
is "$file" id 4
is "$file" lost 0
# 100 steps, those that the host made it miss included.
steps=$(($(figure "$file" sent) + $(figure "$file" missed)))
[ "$steps" -ge 100 ] || fail "$steps of 100 steps were taken"
