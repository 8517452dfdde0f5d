#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# scl.sh STATION: `busbar scl` lists the control blocks of an engineering file, and the
# configurations that it prints are good as they stand.
#
#   BUSBAR   the program
set -eu
station=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

"$BUSBAR" scl "$station" >"$dir/list"
grep -Eq '^GOOSE +BAY1 +LD0/LLN0.trip +0x1001 +01-0C-CD-01-00-01 +5/4 +7$' "$dir/list" || fail "the list: $(cat "$dir/list")"
grep -Eq '^sampled +MU01 +MU/LLN0.currents +0x4001 +01-0C-CD-04-00-01 +26/4 +4$' "$dir/list" || fail "the list: $(cat "$dir/list")"
[ "$("$BUSBAR" scl -i MU01 "$station" | wc -l)" = 2 ] || fail "only those of one device"

# A path that writes what the nodes want, for the names of signals.
for way in read write; do
	"$BUSBAR" scl --$way --interface lo "$station" >"$dir/$way.conf"
	"$BUSBAR" check "$dir/$way.conf" || fail "$(cat "$dir/$way.conf")"
done
grep -q 'index = 2; member = "0.1.0"; mms_type = "float32"' "$dir/read.conf" || fail "a member"
sed 's/^};$//' "$dir/write.conf" >"$dir/path.conf"
cat >>"$dir/path.conf" <<-END
		source = { type = "loopback"; in = { signals = ( { name = "LD0/PTRC1.Tr.general"; type = "boolean"; },
			{ name = "LD0/MMXU1.A.phsA.cVal.mag.f"; }, { name = "LD0/MMXU1.A.phsA.cVal.ang.f"; },
			{ name = "LD0/XCBR1.Pos.stVal"; type = "integer"; } ); }; };
	};
	paths = ( { in = "source"; out = "BAY1_LD0_LLN0_trip"; } );
END
"$BUSBAR" check "$dir/path.conf" || fail "$(cat "$dir/path.conf")"

# Routed ones.
sed -e '/<GSEControl/s#/>#><Protocol mustUnderstand="true">R-GOOSE</Protocol></GSEControl>#' \
	-e 's#<P type="MAC-Address">01-0C-CD-01-00-01#<P type="IP">239.1.2.3#' "$station" >"$dir/routed.scd"
for way in read write; do
	"$BUSBAR" scl --$way --interface lo -i BAY1 "$dir/routed.scd" >"$dir/routed.conf"
	"$BUSBAR" check "$dir/routed.conf" || fail "$(cat "$dir/routed.conf")"
	grep -q 'routed = true' "$dir/routed.conf" || fail "$(cat "$dir/routed.conf")"
	grep -q '"239.1.2.3"' "$dir/routed.conf" || fail "$(cat "$dir/routed.conf")"
done

# Two nodes do not get one name.
sed 's/"BAY1"/"A.B"/g; s/"MU01"/"A_B"/g; s/"MU"/"LD0"/g; s/"currents"/"trip"/g' "$station" >"$dir/same.scd"
"$BUSBAR" scl -w -n lo "$dir/same.scd" >"$dir/same.conf"
"$BUSBAR" check "$dir/same.conf" || fail "$(cat "$dir/same.conf")"

# Nor do two signals.
for prefix in '' 'prefix = "b.";'; do
	cat >"$dir/signals.conf" <<-END
		nodes = { x = { type = "iec61850-8-1"; in = { subscribers = {
			a = { scl = { file = "$station"; control = "LD0/LLN0.trip"; }; };
			b = { scl = { file = "$station"; control = "LD0/LLN0.trip"; $prefix }; }; }; }; }; };
	END
	status=0
	"$BUSBAR" check "$dir/signals.conf" 2>"$dir/errors" || status=$?
	[ "${prefix:+0}" = "$status" ] || grep -q "two values have the name 'LD0/" "$dir/errors" ||
		fail "'$prefix': $status, $(cat "$dir/errors")"
done

# A name is a name: neither a variable of the environment, nor a command to a terminal.
c1=$(printf '\302\233')
sed "s/PTRC\"/PT$c1\${HOME}\"/g" "$station" >"$dir/names.scd"
"$BUSBAR" scl -r -n lo -i BAY1 "$dir/names.scd" >"$dir/names.conf"
grep -Fq '"LD0/PT\xc2\x9b$${HOME}1.Tr.general"' "$dir/names.conf" || fail "$(cat "$dir/names.conf")"
"$BUSBAR" check "$dir/names.conf"
sed "s/name=\"trip\"/name=\"a\&#10;$c1\"/" "$station" >"$dir/names.scd"
"$BUSBAR" scl -i BAY1 "$dir/names.scd" >"$dir/list"
grep -Eq '^GOOSE +BAY1 +LD0/LLN0.a\?\?\? ' "$dir/list" || fail "$(cat "$dir/list")"

# Addresses of one host, and of IPv6.
for ip in 10.1.2.3 ff05::1234; do
	sed "s/239.1.2.3/$ip/" "$dir/routed.scd" >"$dir/ip.scd"
	for way in read write; do
		"$BUSBAR" scl --$way --interface lo -i BAY1 "$dir/ip.scd" >"$dir/ip.conf"
		"$BUSBAR" check "$dir/ip.conf" || fail "$(cat "$dir/ip.conf")"
	done
done

# What is wrong has its line, and the other control blocks are there all the same.
sed 's/lnType="PTRC"/lnType="none"/' "$station" >"$dir/bad.scd"
status=0
"$BUSBAR" scl "$dir/bad.scd" >"$dir/list" 2>"$dir/errors" || status=$?
[ "$status" = 1 ] || fail "status $status"
grep -q "bad.scd:[0-9]*: there is no LNodeType 'none'" "$dir/errors" || fail "$(cat "$dir/errors")"
grep -q MU01 "$dir/list" || fail "the other control block"
for file in "$dir" "$dir/none" /dev/zero /dev/null; do
	status=0
	"$BUSBAR" scl "$file" >/dev/null 2>"$dir/errors" || status=$?
	[ "$status" = 2 ] && [ -s "$dir/errors" ] || fail "$file: status $status"
done
