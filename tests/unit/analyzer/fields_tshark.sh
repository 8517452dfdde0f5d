#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# fields_tshark.sh DUMP FIXTURE [CAPTURE]: tshark as referee of the reader of capture files:
# opcode, QP, PSN, syndrome, address, length and time of each packet are the same, in files of
# every link type and format (FIXTURE), and in captures of the adapter (the test CAPTURE).
set -u
dump=${1:?the program dump} fixture=${2:?the program fixture} capture=${3:-}
command -v tshark >/dev/null && command -v mergecap >/dev/null || exit 77
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-fields.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# compare FILE WHAT: the fields of both, packet by packet.
compare() {
	"$dump" "$1" >"$dir/ours" || {
		echo "failed: $1 is not read"
		failed=1
	}
	tshark -r "$1" -Y infiniband.bth.opcode -T fields -E separator=, \
		-e frame.number -e frame.time_epoch -e infiniband.bth.opcode -e infiniband.bth.destqp \
		-e infiniband.bth.psn -e infiniband.aeth.syndrome -e infiniband.reth.va \
		-e infiniband.reth.dmalen 2>/dev/null </dev/null |
		awk -F, '{
			line = $1 " " $2 " " $3 " " $4 " " $5
			if ($6 != "") line = line " syndrome " $6
			if ($7 != "") line = line " address " $7
			if ($8 != "") line = line " length " $8
			print line
		}' >"$dir/theirs"
	[ -s "$dir/ours" ] && diff "$dir/ours" "$dir/theirs" >"$dir/diff" || {
		echo "failed: tshark reads other fields in $1 ($2)"
		head -10 "$dir/diff"
		failed=1
	}
}

# Wireshark reads InfiniBand in ERF records and not link type 247.
while read -r link format; do
	"$fixture" fig5.3 "$link" "$format" >"$dir/fixture" || failed=1
	compare "$dir/fixture" "$link $format"
done <<-END
	1 pcap
	113 pcap-
	101 pcapng-
	197 pcap
	276 pcapng
END
if [ -n "$capture" ]; then
	CAPTURED_IN=$dir "$capture" >"$dir/log" 2>&1 || {
		cat "$dir/log"
		failed=1
	}
	mergecap -w "$dir/all" "$dir"/*.pcapng || exit 1
	compare "$dir/all" "of the adapter"
fi
exit $failed
