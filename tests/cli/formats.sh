#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# formats.sh SOURCE: the example of formats writes what can be read again, what a
# format cannot hold is refused with the signal's name, and the benchmark of the
# formats gives figures.
set -u
: "${BUSBAR:?set it to the busbar executable}"
cd "${1:?the source folder}" || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-formats.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "failed: $*"
	exit 1
}

if ! "$BUSBAR" --help | grep -q '^  run '; then
	echo "skipped: this build has no 'busbar run'"
	exit 77
fi

# Without pace no step is missed, however busy the machine is.
sed 's/rate = 10000/realtime = false/' examples/formats.conf >"$tmp/formats.conf"
OUT=$tmp "$BUSBAR" run "$tmp/formats.conf" >"$tmp/log" 2>&1 ||
	fail "examples/formats.conf: $(cat "$tmp/log")"
[ "$(wc -c <"$tmp/samples.gtnet")" -eq $((10000 * 6 * 4)) ] || fail "size of gtnet"
[ "$(wc -l <"$tmp/samples.json")" -eq 10000 ] || fail "lines of json"

# replay FORMAT FILE TO: as fast as it goes, as csv.
replay() {
	cat >"$tmp/replay.conf" <<-END
	idle_stop = true;
	nodes = {
		from = { type = "file"; uri = "$tmp/$2"; format = $1; $4
			in = { epoch_mode = "original"; }; };
		to = { type = "file"; uri = "$tmp/$3"; format = "csv";
			out = { append = false; }; };
	};
	paths = ( { in = "from"; out = "to"; } );
	END
	"$BUSBAR" run "$tmp/replay.conf" >"$tmp/log" 2>&1 ||
		fail "replay of $2: $(cat "$tmp/log")"
	grep -v '^#' "$tmp/$3" | cut -d, -f1,2,4- >"$tmp/$3.cut"
	[ "$(wc -l <"$tmp/$3.cut")" -eq 10000 ] || fail "$2: $(wc -l <"$tmp/$3.cut") of 10000 samples"
}

replay '"busbar.binary"' samples.bin bin.csv ''
replay '"json"' samples.json json.csv 'signals = "3f";'
cmp "$tmp/bin.csv.cut" "$tmp/json.csv.cut" || fail "json and busbar.binary differ"
replay '{ type = "gtnet"; fake = true; }' samples.gtnet gtnet.csv 'signals = "3f";'
# Single precision: the counter is exact, the rest close.
cut -d, -f1-3,6 "$tmp/bin.csv.cut" >"$tmp/a"
cut -d, -f1-3,6 "$tmp/gtnet.csv.cut" >"$tmp/b"
cmp "$tmp/a" "$tmp/b" || fail "gtnet and busbar.binary differ"

# A type that the format cannot hold.
cat >"$tmp/refused.conf" <<END
nodes = {
	from = { type = "file"; uri = "$tmp/samples.json"; format = "json";
		signals = ( { name = "breaker"; type = "boolean"; } ); in = { }; };
	to = { type = "file"; uri = "$tmp/refused"; format = "villas.binary"; out = { }; };
};
paths = ( { in = "from"; out = "to"; } );
END
"$BUSBAR" check "$tmp/refused.conf" >"$tmp/log" 2>&1 && fail "a boolean in villas.binary was accepted"
grep -q "refused.conf:4: .*'breaker' is boolean" "$tmp/log" || fail "no reason: $(cat "$tmp/log")"

"$BUSBAR" bench formats --json -t 0.01 csv busbar.binary >"$tmp/bench" || fail "bench formats"
python3 - "$tmp/bench" <<'END' || fail "bench formats: $(cat "$tmp/bench")"
import json, sys
got = json.load(open(sys.argv[1]))["formats"]
assert sorted(got) == ["busbar.binary", "csv"]
for f in got.values():
    assert f["write_samples_per_s"] > 0 and f["read_samples_per_s"] > 0
assert got["busbar.binary"]["bytes_per_sample"] == 56 + 8 * 8
END
"$BUSBAR" bench formats nonsense 2>/dev/null
[ $? -eq 2 ] || fail "an unknown format is no usage error"
echo "all formats as they should"
