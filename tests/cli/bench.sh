#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `busbar bench run`: measures a suite into a folder, ends at Ctrl-C with what it has, goes on
# with the rest, and says what is wrong in a suite. Measures take milliseconds here.
set -u
: "${BUSBAR:?set it to the busbar executable}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench.XXXXXX")
cd "$tmp" || exit 1
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; cd /; rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

# expect STATUS COMMAND...: output in out.txt
expect() {
	want=$1
	shift
	timeout 60 "$BUSBAR" bench "$@" >out.txt 2>&1
	got=$?
	[ "$got" -eq "$want" ] || { fail "busbar bench $*: status $got, not $want"; cat out.txt; }
}

says() {
	grep -q -- "$1" out.txt || { fail "nothing like '$1' in"; cat out.txt; }
}

cat >three.suite <<'EOF'
title = "three measures";
cases = ( { scenario = "three"; kind = "floor";
	measure = [ "clock_ticks_ns", "clock_gettime_ns", "system_call_ns" ]; } );
EOF
cat >many.suite <<'EOF'
title = "many";
cases = ( { scenario = "many"; kind = "floor"; measure = "clock_ticks_ns";
	together = ( { name = "a"; measure = "clock_ticks_ns"; }, { name = "b"; measure = "clock_ticks_ns"; },
		{ name = "c"; measure = "clock_ticks_ns"; }, { name = "d"; measure = "clock_ticks_ns"; },
		{ name = "e"; measure = "all"; }, { name = "f"; measure = "clock_ticks_ns"; } ); } );
EOF

# A run, and what it leaves.
expect 0 run ./three.suite --out run --no-floor
says '\[1/3\] three_clock-ticks-ns'
says '3 of 3 cases measured; results in run'
for file in run.json machine.json cases/three_system-call-ns/case.json \
	cases/three_system-call-ns/summary.json; do
	[ -s "run/$file" ] || fail "there is no $file"
done
grep -q '"end": "2' run/run.json || fail "the run has no end"
expect 2 run ./three.suite --out run --no-floor
says 'has results already'
expect 0 run ./three.suite --out run --no-floor --resume
says '3 of 3 cases measured (3 of them before)'
expect 1 run ./many.suite --out run --no-floor --resume
says "of the suite 'three', not of 'many'"
expect 0 compare run run
says 'no latency'
expect 1 compare run nowhere
expect 0 shapes run

# Only some, and the list.
expect 0 run ./three.suite --out some --no-floor --only '*system*'
says '1 of 1 cases measured'
expect 0 run ./three.suite --list
says 'busbar bench floor --measure clock_ticks_ns'

# Parameters for all cases that have them, and where they run.
cat >set.suite <<'EOF'
title = "set";
cases = ( { scenario = "P"; kind = "program"; size = [ 8, 64 ]; },
	{ scenario = "F"; kind = "floor"; measure = "clock_ticks_ns"; } );
EOF
expect 0 run ./set.suite --list --device mlx5_0 --set size=128 --cpus 0,1
says 'P .*busbar bench program --size 128 --device mlx5_0 --cpus 0,1$'
says '2 cases'
expect 2 run ./set.suite --list --set sise=8
says "no case of this suite has a parameter 'sise'"
expect 2 run ./set.suite --list --cpus 0
says 'expected processors such as 2,3'
expect 2 run ./set.suite --list --priority 100
says 'expected 0 to 99'

# What disturbed the run, and what it says of the source's results, as data.
grep -q '"stolen_percent"' run/run.json || fail "run.json does not say what disturbed the run"
grep -q '"verdict": "not checked"' run/verdicts.json || fail "there are no verdicts"
expect 0 shapes run --json
says '"below_floor": \[\]'

# What is not possible here is left out, and no failure.
cat >absent.suite <<'EOF'
title = "absent";
cases = ( { scenario = "P"; kind = "program"; program = "ib_nothing_lat"; } );
EOF
expect 0 run ./absent.suite --out absent --no-floor
says 'left out: ib_nothing_lat is not installed'
head -1 out.txt | grep -q '^1 of 1 cases .* apt-get install perftest$' ||
	fail "the first line does not say what to install"
grep -q '"reason": "ib_nothing_lat' absent/run.json || fail "the reason is not in run.json"

# Mistakes.
printf 'cases = (\n{ scenario = "A"; kind = "floor"; mesure = "all"; } );\n' >wrong.suite
expect 2 run ./wrong.suite
says 'wrong.suite:2: .*mesure.*did you mean .measure.'
expect 2 run ./missing.suite
expect 2 run quik
says "did you mean 'quick'"
expect 2 run
expect 2 run ./three.suite --scale 0
expect 2 program --size 0
says 'expected 1..8388608'
expect 2 program --sise 8
says "did you mean 'size'"
expect 2 program --program ib_send_bw --cycles
says 'counts in no cycles'
expect 2 program --program ibv_rc_pingpong --type UC
says 'has type RC'
expect 2 program --between here
says 'two network namespaces'
expect 0 program --help
says 'busbar bench program'
# A sender that nobody listens to.
expect 1 node --node websocket --samples 1000 --rate 10000
says "nothing has come through the node 'websocket'"
expect 0 list
says 'thesis-hca'

# Ctrl-C keeps what is there. The case `e` is in work when the fourth one is done.
"$BUSBAR" bench run ./many.suite --out 'ended here' --no-floor --no-csv >live.txt 2>&1 &
pid=$!
tries=0
until grep -q 'many_d' live.txt || [ $((tries += 1)) -gt 600 ]; do
	sleep 0.1
done
kill -INT "$pid"
wait "$pid"
status=$?
pid=
[ "$status" -eq 130 ] || { fail "after Ctrl-C the status is $status"; cat live.txt; }
grep -q -- "--out 'ended here' --resume --no-csv --no-floor\$" live.txt || fail "it does not say how to go on"
[ -d 'ended here/cases/many_d' ] || fail "a measured case is gone"
[ ! -e 'ended here/cases/many_e' ] && [ ! -e 'ended here/cases/many_e.part' ] || fail "half a case is there"
expect 0 run ./many.suite --out 'ended here' --no-floor --resume --only 'many_f'
says '1 of 1 cases measured'

# Also when nothing was measured yet, but the machine's floor.
"$BUSBAR" bench run ./three.suite --out floor >live.txt 2>&1 &
pid=$!
tries=0
until [ -e floor/run.json ] || [ $((tries += 1)) -gt 600 ]; do
	sleep 0.1
done
kill -INT "$pid"
wait "$pid"
status=$?
pid=
[ "$status" -eq 130 ] || { fail "after Ctrl-C in the floor the status is $status"; cat live.txt; }
grep -q -- '--out floor --resume$' live.txt || { fail "it does not say how to go on"; cat live.txt; }
expect 0 run ./three.suite --out floor --no-floor --resume
says '3 of 3 cases measured'
exit "$failed"
