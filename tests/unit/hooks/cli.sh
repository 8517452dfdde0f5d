#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# cli.sh BUSBAR SOURCE: what the examples of hooks record is what they say.
set -u
busbar=$(realpath "${1:?the busbar executable}")
cd "${2:?the source folder}" || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-hooks.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

# has NAME: is this hook part of the build?
has() {
	! "$busbar" version | grep -q "left out.*hook $1"
}

# run CONFIG
run() {
	"$busbar" run "$1" >"$tmp/log" 2>&1 || {
		fail "$1"
		cat "$tmp/log"
	}
}

OUT=$tmp/phases.csv run examples/hooks.conf
[ "$(head -n 1 "$tmp/phases.csv")" = "# secs,nsecs,offset,sequence,u1[kV],u2[kV],u3[kV],average" ] ||
	fail "header: $(head -n 1 "$tmp/phases.csv")"
# 1900 of 2000 samples, one of ten; the three phases add up to nothing.
awk -F, '!/^#/ {
		if ($4 != 10 + n++) { print "sequence " $4 " in line " NR; bad = 1 }
		if ($5 > 0.325 || $5 < -0.325) { print "u1 is " $5; bad = 1 }
		if ($6 > 0.28 || $6 < -0.28) high++
		if ($8 < -0.000001 || $8 > 0.000001) { print "average is " $8; bad = 1 }
	}
	END { if (n != 190) { print n " lines"; bad = 1 }
		if (high != n) { print "u2 is wrong"; bad = 1 }
		exit bad }' "$tmp/phases.csv" || fail "examples/hooks.conf"

# Standard output of the tools holds samples alone, whatever a hook prints: twice as many
# lines as samples would come out otherwise.
printf '1.5(1)\t1\n2.5(2)\t2\n3.5(3)\t3\n' >"$tmp/three"
echo 'print("hello") function process(smp) print("sample") return 0 end' >"$tmp/say.lua"
cat >"$tmp/pipe.conf" <<-CONF
	nodes = { echo = { type = "loopback"; in = { hooks = ( "stats", "print" ); };
		out = { hooks = ( "print" ); }; }; };
CONF
# samples_only WORD COMMAND...: three samples to standard output, WORD to standard error
samples_only() {
	word=$1
	shift
	"$@" <"$tmp/three" >"$tmp/out" 2>"$tmp/err" || fail "$*: exit status $?"
	[ "$(grep -cv '^#' "$tmp/out")" = 3 ] && [ "$(grep -c "^[123].5000" "$tmp/out")" = 3 ] &&
		grep -q "$word" "$tmp/err" || {
		fail "$*"
		cat "$tmp/out" "$tmp/err"
	}
}
samples_only 'Path stdin: 1.5' "$busbar" hook print
samples_only '3 samples, 0 lost' "$busbar" hook stats
samples_only '"owd"' "$busbar" hook -o format=json stats
samples_only 'Node echo: 2.5' "$busbar" pipe -l 3 "$tmp/pipe.conf" echo
samples_only '3 samples, 0 lost' "$busbar" pipe -l 3 "$tmp/pipe.conf" echo
! has lua || samples_only hello "$busbar" hook -o "script=$tmp/say.lua" lua

if has lua; then
	OUT=$tmp/clarke.csv run examples/lua.conf
	grep -q "one of 2 samples goes through" "$tmp/log" || fail "the script says nothing"
	awk -F, '!/^#/ {
			if ($4 != 2 * n++ || $7 != n) { print "sequence " $4 ", passed " $7; bad = 1 }
			r = sqrt($5 * $5 + $6 * $6)
			if (r < 324.999 || r > 325.001) { print "length " r; bad = 1 }
		}
		END { if (n != 500) { print n " lines"; bad = 1 }
			exit bad }' "$tmp/clarke.csv" || fail "examples/lua.conf"
fi

if has digest; then
	OUT=$tmp run examples/digest.conf
	[ "$(grep -vc '^#' "$tmp/samples.csv")" = 3000 ] || fail "samples are lost"
	# Three seconds from anywhere within one end two or three frames.
	case $(wc -l <"$tmp/digests.txt") in
	2 | 3) ;;
	*)
		fail "digests:"
		cat "$tmp/digests.txt"
		;;
	esac
	grep -qvE '^[0-9.]+-[0-9]+ [0-9.]+-[0-9]+ sha256 [0-9A-F]{64}$' "$tmp/digests.txt" &&
		fail "a line is not as described"
fi
exit "$failed"
