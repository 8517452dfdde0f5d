#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark as referee of the streams that iwarp_dump writes: MPA frames, every opcode, TERMINATEs,
# markers and CRCs. Left out: immediate data, which tshark 4.0 does not know (it reads the DDP
# header); the headers in a TERMINATE of layer RDMAP, of which it takes the one of DDP to have 14
# bytes; the payload behind the second marker of an FPDU, where it removes markers wrongly.
set -u
dump=$1
command -v tshark >/dev/null || exit 77
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
"$dump" >"$dir/pcapng" || exit 1

# It takes the payload of a SEND for that of protocols above.
show() {
	tshark -r "$dir/pcapng" --disable-protocol rpcordma --disable-protocol smb_direct "$@" \
		2>/dev/null
}
m=iwarp_mpa d=iwarp_ddp r=iwarp_rdma a=iwarp_rdma.atomic t=iwarp_rdma.term
# One run of tshark shows these fields of all frames, as its start takes half a second.
show -T fields -E header=y -E aggregator=+ \
	-e tcp.port -e $d -e $m.key.req -e $m.key.rep -e $m.marker_flag -e $m.crc_flag \
	-e $m.rej_flag -e $m.res -e $m.rev -e $m.pdlength -e $m.privatedata -e $m.ulpdulength \
	-e $d.tagged_flag -e $d.last_flag -e $d.dv -e $r.version -e $r.opcode -e $d.stag \
	-e $d.tagged_offset -e $r.inval_stag -e $d.qn -e $d.msn -e $d.mo -e $r.sinkstag \
	-e $r.sinkto -e $r.rdmardsz -e $r.srcstag -e $r.srcto -e $a.opcode -e $a.request_identifier \
	-e $a.remote_stag -e $a.remote_tagged_offset -e $a.add_data -e $a.add_mask -e $a.swap_data \
	-e $a.swap_mask -e $a.compare_data -e $a.compare_mask -e $a.original_request_identifier \
	-e $a.original_remote_data_value -e ${t}_layer -e ${t}_etype_rdma -e ${t}_etype_ddp \
	-e ${t}_etype_llp -e ${t}_errcode_rdma -e ${t}_errcode_ddp_tagged \
	-e ${t}_errcode_ddp_untagged -e ${t}_errcode_llp -e ${t}_hdrct_m -e $r.hdrct_d \
	-e $r.hdrct_r -e ${t}_ddp_seg_len -e ${t}_ddp_h -e tcp.srcport \
	-e $m.marker_fpduptr >"$dir/shown"
# fields CONDITION FIELD...: of the frames with CONDITION, one NAME~REGULAR_EXPRESSION or two with a
# comma between them.
fields() {
	awk -F '\t' -v wanted="$*" '
		NR == 1 {
			for (i = 1; i <= NF; i++)
				column[$i] = i
			n = split(wanted, field, " ")
			conditions = split(field[1], condition, ",")
			next
		}
		{
			for (i = 1; i <= conditions; i++) {
				split(condition[i], pair, "~")
				if ($column[pair[1]] !~ pair[2])
					next
			}
			for (i = 2; i <= n; i++)
				printf "%s%s", $column[field[i]], i < n ? "," : "\n"
		}' "$dir/shown"
}
failed=0
# expect WHAT CONDITION FIELD...: standard input is what tshark shall print.
expect() {
	what=$1
	shift
	cat >"$dir/want"
	fields "$@" >"$dir/got"
	diff "$dir/want" "$dir/got" || {
		echo "failed: $what"
		failed=1
	}
}

expect 'frames of MPA' $m.pdlength~. $m.key.req $m.key.rep $m.marker_flag $m.crc_flag \
	$m.rej_flag $m.res $m.rev $m.pdlength $m.privatedata <<'END'
4d504120494420526571204672616d65,,0,1,0,0x10,2,9,8010c00868656c6c6f
,4d504120494420526570204672616d65,0,1,0,0x10,2,4,80088010
4d504120494420526571204672616d65,,1,1,0,0x10,2,9,8010c00868656c6c6f
,4d504120494420526570204672616d65,1,1,0,0x10,2,4,80088010
END
expect 'headers of DDP' tcp.port~5001,$d~. $m.ulpdulength $d.tagged_flag $d.last_flag \
	$d.dv $r.version $r.opcode $d.stag $d.tagged_offset $r.inval_stag $d.qn $d.msn \
	$d.mo <<'END'
