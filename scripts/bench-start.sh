#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-start.sh BUILD OTHER: what a small gateway (a generator and a loopback) takes until it runs,
# and its memory, with two builds of busbar in turns: for a change that must cost nothing where it is
# not used. Times are those of `busbar bench start`; it adds the turns, the memory of a running
# gateway as the kernel shares it out (PSS), and the instructions of a gateway that makes one sample
# and ends (valgrind, if it is here), which other programs at work do not change.
#
#   RUNS   turns (30)
#
# Medians of the turns, and of the ratios of the turns; behind a ratio stand the lowest and the
# highest. Below it, the libraries that a running gateway of BUILD has loaded.
set -eu
cd "$(dirname "$0")/.."
RUNS=${RUNS:-30}
[ $# -eq 2 ] || {
	echo "usage: $0 BUILD OTHER" >&2
	exit 2
}
ours=$(realpath "$1")/busbar other=$(realpath "$2")/busbar
for program in "$ours" "$other"; do
	[ -x "$program" ] || {
		echo "$program is not there" >&2
		exit 1
	}
done
OUT=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-start.XXXXXX")
. scripts/gateways.sh
at_end() {
	rm -rf "$OUT"
}

# configuration LIMIT: as in `busbar bench start`
configuration() {
	cat <<-CONF
		idle_stop = true;
		nodes = {
			sig = { type = "signal"; signal = "sine"; rate = 1000.0; values = 64; $1 };
			loop = { type = "loopback"; };
		};
		paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; } );
	CONF
}
configuration '' >"$OUT/stays.conf"
configuration 'limit = 1;' >"$OUT/ends.conf"

# field NAME FILE: the number behind NAME, in KiB, of a file of /proc
field() {
	awk -v name="$1:" '$1 == name { print $2 }' "$2"
}

# turn NAME PROGRAM: a line for each figure
turn() {
	"$2" bench start --runs 1 --json >"$OUT/json"
	awk -v name="$1" '
		/"running":/ { running = 1 }
		/"p50":/ { printf "%s %s %f\n", name, running ? "running" : "ends", $2 / 1e6 }
		/"anon":/ { anon = 1 }
		/"value":/ && anon { print name, "anon", $2 + 0 }' "$OUT/json" >>"$OUT/values"
	start gateway "$2" run -q --summary=none "$OUT/stays.conf"
	wait_log gateway "$pid" 1 'is running'
	{
		echo "$1 peak $(field VmHWM "/proc/$pid/status")"
		echo "$1 pss $(field Pss "/proc/$pid/smaps_rollup")"
	} >>"$OUT/values"
	[ "$1" != ours ] || awk '/\.so/ { n = split($6, part, "/"); print part[n] }' "/proc/$pid/maps" |
		sort -u >"$OUT/libraries"
	kill -TERM "$pid"
	finish gateway "$pid" 10
	pids=
}

run=0
while [ "$run" -lt "$RUNS" ]; do
	turn ours "$ours"
	turn other "$other"
	run=$((run + 1))
done
if command -v valgrind >/dev/null; then
	for name in ours other; do
		[ "$name" = ours ] && program=$ours || program=$other
		valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" run -q --summary=none \
			"$OUT/ends.conf" >"$OUT/valgrind" 2>&1 || {
			cat "$OUT/valgrind" >&2
			die "valgrind has failed"
		}
		awk -v name="$name" '/Collected/ { print name, "instructions", $NF / 1e3 }' \
			"$OUT/valgrind" >>"$OUT/values"
	done
fi

middle() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
}
# row FIGURE UNIT TEXT
row() {
	for name in ours other; do
		awk -v name="$name" -v figure="$1" '$1 == name && $2 == figure { print $3 }' "$OUT/values" \
			>"$OUT/$name"
	done
	[ -s "$OUT/ours" ] || return 0
	echo "$(middle <"$OUT/ours") $(middle <"$OUT/other")" \
		"$(paste "$OUT/ours" "$OUT/other" | awk '{ print $1 / $2 }' | middle)" |
		awk -v text="$3" -v unit="$2" '{ printf "%-42s %9.1f %9.1f %-4s %6.3f %.3f-%.3f\n", text, $1,
			$4, unit, $7, $8, $9 }'
}
echo "$RUNS turns"
printf '%-42s %9s %9s %-4s %6s %s\n' '' build other '' ratio '(turns)'
row running ms 'from the start until it runs'
row ends ms 'from the start to one sample and its end'
row peak KiB 'most that was resident (VmHWM)'
row pss KiB 'proportional share while it runs (PSS)'
row anon KiB 'its own memory while it runs (RssAnon)'
row instructions k 'instructions, one sample and its end'
echo "loaded: $(tr '\n' ' ' <"$OUT/libraries")"
