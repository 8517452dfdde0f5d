#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# shield.sh STALL NO_ADVISE: a program that meets packet damming (stall.c) on an adapter of a chosen generation,
# without and with `busbar exec --odp-shield`, and with each part of it alone. Without it
# rounds take half a second; each part saves that of one round at least (of all, unless other
# processes keep the processor from its thread). The adapter
# waits longer after an RNR NAK than ConnectX-4 does (25 ms), so that the second request is posted
# within that time on a busy machine, too.
set -eu
stall=${1:?the program} no_advise=${2:?the library without ibv_advise_mr}
rounds=2
parts='prefetch touch rnr probe'
failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-shield.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/profile" <<'END'
# source: figures of ConnectX-4, see shield.sh
fault_us = 500
nak_read_us = 140
rnr_permille = 20000
timeout_floor = 16
timeout_permille = 2000
loses_posted = on
late_response = on
END

# milliseconds PROFILE OPTIONS...: sets $ms, $said.
milliseconds() {
	profile=$1
	shift
	ms=$(BUSBAR_DEVICES=soft BUSBAR_PAGING=$profile "$BUSBAR" exec -q "$@" -- \
		"$stall" $rounds 10 2>"$tmp/said") || {
		echo "failed: $profile $*: $ms"
		cat "$tmp/said"
		exit 1
	}
	ms=${ms% ms}
	said=$(cat "$tmp/said")
	echo "$profile $*: $ms ms; $said"
}

check() {
	if [ "$@" ]; then
		return 0
	fi
	echo "failed: $*"
	failed=1
}

# all_ways FILE OPTIONS...: the milliseconds of each way of posting, polling and completing, a line each.
all_ways() {
	file=$1
	shift
	BUSBAR_DEVICES=soft BUSBAR_PAGING=$tmp/profile "$BUSBAR" exec -q "$@" -- "$stall" 1 10 all \
		>"$file" 2>&1 || echo "failed with status $? ms" >>"$file"
}
# count_stalls FILE: sets $slow, the number of ways that met one. A way that is not helped at all is one
# of a third of them at least; a busy machine may cost one or two.
count_stalls() {
	slow=$(awk '/ ms$/ && $(NF - 1) >= 500' "$1" | wc -l)
	echo "$1: $slow stalls"
	if [ "$(grep -c ' [0-9]* ms$' "$1")" -ne 12 ] || grep failed "$1"; then
		echo "failed: not all ways"
		cat "$1"
		failed=1
	fi
}

all_ways "$tmp/without" &
background=$!
milliseconds "$tmp/profile"
without=$ms
check "$without" -ge 500
check -z "$said"
for part in $parts; do
	milliseconds "$tmp/profile" --odp-shield=$part
	check $((ms + 400)) -le "$without"
done
milliseconds "$tmp/profile" --odp-shield
check $((ms + 400)) -le "$without"
case $said in
*"1 regions prefetched"*"shortest RNR wait for 2 queue pairs"*) ;;
*) check "$said" = "what it did" ;;
esac
# An adapter that cannot prefetch is touched instead, unless prefetch alone is wanted.
for part in prefetch,touch touch; do
	milliseconds "$tmp/profile" --odp-shield=$part
	expected=$([ $part = touch ] && echo '0 regions prefetched (0 KiB), 1 touched' ||
		echo '1 regions prefetched')
	case $said in
	*"$expected"*) ;;
	*) check "$said" = "$expected" ;;
	esac
done
export LD_PRELOAD="$no_advise"
milliseconds "$tmp/profile" --odp-shield=prefetch,touch
check $((ms + 400)) -le "$without"
case $said in
*"0 regions prefetched (0 KiB), 1 touched ("*) ;;
*) check "$said" = "a region touched" ;;
esac
milliseconds "$tmp/profile" --odp-shield=prefetch
check "$ms" -ge 500
unset LD_PRELOAD
# Nothing of it changes what needs no help.
milliseconds ideal --odp-shield=probe
check "$ms" -le "$without"

for part in $parts; do
	all_ways "$tmp/$part" --odp-shield=$part
	count_stalls "$tmp/$part"
	check "$slow" -le 2
done
# Memory on demand of an adapter without pitfalls, and with all libraries at once.
export BUSBAR_PAGING=
BUSBAR_DEVICES=soft "$BUSBAR" exec -q --odp-shield --trace="$tmp/trace" -- "$stall" 1 1 all \
	>"$tmp/plain" 2>&1 || echo "failed" >>"$tmp/plain"
unset BUSBAR_PAGING
count_stalls "$tmp/plain"
check "$slow" -le 2
wait "$background"
count_stalls "$tmp/without"
check "$slow" -ge 10

if BUSBAR_DEVICES=soft "$BUSBAR" exec --odp-shield=rnr,what -- "$stall" 1 2>"$tmp/said"; then
	check 'an unknown part' = refused
fi
grep -q "has the parts prefetch, touch, rnr and probe, not 'what'" "$tmp/said" || {
	cat "$tmp/said"
	check 'the message' = right
}
exit $failed
