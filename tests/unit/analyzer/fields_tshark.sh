#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# fields_tshark.sh DUMP FIXTURE [CAPTURE]: tshark as referee of the reader of capture files:
# opcode, QP, PSN, syndrome, address, length and time of each packet are the same, in files of
# every link type and format (FIXTURE), and in captures of the adapter (the test CAPTURE).
set -u
dump=${1:?the program dump} fixture=${2:?the program fixture} capture=${3:-}
command -v tshark >/dev/null || exit 77
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
		-e infiniband.reth.dmalen 2>/dev/null |
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
for link in 1 101 113 197 276; do
	for format in pcap pcap- pcapng pcapng-; do
		case "$link$format" in
		1pcap | 101pcapng- | 113pcap- | 197pcap | 197pcapng- | 276pcapng) ;;
		*) continue ;; # each link type and each format, not each pair
		esac
		"$fixture" fig5.3 "$link" "$format" >"$dir/fixture" || failed=1
		compare "$dir/fixture" "$link $format"
	done
done
if [ -n "$capture" ]; then
	CAPTURED_IN=$dir "$capture" >"$dir/log" 2>&1 || {
		cat "$dir/log"
		failed=1
	}
	for file in "$dir"/*.pcapng; do
		compare "$file" "of the adapter"
	done
fi
exit $failed
