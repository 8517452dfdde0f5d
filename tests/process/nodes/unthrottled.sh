#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Generators that wait for nothing write into files of both line formats, and through
# nodes that block when they are full: each sample is there once, in order.
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

# through NAME TO FROM: the nodes of one way, by their settings.
through() {
	cat >"$tmp/run.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = { type = "signal"; realtime = false; limit = $count; values = 8; };
			to = { $2 };
			from = { $3 };
			f = {
				type = "file"; uri = "$tmp/out"; format = "csv";
				out = { append = false; };
			};
		};
		paths = (
			{ in = "g"; out = "to"; original_sequence_no = true; },
			{ in = "$4"; out = "f"; original_sequence_no = true; }
		);
	CONF
	start run
	# It ends by itself where the end is passed on.
	until_true arrived
	kill -INT "$last" 2>/dev/null || true
	ends "$last"
	grep -v '^#' "$tmp/out" | cut -d, -f4 >"$tmp/numbers"
	seq 0 $((count - 1)) | cmp - "$tmp/numbers" ||
		fail "through $1: not all samples once and in order"
}

arrived() {
	has_ended "$last" ||
		{ [ -f "$tmp/out" ] && [ "$(grep -vc '^#' "$tmp/out")" -ge "$count" ]; }
}

rm -f "$tmp/out"
through loopback 'type = "loopback"; full = "block"; queuelen = 64;' \
	'type = "loopback"; enabled = false;' to
rm -f "$tmp/out"
name=/busbar-shmem-unthrottled-$$
through shmem "type = \"shmem\"; out = { name = \"$name\"; full = \"block\"; };" \
	"type = \"shmem\"; in = { name = \"$name\"; };" from