14,1,1,1,1,0x00,0x00000001,0x0000000000000000,,,,
47,1,0,1,1,0x00,0x01020304,0x1112131415161718,,,,
46,0,1,1,1,0x01,,,,1,1,0
22,1,1,1,1,0x02,0x01020304,0x1112131415161718,,,,
38,0,0,1,1,0x03,,,,0,3,103
38,0,1,1,1,0x04,,,1094861636,0,4,104
38,0,1,1,1,0x05,,,,0,5,105
38,0,1,1,1,0x06,,,1094861636,0,6,106
26,0,1,1,1,0x08,,,,0,8,0
26,0,1,1,1,0x09,,,,0,9,0
70,0,1,1,1,0x0a,,,,1,2,0
70,0,1,1,1,0x0a,,,,1,3,0
30,0,1,1,1,0x0b,,,,3,1,0
22,0,1,1,1,0x07,,,,2,1,0
22,0,1,1,1,0x07,,,,2,1,0
38,0,1,1,1,0x07,,,,2,1,0
42,0,1,1,1,0x07,,,,2,1,0
70,0,1,1,1,0x07,,,,2,1,0
22,0,1,1,1,0x07,,,,2,1,0
64+64,1+1,0+0,1+1,1+1,0x00+0x00,0x00000071+0x00000072,0x0000000000000000+0x0000000000000000,,,,
1014,1,0,1,1,0x00,0x00000073,0x0000000000000000,,,,
END
expect 'READ request' $r.opcode~0x01 $r.sinkstag $r.sinkto $r.rdmardsz $r.srcstag \
	$r.srcto <<'END'
0x01020304,0x1112131415161718,4096,0x21222324,0x3132333435363738
END
expect 'atomics' "$r.opcode~0x0[ab]" $a.opcode $a.request_identifier \
	$a.remote_stag $a.remote_tagged_offset $a.add_data $a.add_mask $a.swap_data \
	$a.swap_mask $a.compare_data $a.compare_mask $a.original_request_identifier \
	$a.original_remote_data_value <<'END'
0,77,16909060,1230066625199609624,3,0x0000000000000004,,,5,0x0000000000000006,,
2,78,16909060,1230066625199609624,,,3,0x0000000000000004,5,0x0000000000000006,,
,,,,,,,,,,77,99
END
expect 'TERMINATE' $r.opcode~0x07 ${t}_layer ${t}_etype_rdma ${t}_etype_ddp ${t}_etype_llp \
	${t}_errcode_rdma ${t}_errcode_ddp_tagged ${t}_errcode_ddp_untagged ${t}_errcode_llp \
	${t}_hdrct_m $r.hdrct_d $r.hdrct_r ${t}_ddp_seg_len <<'END'
0x02,,,0x00,,,,0x02,0,0,0,
0x02,,,0x00,,,,0x07,0,0,0,
0x01,,0x01,,,0x01,,,1,1,0,000e
0x01,,0x02,,,,0x05,,1,1,0,002e
0x00,0x01,,,0x02,,,,1,1,1,002e
0x00,0x02,,,0x06,,,,0,0,0,
END
expect 'headers in a TERMINATE of DDP' ${t}_layer~0x01 ${t}_ddp_h <<'END'
c140000000610000000000000000
414100000000000000010000000500000000
END

# Where the markers of each FPDU stand, from the lengths alone.
fields tcp.port~5002,$d~. tcp.srcport $m.ulpdulength $m.marker_fpduptr >"$dir/markers"
awk -F, '
	{
		content = 2 + $2
		content += (4 - content % 4) % 4 + 4
		pointers = ""
		length_at = -1
		for (left = content; left > 0; ) {
			if (at[$1] % 512 == 0) {
				pointer = length_at < 0 ? 0 : at[$1] - length_at
				pointers = pointers (pointers == "" ? "" : "+") pointer
				at[$1] += 4
				count++
			}
			if (length_at < 0)
				length_at = at[$1]
			at[$1] += 4
			left -= 4
		}
		if (pointers != $3) {
			print "FPDU " NR ": markers point back " $3 ", not " pointers
			wrong = 1
		}
	}
	END { exit wrong || NR < 60 || count < 100 }' "$dir/markers" || {
	echo 'failed: markers'
	failed=1
}

show -V >"$dir/all"
good=$(grep -c 'Good CRC32' "$dir/all")
all=$(grep -c 'ULPDU length: ' "$dir/all")
if [ "$good" -ne "$all" ] || [ "$good" -lt 80 ] || grep -qiE 'Bad CRC|Malformed|Bad length' "$dir/all"; then
	echo "failed: $good good CRCs of $all"
	failed=1
fi
exit $failed
