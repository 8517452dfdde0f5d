#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# shield.sh STALL: a program that meets packet damming (stall.c) on an adapter of a chosen generation,
# without and with `busbar exec --odp-shield`, and with each part of it alone. Without it
# rounds take half a second; each part saves that of one round at least (of all, unless other
# processes keep the processor from its thread). The adapter
# waits longer after an RNR NAK than ConnectX-4 does (25 ms), so that the second request is posted
# within that time on a busy machine, too.
set -eu
stall=${1:?the program}
rounds=3
parts='prefetch rnr probe'
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
# Nothing of it changes what needs no help.
milliseconds ideal --odp-shield=probe
check "$ms" -le "$without"

# all_ways OPTIONS...: sets $slow, the number of ways of posting, polling and completing that met a
# stall. A way that is not helped at all is one of a third of them at least; a busy machine may cost
# one or two.
all_ways() {
	BUSBAR_DEVICES=soft BUSBAR_PAGING=$tmp/profile "$BUSBAR" exec -q "$@" -- "$stall" 1 10 all \
		>"$tmp/ways" 2>"$tmp/said" || {
		echo "failed: all ways with $*"
		cat "$tmp/ways" "$tmp/said"
		exit 1
	}
	slow=$(awk '$(NF - 1) >= 500' "$tmp/ways" | wc -l)
	echo "all ways $*: $slow stalls in $(wc -l <"$tmp/ways")"
	check "$(wc -l <"$tmp/ways")" -eq 12
}

all_ways
check "$slow" -ge 10
for part in $parts; do
	all_ways --odp-shield=$part
	check "$slow" -le 2
done

# A program that keeps its send queue full has room for all that it asked for, beside the probes.
perftest() {
	(cd "$tmp" && BUSBAR_DEVICES=soft BUSBAR_PAGING=connectx4 timeout 60 "$BUSBAR" exec -q \
		--odp-shield=prefetch,probe -- ib_write_bw --odp -s 65536 -n 300 \
		-p $((20000 + $$ % 10000)) "$@")
}
if command -v ib_write_bw >/dev/null; then
	perftest >"$tmp/server" 2>&1 &
	for _ in $(seq 100); do
		status=0
		perftest 127.0.0.1 >"$tmp/client" 2>&1 || status=$?
		grep -q "Couldn't connect" "$tmp/client" || break
		sleep 0.1
	done
	wait
	[ $status -eq 0 ] || cat "$tmp/client" "$tmp/server"
	check $status -eq 0
fi

if BUSBAR_DEVICES=soft "$BUSBAR" exec --odp-shield=rnr,what -- "$stall" 1 2>"$tmp/said"; then
	check 'an unknown part' = refused
fi
grep -q "has the parts prefetch, rnr and probe, not 'what'" "$tmp/said" || {
	cat "$tmp/said"
	check 'the message' = right
}
exit $failed
