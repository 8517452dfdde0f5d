#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The exec node: what it writes to a program and reads from it, what it tells of
# the program's end, and that it always gets rid of it.
. "$(dirname "$0")/common.sh"

# reader NAME EXEC: what a program says, to a file; ends with the program.
reader() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			e = { type = "exec"; signals = "2f"; $2 };
			f = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "e"; out = "f"; } );
	CONF
	fresh "$1"
}

# Through a program and back, unchanged.
cat >"$tmp/echo.conf" <<-CONF
	nodes = {
		g = {
			type = "signal"; signal = "mixed"; values = 4;
			realtime = false; limit = 5000; vectorize = 8;
		};
		e = { type = "exec"; exec = ( "cat" ); signals = "4f"; };
		sent = { type = "file"; format = "csv"; uri = "$tmp/sent.csv"; out = { flush = true; }; };
		got = { type = "file"; format = "csv"; uri = "$tmp/got.csv"; out = { flush = true; }; };
	};
	paths = ( { in = "g"; out = ( "e", "sent" ); }, { in = "e"; out = "got"; } );
CONF
fresh echo
until_true has_rows sent 5000
until_true has_rows got 5000
stops "$last"
same sent got

# A shell, standard error, environment and folder; the status of its end.
# shellcheck disable=SC2016
reader says 'exec = "echo folder $PWD $NAME >&2; printf \"1.5(7)\t2\t3\n\"; echo nonsense; printf \"2.5(8)\t4\t5\"; exit 3";
	working_directory = "/"; environment = { NAME = "a value"; };'
ends "$last"
logged says 1 'e: folder / a value' || fail "standard error is not in the log"
logged says 1 'ended with status 3' || fail "the status is not told"
logged says 1 '1 malformed' || fail "the malformed line is not told"
[ "$(data says | tr '\n' ' ')" = "7,2.0,3.0 8,4.0,5.0 " ] || fail "other samples than the program's"

# A list: no shell splits or expands it.
# shellcheck disable=SC2016
reader list 'exec = ( "printf", "1(%s)\t2\t3\n", "5", "6" );'
ends "$last"
[ "$(rows list)" -eq 2 ] || fail "$(rows list) samples from a list"

# A list of one text for the shell, as published examples have it.
# shellcheck disable=SC2016
reader alone 'exec = ( "echo \"1(5)\t$((1 + 1))\"" ); shell = true;'
ends "$last"
[ "$(data alone)" = "5,2.0" ] || fail "the shell made '$(data alone)' of one text in a list"

# It is killed from outside.
reader killed 'exec = "kill -9 $$";'
ends "$last"
logged killed 1 'signal 9' || fail "the signal is not told"

# Children that do not want to end, and what they have started.
reader stubborn 'exec = "trap \"\" TERM; echo $$ >&2; while :; do sleep 0.1; done"; grace = 200;'
until_true logged stubborn 1 'e: [0-9]'
child=$(sed -n 's/.*e: \([0-9][0-9]*\)$/\1/p' "$tmp/stubborn.log")
stops "$last"
logged stubborn 1 'it is killed' || fail "that it was killed is not told"
kill -0 "$child" 2>/dev/null && fail "the program is still there"
reader family 'exec = "sleep 60 & echo $! >&2; wait";'
until_true logged family 1 'e: [0-9]'
child=$(sed -n 's/.*e: \([0-9][0-9]*\)$/\1/p' "$tmp/family.log")
stops "$last"
gone() {
	[ ! -d "/proc/$child" ] || [ "$(cut -d' ' -f3 "/proc/$child/stat" 2>/dev/null)" = Z ]
}
until_true gone

# What cannot be started.
reader missing 'exec = ( "no-such-program" );'
wait "$last" && fail "a missing program is no error"
logged missing 1 "cannot start 'no-such-program': No such file" || fail "the reason is not told"
exit 0
