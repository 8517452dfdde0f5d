#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-footprint.sh [BUSBAR [RUNS]]: what a small gateway costs: the time from its
# start to the first sample and out again, the time until it runs, and its memory
# while it runs, for two nodes with the defaults (queues of 1024 samples of 64
# values). Medians. Exit status 1 when it is more than 50 ms or 16 MiB.
set -u
busbar=${1:-build/busbar}
runs=${2:-11}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
nodes='nodes = { sig = { type = "signal"; signal = "sine"; rate = 1000.0; values = 64; LIMIT };
	loop = { type = "loopback"; }; };
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; } ); idle_stop = true;'
echo "$nodes" | sed 's/LIMIT/limit = 1/' >"$dir/one.conf"
echo "$nodes" | sed 's/LIMIT//' >"$dir/on.conf"

now() {
	date +%s%N
}

median() {
	sort -n "$1" | sed -n "$((($(wc -l <"$1") + 1) / 2))p"
}

i=0
while [ $i -lt "$runs" ]; do
	start=$(now)
	"$busbar" run -q -d error --summary=none "$dir/one.conf" || exit 1
	end=$(now)
	echo $(((end - start) / 1000)) >>"$dir/out"

	start=$(now)
	"$busbar" run -q -d info --summary=none "$dir/on.conf" 2>"$dir/log" &
	pid=$!
	until grep -q 'is running' "$dir/log"; do
		kill -0 $pid 2>/dev/null || exit 1
	done
	end=$(now)
	echo $(((end - start) / 1000)) >>"$dir/up"
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status >>"$dir/rss"
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status >>"$dir/anon"
	kill $pid
	wait $pid
	i=$((i + 1))
done

out=$(median "$dir/out") up=$(median "$dir/up") rss=$(median "$dir/rss")
anon=$(median "$dir/anon")
echo "start to first sample and out   $out us"
echo "start until it runs             $up us (with the look at its log)"
echo "resident while it runs          $rss KiB, of them $anon KiB its own"
[ "$out" -lt 50000 ] && [ "$rss" -lt 16384 ]
