#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run-demo.sh [BUILD]: two gateways on this host. A replays a recorded fault at
# its own rate and a generated signal at 10 kHz; both travel by RDMA to B, which
# writes what it receives. In the end every value of every sample is compared.
# Fails when one was lost, came out of order or differs in a single bit.
#
#   DURATION  seconds of traffic (10)       MODE  RC, UC or UD (RC)
#   RATE      samples per second (10000)    OUT   folder for the files (out)
#   VALUES    values per sample (8)         PORT  first of four ports (1337)
#   POLLING   how B waits: auto (the default), busy, event or adaptive with SPIN us
#   TIMER     how the generator waits: auto (the default), tsc (spins) or timerfd (sleeps)
#   NETWORK   1: each in a network namespace of its own, as on two hosts, by transport
#             roce over a pair of Ethernet interfaces (needs root); MTU is theirs (4500)
#   FILE      a recording to replay instead, csv or villas.human by its name
set -eu
cd "$(dirname "$0")/.."
BUSBAR=$(realpath "${1:-build}")/busbar
export DURATION="${DURATION:-10}" RATE="${RATE:-10000}" VALUES="${VALUES:-8}"
export MODE="${MODE:-RC}" OUT="${OUT:-out}" PORT="${PORT:-1337}"
export LIMIT=$((RATE * DURATION))
export PORT_A1="$PORT" PORT_B1=$((PORT + 1))
export PORT_A2=$((PORT + 2)) PORT_B2=$((PORT + 3))
export POLLING="${POLLING:-auto}" TIMER="${TIMER:-auto}"
export BUSBAR_LOG="${BUSBAR_LOG:-info}"

[ -x "$BUSBAR" ] || {
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
mkdir -p "$OUT"
rm -f "$OUT"/*-sent.csv "$OUT"/*-received.csv "$OUT"/[ab].log "$OUT/b-live.json"
. scripts/gateways.sh
. scripts/two-hosts.sh
failed=
where="two gateways"
if [ "${NETWORK:-0}" != 0 ]; then
	at_end() {
		remove_hosts
	}
	why=$(two_hosts "${MTU:-4500}" && echo) || {
		echo "$why" >&2
		die "NETWORK=1 makes two hosts of this one: 'sudo make run NETWORK=1'; for two real ones see docs/hosts.md"
	}
	export HOST_A=10.77.0.1 HOST_B=10.77.0.2
	where="two gateways, on two hosts that are namespaces of this one,"
fi

# on_host a|b COMMAND...: there, or here where both are on one host.
on_host() {
	host=$1
	shift
	case ${NETWORK:-0}$host in
	0*) exec "$@" ;;
	*a) on_a_exec "$@" ;;
	*b) on_b_exec "$@" ;;
	esac
}

# show_live PID: what B receives, once per second, until the process ends. The
# figures come from the hook `stats` of its node.
show_live() {
	shown=0
	while alive "$1"; do
		sleep 1 # often would disturb what it shows
		lines=$(wc -l <"$OUT/b-live.json" 2>/dev/null || echo 0)
		[ "$lines" -gt "$shown" ] || continue
		shown=$lines
		tail -n 1 "$OUT/b-live.json" | awk -f scripts/demo-live.awk
	done
}

if [ -z "${FILE:-}" ]; then
	FILE=$OUT/fault.csv
	"$BUSBAR" simulate fault --duration "$DURATION" --rate 4000 --output "$FILE" ||
		die "the waveform could not be made"
fi
[ -r "$FILE" ] || die "FILE=$FILE cannot be read"
case $FILE in
*.csv) FORMAT=csv ;;
*.tsv) FORMAT=tsv ;;
*) FORMAT=villas.human ;;
esac
export FILE FORMAT

echo "busbar: $where on $("$BUSBAR" devices | awk 'NR == 1 { print $1 }'), $MODE, for $DURATION s"
echo "  A  replays $FILE and generates $VALUES values at $RATE/s (examples/demo/a.conf)"
echo "  B  receives both and writes them to $OUT/ (examples/demo/b.conf)"

start b on_host b "$BUSBAR" run examples/demo/b.conf
b=$pid
wait_log b "$b" 2 'listening on'
start a on_host a "$BUSBAR" run examples/demo/a.conf
a=$pid

show_live "$a"
finish a "$a" $((DURATION + 10))
kill -TERM "$b"
finish b "$b" 10

rm -f "$OUT"/*-result.json
for stream in waveform generator; do
	"$BUSBAR" delivery --json --expect-lossless "$OUT/$stream-sent.csv" \
		"$OUT/$stream-received.csv" >"$OUT/$stream-result.json" || true
done
echo
awk -f scripts/demo-table.awk "$OUT/waveform-result.json" \
	"$OUT/generator-result.json" || failed=1
grep -h ' missed ' "$OUT/a.log" | sed -n 's/.*steps \([0-9]*\) missed \([0-9]*\) .*/the generator missed \2 of \1 steps/p'
echo "files and logs are in $OUT/"
[ -z "$failed" ] || die "not every sample arrived once, in order and equal in every bit; see $OUT/*-result.json"
