#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# fields_tshark.sh DUMP FIXTURE PACKETS [CAPTURE]: tshark as referee of the reader of capture files: all
# fields that dump.c prints are the same, in files of every link type and format (FIXTURE), in more
# than 1,000 packets with random headers (PACKETS; SEED in the environment), and in captures of the
# adapter (the test CAPTURE).
set -u
dump=${1:?the program dump} fixture=${2:?the program fixture} packets=${3:?the program packets}
capture=${4:-}
command -v tshark >/dev/null && command -v mergecap >/dev/null || exit 77
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-fields.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "seed $seed"
failed=0

# theirs FILE: as dump.c prints it with `between`.
theirs() {
	tshark -r "$1" -Y infiniband.bth.opcode -T fields -E separator=, -E occurrence=f \
		-e frame.number -e frame.time_epoch -e infiniband.bth.opcode -e infiniband.bth.destqp \
		-e infiniband.bth.psn -e infiniband.bth.p_key -e infiniband.bth.a \
		-e infiniband.aeth.syndrome -e infiniband.aeth.msn -e infiniband.immdt \
		-e infiniband.reth.va -e infiniband.reth.dmalen -e infiniband.reth.r_key \
		-e ip.src -e ipv6.src -e infiniband.lrh.slid -e ip.dst -e ipv6.dst -e infiniband.lrh.dlid \
		-e ip.dsfield.ecn -e ipv6.tclass.ecn 2>/dev/null </dev/null |
		python3 -c '
import sys
for line in sys.stdin:
    f = line.rstrip("\n").split(",")
    out = f[:5] + [str(int(f[5], 0)), str(int(f[6] in ("1", "True")))]
    for name, text in zip(("syndrome", "message", "immediate"), f[7:10]):
        if text:
            out += [name, str(int(text.replace(":", ""), 16 if name == "immediate" else 0))]
    for name, text in zip(("address", "length", "key"), f[10:13]):
        if text:
            out += [name, text]
    for name, texts in (("from", f[13:16]), ("to", f[16:19])):
        text = [t for t in texts if t][-1]
        out += [name, str(int(text, 0)) if "." not in text and ":" not in text else text]
    if "3" in f[19:21]:
        out.append("marked")
    print(*out)'
}

# ours FILE: dump.c's lines, which are added to those of other files.
ours() {
	"$dump" "$1" between >>"$dir/ours" || {
		echo "failed: $1 is not read"
		failed=1
	}
}

# compare FILE WHAT: the fields of both, packet by packet, but for the number of a packet where FILE
# was made of several.
compare() {
	theirs "$1" >"$dir/theirs"
	if [ "$2" = merged ]; then
		for side in ours theirs; do
			cut -d ' ' -f 2- "$dir/$side" >"$dir/cut" && mv "$dir/cut" "$dir/$side"
		done
	fi
	[ -s "$dir/ours" ] && diff "$dir/ours" "$dir/theirs" >"$dir/diff" || {
		echo "failed: tshark reads other fields ($2, seed $seed)"
		head -10 "$dir/diff"
		failed=1
	}
}

# One run of tshark for all, as its start takes seconds.
number=0
while read -r link format options; do
	number=$((number + 1))
	case $options in
	fixture) "$fixture" fig5.3 "$link" "$format" >"$dir/$number.part" || failed=1 ;;
	# shellcheck disable=SC2086 # several words
	*) "$packets" 120 "$seed" "$link" "$format" $options >"$dir/$number.part" || failed=1 ;;
	esac
	ours "$dir/$number.part"
done <<-END
	1 pcap fixture
	113 pcap- fixture
	101 pcapng- fixture
	197 pcap fixture
	276 pcapng fixture
	1 pcap
	1 pcapng- ip6
	1 pcap- tagged
	1 pcapng tagged ip6
	101 pcap-
	101 pcapng ip6
	113 pcapng
	113 pcap ip6
	276 pcap
	276 pcapng- ip6
	228 pcap
	229 pcapng
	197 pcapng-
	197 pcap tagged
END
# shellcheck disable=SC2046 # numbers
mergecap -a -w "$dir/merged" $(seq -f "$dir/%g.part" "$number") || exit 1
compare "$dir/merged" merged
compared=$(wc -l <"$dir/ours")
[ "$compared" -ge 1500 ] || {
	echo "failed: only $compared packets were compared"
	failed=1
}
echo "$compared packets of all link types are read as by tshark"

# Wireshark reads InfiniBand in ERF records and not link type 247: the same packets in both.
for link in 197 247; do
	"$packets" 500 "$seed" "$link" pcap >"$dir/$link" && "$dump" "$dir/$link" between >"$dir/$link.txt" ||
		failed=1
done
cmp "$dir/197.txt" "$dir/247.txt" && [ "$(wc -l <"$dir/247.txt")" -eq 500 ] || {
	echo "failed: other fields with link type 247, seed $seed"
	failed=1
}

if [ -n "$capture" ]; then
	CAPTURED_IN=$dir "$capture" >"$dir/log" 2>&1 || {
		cat "$dir/log"
		failed=1
	}
	mergecap -w "$dir/all" "$dir"/*.pcapng || exit 1
	: >"$dir/ours"
	ours "$dir/all"
	compare "$dir/all" "packets of the adapter"
fi
exit $failed
