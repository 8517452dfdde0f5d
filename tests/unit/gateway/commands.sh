#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `busbar run` and `busbar check`: exit status, summary, signals.
# usage: commands.sh BUSBAR
busbar=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=1
}

# expect STATUS WHAT COMMAND...
expect()
{
	want=$1 what=$2
	shift 2
	"$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ $got -eq "$want" ] || { fail "$what: status $got, expected $want"; cat "$dir/out" "$dir/err"; }
}

cat >"$dir/good.conf" <<END
idle_stop = true; stats = 0.0; hugepages = 0;
nodes = {
	sig = { type = "signal"; signal = "counter"; values = 2; rate = 5000; limit = 500; };
	loop = { type = "loopback"; };
	log = { type = "file"; format = "csv"; uri = "$dir/log.csv"; out = { append = false }; };
};
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; out = "log"; } );
END
sed 's/queuelen//; s/limit/limt/' "$dir/good.conf" >"$dir/bad.conf"
sed "s#$dir/log.csv#/dev/null/no/log.csv#" "$dir/good.conf" >"$dir/fails.conf"
cat >"$dir/endless.conf" <<END
nodes = { loop = { type = "loopback" }; };
paths = ( { in = "loop"; } );
END

expect 0 "check of a good file" "$busbar" check "$dir/good.conf"
expect 2 "check of a bad file" "$busbar" check "$dir/bad.conf"
grep -q "bad.conf:3: nodes.sig.limt: unknown key, did you mean 'limit'" "$dir/err" ||
	fail "check names file, line and key"
expect 2 "check of a missing file" "$busbar" check "$dir/none.conf"
expect 2 "check without a file" "$busbar" check
# Errors of signals, beside one of a key; what depends on either is not guessed at.
cat >"$dir/many.conf" <<END
nodes = {
	sig = { type = "signal"; signal = "counter"; values = 2; rat = 5000; };
	two = { type = "signal"; signal = "counter"; values = 2;
		in = { hooks = ( { type = "rms"; signal = "nine"; window_size = 3 } ); }; };
	three = { type = "signal"; signal = "counter"; values = 3; };
	one = { type = "loopback"; };
	other = { type = "loopback"; };
	log = { type = "file"; format = "csv"; uri = "$dir/log.csv"; out = { }; };
};
paths = (
	{ in = "sig"; out = "one"; hooks = ( { type = "ma"; signal = "signal7" } ); },
	{ in = "one"; hooks = ( { type = "ma"; signal = "what" } ); },
	{ in = "two"; out = "other"; hooks = ( { type = "ma"; signal = "unseen" } ); },
	{ in = "two"; hooks = ( { type = "ma"; signal = "unheard" } ); },
	{ in = "other"; hooks = ( { type = "ma"; signal = "unknown" } ); },
	{ in = "three"; out = "log"; hooks = ( { type = "ma"; signal = "gone" } ); },
	{ in = "three"; hooks = ( { type = "ma"; signal = "lost" } ); }
);
END
expect 2 "check of a file with several errors" "$busbar" check "$dir/many.conf"
for said in "did you mean 'rate'" "'nine'" "'gone'" "'lost'" "many.conf: 4 errors"; do
	grep -q "$said" "$dir/err" || fail "all is said at once: $said"
done
grep -qE "'(what|unseen|unheard|unknown|signal7)'" "$dir/err" && fail "what follows from an error is not said"
expect 0 "help of check" "$busbar" check --help
expect 0 "check as JSON" "$busbar" check --json "$dir/good.conf"
expect 0 "JSON of a file is the same configuration" "$busbar" check "$dir/out"

expect 0 "run to the end" "$busbar" run --summary=json "$dir/good.conf"
python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
assert s["nodes"]["log"]["sent"] > 0
assert s["nodes"]["log"]["sent"] + s["nodes"]["sig"]["missed"] >= 500
late = s["nodes"]["sig"]["step_late"]
assert 0 <= late["count"] - s["nodes"]["sig"]["received"] <= 1 and late["max_us"] >= late["p50_us"]
assert late["in_latency"] is False and "step_late" not in s["nodes"]["log"]' "$dir/out" ||
	fail "JSON summary counts the samples"
[ "$(grep -vc '^#' "$dir/log.csv")" -gt 0 ] || fail "samples stand in the file"
expect 0 "run from standard input" sh -c '"$0" run --summary=none - <"$1"' "$busbar" "$dir/good.conf"
[ -s "$dir/out" ] && fail "no summary was asked for"
expect 2 "run of a bad file" "$busbar" run "$dir/bad.conf"
expect 2 "run with a wrong option" "$busbar" run --nonsense "$dir/good.conf"
expect 2 "run with a wrong time" "$busbar" run -t soon "$dir/good.conf"
expect 1 "run that fails at start" "$busbar" run "$dir/fails.conf"
expect 0 "run for a time" "$busbar" run -t 0.2 "$dir/endless.conf"
grep -q '^loop ->' "$dir/out" || fail "summary shows the path"

for signal in INT TERM; do
	# An ignored SIGINT, as background jobs have it, is caught all the same.
	: >"$dir/err" # what the last one said is no sign of this one
	"$busbar" run "$dir/endless.conf" >"$dir/out" 2>"$dir/err" &
	pid=$!
	for _ in $(seq 100); do
		grep -q "is running" "$dir/err" && break
		sleep 0.05
	done
	kill -"$signal" $pid
	wait $pid
	status=$?
	[ $status -eq 0 ] || fail "SIG$signal ends with $status, expected 0"
	grep -q '^loop ->' "$dir/out" || fail "SIG$signal: no summary"
done
exit $failed
