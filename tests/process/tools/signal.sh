#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# values WHAT EXPECTED OPTIONS...: the values of a few steps at 10 Hz.
values() {
	what=$1 wanted=$2
	shift 2
	villas-signal -n "$@" 2>log | awk '!/^#/ {
		v = sprintf("%.4f", $2) + 0
		printf "%s%.4g", n++ ? " " : "", v ? v : 0
	}' >out
	[ "$(cat out)" = "$wanted" ] || fail "$what: '$(cat out)' instead of '$wanted'"
}

values 'a counter counts' '0 1 2 3' -l 4 counter
values 'with amplitude and offset' '5 7 9' -l 3 -a 2 -o 5 counter
values 'a constant stays' '1.5 1.5' -l 2 -o 0.5 constant
values 'a sine' '0 2 0 -2 0' -l 5 -F 2.5 -a 2 sine
values 'a sine with a phase' '1 0 -1' -l 3 -F 2.5 -p 1.5707963267948966 sine
values 'a square' '-1 -1 1 1 -1' -l 5 -F 2.5 square
values 'a triangle' '1 0 -1 0 1' -l 5 -F 2.5 triangle
values 'a ramp has the frequency as its period' '0 0.1 0.2 0 0.1' -l 5 -F 0.3 ramp
values 'a pulse' '9 9 -3 -3 -3 9' -l 6 -F 2 -w 2 -L -3 -H 9 pulse
expect 0 'random' villas-signal -n -l 1000 -D 0.5 random
awk '!/^#/ { if (n++) { s += ($2 - last) ^ 2 }; last = $2 }
	END { d = sqrt(s / (n - 1)); exit !(d > 0.45 && d < 0.55) }' out ||
	fail 'the step of a random walk has another deviation than asked for'
expect 0 'mixed' villas-signal -n -l 1 -v 7 mixed
says 'gives each value another shape' 'random.sine.square.triangle.ramp.counter.constant' out

expect 0 'a format' villas-signal -n -l 2 -f '{"type": "csv", "header": false}' sine
samples 'is taken' 2 out
[ "$(wc -l <out)" -eq 2 ] || fail 'an option of the format is not taken'
for count in 200 300 400 512; do
	expect 0 "$count values" villas-signal -v $count -n -l 100 random
	awk -v n=$count '!/^#/ && NF != n + 1 { exit 1 }' out || fail "$count values are not all there"
done

# In real time a sample is stamped when its period is over, or later, and a step that this
# machine was too late for is left out.
start=$(date +%s.%N)
expect 0 'real time' villas-signal -r 20 -l 4 sine
awk -v start="$start" '!/^#/ { split($1, t, "("); if (t[1] < start + 0.05 * ++n) early = 1 }
	END { exit early || n < 1 || n > 4 }' out ||
	fail "samples are stamped too early after $start: $(cat out)"

rm out # what is there shall be new
villas-signal -r 2000 -v 3 sine >out 2>log &
pid=$!
wait_for $pid test -s out
for signal in INT TERM; do
	kill -$signal $pid
	wait $pid || fail "SIG$signal: exit status $?"
	[ -z "$(tail -c 1 out)" ] || fail "SIG$signal cuts the last line"
	rm out
	villas-signal -r 5 sine >out 2>log &
	pid=$!
	# Each sample goes out when it is made.
	wait_for $pid grep -qs '(0)' out
done
kill -TERM $pid
wait $pid
{ villas-signal -n -l 1000000 -v 20 sine 2>log; echo $? >status; } | head -n 2 >out
says 'a reader that has gone is no error' '^0$' status

villas-signal -n -l 100000 sine >/dev/full 2>log && fail 'a full disk is no failure'
says 'a full disk is told' 'No space left'

expect 2 'an unknown shape' villas-signal sinus
says 'is told' "'sinus' is no waveform"
expect 2 'no shape' villas-signal
expect 2 'a word for a number' villas-signal -r fast sine
expect 2 'half a value' villas-signal -v 1.5 sine
expect 2 'a frequency of nothing' villas-signal -F 0 sine
exit "$failed"
