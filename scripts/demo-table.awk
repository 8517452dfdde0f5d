# SPDX-License-Identifier: BSD-2-Clause
# One table from files written by `busbar delivery --json`, named
# FOLDER/STREAM-result.json. Fails when one of them tells of a difference.

BEGIN {
	form = "%-10s %8s %8s %8s %6s %6s %6s  %7s %8s %8s %8s %8s\n"
	printf form, "stream", "sent", "received", "too soon", "lost", "out of", "every", "latency", "in us", "", "", ""
	printf form, "", "", "", "", "", "order", "bit", "min", "p50", "p99", "p99.9", "max"
}

function us(key) {
	return key in v ? sprintf("%.2f", v[key] / 1000) : "-"
}

function finish(	name) {
	name = file
	sub(/.*\//, "", name)
	sub(/-result.json$/, "", name)
	printf form, name, v["sent"], v["received"], v["before_connection"], v["lost"], v["out_of_order"], v["values_differ"] + v["origins_differ"] ? "differs" : "equal", us("min"), us("p50"), us("p99"), us("p99.9"), us("max")
	# What was sent before the connection stood has not arrived either.
	if (v["equal"] != "true" || v["received"] + 0 == 0 || v["before_connection"] + 0 != 0)
		bad = 1
	split("", v)
}

FNR == 1 && file { finish() }
{ file = FILENAME }
/": / {
	gsub(/[",:]/, " ")
	v[$1] = $2
}
END {
	finish()
	exit bad
}
