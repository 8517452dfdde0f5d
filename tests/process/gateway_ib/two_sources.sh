#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A path that reads two infiniband nodes: every sample of both senders leads to
# one output, whatever the rates. When both nodes sleep by descriptors the path
# needs no thread for either of them; when one of them polls for ever
# (POLLING2=busy) each has a thread of its own.
. "$(dirname "$0")/common.sh"

: "${POLLING:=event}" "${POLLING2:=event}"

# source NAME PORT POLLING: a node of two values, inside `nodes`.
source_node() {
	cat <<-CONF
		$1 = {
			type = "infiniband";
			in = {
				address = "127.0.0.1:$2"; polling = "$3";
				max_wrs = 512; cq_size = 512; buffer_subtraction = 64;
				signals = { count = 2; type = "float"; };
			};
		};
	CONF
}

{
	echo "nodes = {"
	source_node left "$port" "$POLLING"
	source_node right $((port + 1)) "$POLLING2"
	cat <<-CONF
			f = {
				type = "file"; format = "csv"; uri = "$tmp/both.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = ( "left", "right" ); out = "f"; mode = "any"; } );
	CONF
} >"$tmp/both.conf"

# counter NAME PORT RATE COUNT: sends the numbers from 0 to COUNT - 1, except
# for steps that this machine was too late for, and keeps a copy.
counter() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = {
				type = "signal"; signal = "counter"; values = 2;
				rate = $3; limit = $4;
			};
			ib = {
				type = "infiniband";
				# Deep, for a receiver that does not run for a while.
				out = {
					address = "127.0.0.1:$2"; max_inline_data = 128;
					max_wrs = 8192; cq_size = 8192;
				};
			};
			copy = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv"; out = { };
			};
		};
		paths = ( { in = "g"; out = ( "ib", "copy" ); } );
	CONF
	run "$1"
}

# numbers NAME VALUE: the numbers of one sender, in the order of the file. VALUE is its
# place among the values. An output is as long as the senders have delivered; until the
# first sample of a sender its place holds 0, which is left out too.
numbers() {
	grep -v '^#' "$tmp/$1.csv" |
		awk -F, -v field="$((4 + $2))" 'NF >= field { print $field + 0 }' | uniq | grep -vx 0
}

run both
both_pid=$last
until_true logged both 2 'listening on'
counter slow "$port" 250 500
slow_pid=$last
counter fast $((port + 1)) 2000 4000
fast_pid=$last

# own_threads N: so many threads are for one source alone.
own_threads() {
	[ "$(cat "/proc/$both_pid"/task/*/comm | grep -c -x -e left -e right)" -eq "$1" ]
}
until_true logged both 1 'is running'
case $POLLING,$POLLING2 in
*busy*) until_true own_threads 2 ;;
*) own_threads 0 || fail "there are threads for sources" ;;
esac

ends "$slow_pid"
ends "$fast_pid"
sent=$(($(cat "$tmp/slow.csv" "$tmp/fast.csv" | grep -vc '^#') - $(absent slow fast)))
until_true has_rows both "$sent"
stops "$both_pid"
rows=$(grep -vc '^#' "$tmp/both.csv")
[ "$rows" -eq "$sent" ] || fail "$rows outputs of $sent samples"
numbers slow 1 >"$tmp/slow"
numbers fast 1 >"$tmp/fast"
numbers both 1 >"$tmp/left"
numbers both 3 >"$tmp/right"
[ "$(wc -l <"$tmp/slow")" -gt 100 ] || fail "hardly anything was sent"
for pair in slow:left fast:right; do
	tail -n "$(wc -l <"$tmp/${pair#*:}")" "$tmp/${pair%:*}" | cmp - "$tmp/${pair#*:}" ||
		fail "the samples of one sender are not all there in order"
done
exit 0
