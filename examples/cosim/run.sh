#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh [MEDIUM [BUILD]]: an electric network in two halves (network.h), each solved by
# a process of its own in real time, coupled by gateways over a medium, and compared
# with the undivided network and with the theory (theory.h).
#
# MEDIUM is loopback (both at one gateway) or the name of files in medium/: shmem,
# infiniband, socket; or a path of your own, to which .source and .load are added: the
# settings of the node between the gateways, of any node-type.
#
#   STEPS     steps in microseconds ("1000 500 200 100")
#   BEHIND    how many steps old a half takes the other one's quantity ("1 3"): more
#             than the latency of the medium, or it comes too late now and then
#   DURATION  seconds of each run, the switch closes in the middle (0.4)
#   OPTIONS   more for cosim, NAME=VALUE ("cosim" prints them)
#   PRIORITY  of all processes, SCHED_FIFO, 1 to 99 (0: as usual); needs the right to
#   POLLING_HALVES  yes: the halves spin between steps (no)
#   BEGIN_AFTER  seconds for all to start and to connect (1)
#   OUT       folder for logs and figures (out/cosim)
#   PORT      first of two ports, for media that have ports (1737)
#
# In the table "latency" is how long a sample is under way, "steps" how old v and i are
# when they are used, in steps (one at least, for both halves compute at the same
# time), and Td both together in us. Theory is what this Td leads to; it knows no
# delay that changes from step to step. Where inputs came too late the machine was no
# real-time machine, or the medium too slow for the step: such a row is no measure.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
medium=${1:-shmem}
build=$(realpath "${2:-$here/../../build}")
BUSBAR=$build/busbar COSIM=$build/examples/cosim/cosim
OUT=${OUT:-out/cosim}
steps=${STEPS:-1000 500 200 100} duration=${DURATION:-0.4}
polling=${POLLING_HALVES:-no} behinds=${BEHIND:-1 3}
priority=${PRIORITY:-0}
export PORT_A="${PORT:-1737}" PORT_B=$((${PORT:-1737} + 1))
export NAME="cosim-$$"

mkdir -p "$OUT"
OUT=$(realpath "$OUT")
. "$here/../../scripts/gateways.sh"
for program in "$BUSBAR" "$COSIM"; do
	[ -x "$program" ] || die "$program is not there; run 'make build' first"
done

# with_priority COMMAND...
with_priority() {
	if [ "$priority" -gt 0 ]; then
		exec chrt -f "$priority" "$@"
	fi
	exec "$@"
}

# make_config HALF: the gateway of that half.
make_config() {
	fragment=$here/medium/$medium.$1
	[ -f "$fragment" ] || fragment=$medium.$1
	[ -f "$fragment" ] || die "there is no medium $medium: $fragment is missing"
	awk -v peer="$fragment" '
		$0 == "@PEER@" {
			while ((getline line <peer) > 0)
				print line
			next
		}
		{ print }' "$here/gateway.in" >"$OUT/$1.conf"
	HALF=$1 "$BUSBAR" check -q "$OUT/$1.conf" || die "the medium $medium cannot be used here"
}

start_gateways() {
	if [ "$medium" = loopback ]; then
		start gateway with_priority "$BUSBAR" run "$here/loopback.conf"
		gateways=$pid
		wait_log gateway "$pid" 1 'is running'
		return
	fi
	gateways=
	for half in source load; do
		HALF=$half start "gateway-$half" with_priority "$BUSBAR" run "$OUT/$half.conf"
		gateways="$gateways $pid"
		wait_log "gateway-$half" "$pid" 1 'is running'
	done
}

stop_gateways() {
	for pid in $gateways; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	for pid in $gateways; do
		wait_end "$pid" 10 || die "a gateway does not end"
	done
}

# couple STEP_US LABEL OPTION...: one run, and its row.
couple() {
	step=$1 label=$2
	shift 2
	set -- "step=${step}e-6" "$@"
	start_gateways
	# Both begin together: a moment for them to start and to connect.
	begin=$(date +%s.%N | awk -v after="${BEGIN_AFTER:-1}" '{ printf "%.6f", $1 + after }')
	for half in source load; do
		start "$half" with_priority "$COSIM" "$half" "$NAME-$half-in" "$NAME-$half-out" \
			"log=$OUT/$half.steps" "start=$begin" "polling=$polling" "$@"
		eval "$half=\$pid"
	done
	# shellcheck disable=SC2154 # set by eval
	finish source "$source" 60
	# shellcheck disable=SC2154
	finish load "$load" 60
	stop_gateways
	"$COSIM" compare "$OUT/source.steps" "$OUT/load.steps" "label=$label" \
		"plot=$OUT/$label-$step.dat" "$@" | tee -a "$OUT/table.txt"
}

row=$(basename "$medium") # not `name`, which start() has
[ "$medium" = loopback ] || {
	make_config source
	make_config load
}
middle=$(awk -v d="$duration" 'BEGIN { print d / 2 }')
largest=$(echo "$steps" | tr ' ' '\n' | sort -n | tail -n 1)
: >"$OUT/table.txt"

# shellcheck disable=SC2086 # OPTIONS is a list
"$COSIM" theory "step=${largest}e-6" ${OPTIONS:-}
echo
"$COSIM" heading
for step in $steps; do
	for behind in $behinds; do
		# shellcheck disable=SC2086
		couple "$step" "$row" "behind=$behind" "duration=$duration" \
			"switch=$middle" ${OPTIONS:-}
	done
done

echo
echo "beyond the limit: L1 = 15 mH, |rho| > 1"
"$COSIM" theory l1=15e-3 "step=${largest}e-6"
"$COSIM" heading
# Short, or the numbers leave what can be printed.
couple "$largest" "$row-beyond" l1=15e-3 duration=0.08 switch=0.04

rm -f "$OUT/errors.dat"
if command -v gnuplot >/dev/null; then
	# Those that are a measure.
	grep "^$row .*theory" "$OUT/table.txt" | awk '{ print $6, $8, $9, $11, $12 }' >"$OUT/errors.dat"
	sort -n -o "$OUT/errors.dat" "$OUT/errors.dat"
fi
if [ -s "$OUT/errors.dat" ]; then
	gnuplot -e "out='$OUT'; name='$row'; step='$largest'; middle=$middle" "$here/plot.gp"
	echo
	echo "figures: $OUT/errors.svg, $OUT/switching.svg"
fi
