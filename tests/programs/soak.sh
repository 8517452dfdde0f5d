#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every row of table.txt that works, also the long ones, N times (10) while a
# busy loop keeps one CPU from them, to find what goes wrong only when a process
# is preempted at a bad time. Takes about an hour. The loop ends with this script,
# and after two hours at the latest. Arguments: the sections to run (all).
set -u
BUSBAR=$(realpath "${BUSBAR:?set it to the busbar executable}")
export BUSBAR
cd "$(dirname "$0")" || exit 1
export N="${N:-10}" LIMIT_S="${LIMIT_S:-120}" VERDICTS="works long"

last_cpu=$(awk '/^Cpus_allowed_list/ { n = split($2, a, /[,-]/); print a[n] }' \
	/proc/self/status)
timeout 7200 taskset -c "$last_cpu" sh -c 'while :; do :; done' &
load_pid=$!
trap 'kill "$load_pid" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# shellcheck disable=SC2046 # names are words
[ $# -gt 0 ] || set -- $(./section.sh --list)
failed=
for section; do
	status=0
	./section.sh "$section" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || failed="$failed $section"
done
[ -z "$failed" ] || {
	echo "failed:$failed"
	exit 1
}
