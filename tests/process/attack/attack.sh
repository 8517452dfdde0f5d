#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# attack.sh: forged packets of connection management against a gateway that listens, from
# another host and from another user of its own host (network namespaces of the test's own).
# The gateway lives, the peer that it waits for is connected within seconds, and its log has a
# few lines. SEED is the seed of what is random. Skipped without root.
#
#   FORGE  the program that sends them (forge.c)
. "$(dirname "$0")/../gateway_ib/common.sh"
. "$(dirname "$0")/../../../scripts/two-hosts.sh"
at_end() {
	remove_hosts
}
two_hosts 1500 >"$tmp/why" || skip "$(cat "$tmp/why")"
command -v setpriv >/dev/null || skip "no setpriv (util-linux)"
HOST_A=10.77.0.1 HOST_B=10.77.0.2 stranger=10.77.0.66
ip -n "$host_a" addr add "$stranger/24" dev net0
: "${SEED:=$$}"
echo "seed $SEED"
limit_s=20 # what takes longest has five seconds

# The victim on B, its peer on A.
run() {
	run_name=$1
	shift
	[ -f "$tmp/$run_name.log" ] || : >"$tmp/$run_name.log"
	host=b
	[ "$run_name" != peer ] || host=a
	("on_${host}_exec" "$BUSBAR" run "$@" "$tmp/$run_name.conf") \
		>"$tmp/$run_name.out" 2>>"$tmp/$run_name.log" &
	started $!
}

# next_seed: each call gets another seed, or its messages would be repetitions.
next_seed() {
	echo x >>"$tmp/seeds"
	echo $((SEED + $(wc -l <"$tmp/seeds")))
}

# forge KIND COUNT: by the stranger.
forge() {
	on_a "$FORGE" "$stranger" "$HOST_B" "$port" "$1" "$2" "$(next_seed)"
}

# forge_inside FROM KIND COUNT: by another user on the victim's host.
forge_inside() {
	on_b setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$FORGE" "$1" "$HOST_B" "$port" "$2" "$3" "$(next_seed)"
}

# Packets that the kernel did not give to a socket of the port.
dropped() {
	on_b cat /proc/net/udp /proc/net/udp6 |
		awk '$2 ~ /:12B7$/ { sum += $NF } END { print sum + 0 }'
}

# few_lines NAME: strangers have not filled its log.
few_lines() {
	lines=$(grep -c . "$tmp/$1.log" || true)
	echo "$1: $lines lines"
	[ "$lines" -le 150 ] || fail "$lines lines in the log of $1"
}

# The peer comes, is connected, and goes.
peer_connects() {
	connects=$(grep -c 'connected to' "$tmp/$victim.log" || true)
	rows=$(rows "$victim")
	sender peer "$port"
	until_true logged "$victim" $((connects + 1)) 'connected to'
	until_true has_rows "$victim" $((rows + 20))
	stops "$last"
	until_true logged "$victim" $((connects + 1)) 'connection lost'
}

victim=victim
receiver victim
victim_pid=$last
until_true logged victim 1 'listening on'

# A call whose private data names another address is rejected: invalid GID.
[ "$(forge liar 1 2>/dev/null)" = 'REJ 12' ] || fail "a caller lied about its address"
# Packets of busbar count their identifications in trains of at most 64 packets.
forge identified 63 >"$tmp/answer" || fail "no answer to the last packet of a train"
! forge identified-unheard 64 >"$tmp/answer" 2>&1 || fail "a packet of ours has any identification"
forge identified-elsewhere 64 >"$tmp/answer" || fail "others choose their identifications"

# The answers to as many calls of the stranger are these. Its earlier calls, or a machine that
# is busy, may make it wait.
answered() {
	[ "$(forge call $# 2>/dev/null)" = "$(printf '%s\n' "$@")" ]
}

# A forged call, which nobody completes, has its time: the next ones do not take its place.
until_true answered 'REP 0' 'REJ 28' 'REJ 28'
peer_connects
logged victim 1 "call of $stranger is dropped" || fail "not a word about the stranger"
# The same where no other host calls.
until_true answered 'REP 0'
until_true logged victim 1 "call of $stranger is dropped: it was not confirmed in time"

# Another user of the same host reaches nothing, from whatever address.
drops=$(dropped)
calls=$(grep -c 'is dropped' "$tmp/victim.log")
for from in "$HOST_B" 127.0.0.1 127.3.2.1; do
	forge_inside "$from" calls 100
	forge_inside "$from" fields 1
done
[ "$(dropped)" -ge $((drops + 300)) ] || fail "another user of the host gets through"
until_true answered 'REP 0' # when it is seen, all others are
until_true logged victim $((calls + 1)) "call of $stranger is dropped"
! logged victim 1 "call of $HOST_B\|call of 127" || fail "another user of the host calls"

# Floods. The peer is connected while they go on.
for kind in 'fields 1' 'rejects 5000' 'calls 3000'; do
	# shellcheck disable=SC2086
	forge $kind &
	flood=$!
	started $flood
	peer_connects
	wait $flood
done
peer_connects
stops "$victim_pid"
few_lines victim

# Only listed hosts may call.
sed "s/polling =/peers = ( \"fd77::\/64\", \"$HOST_A\" ); polling =/" "$tmp/victim.conf" \
	>"$tmp/strict.conf"
victim=strict
run strict -q
strict_pid=$last
until_true logged strict 1 'listening on'
[ "$(forge call 1 2>/dev/null)" = 'REJ 28' ] || fail "in.peers lets in others"
logged strict 1 "$stranger called and was rejected" || fail "not a word about the stranger"
forge calls 200
# It writes the file of the first one.
victim_rows=$(rows victim)
sender peer "$port"
until_true logged strict 1 'connected to'
until_true has_rows victim $((victim_rows > 20 ? 20 : 0))
stops "$last"
stops "$strict_pid"
few_lines strict

# listens_by NETWORK NAME: a victim with that setting of BUSBAR_NETWORK.
listens_by() {
	cp "$tmp/victim.conf" "$tmp/$2.conf"
	BUSBAR_NETWORK=$1
	export BUSBAR_NETWORK
	run "$2" -q
	unset BUSBAR_NETWORK
	until_true logged "$2" 1 'listening on'
}

opened() {
	on_b cat /proc/net/udp /proc/net/udp6 | grep -c ':12B7 '
}

listens_by "127.0.0.1,fd77::2" elsewhere
[ "$(forge unheard 1 2>/dev/null)" = nothing ] || fail "an address that is not allowed answers"
stops "$last"
listens_by "fd77::2, $HOST_B" here
[ "$(forge call 1 2>/dev/null)" = 'REP 0' ] || fail "an allowed address does not answer"
stops "$last"
listens_by off nowhere
[ "$(opened)" = 0 ] || fail "the port is open though the network is off"
stops "$last"
