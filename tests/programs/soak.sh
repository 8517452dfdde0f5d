#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Each test of this folder N times (10) while a busy loop keeps one CPU from
# them, to find what goes wrong only when a process is preempted at a bad time.
# The loop ends with this script and after ten minutes at the latest.
set -u
cd "$(dirname "$0")" || exit 1
: "${BUSBAR:?set it to the busbar executable}"
export N="${N:-10}" LIMIT_S="${LIMIT_S:-60}"

last_cpu=$(awk '/^Cpus_allowed_list/ { n = split($2, a, /[,-]/); print a[n] }' \
	/proc/self/status)
timeout 600 taskset -c "$last_cpu" sh -c 'while :; do :; done' &
load_pid=$!
trap 'kill "$load_pid" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
run() {
	started=$(date +%s)
	if output=$("./$@" 2>&1); then
		verdict=passed
	elif [ $? -eq 77 ]; then
		verdict=skipped
	else
		verdict=FAILED
		failed=1
		echo "$output"
	fi
	echo "$verdict  $* ($N times, $(($(date +%s) - started)) s)"
}

run ibv_devices.sh
run ibv_devinfo.sh
run pingpong.sh rc -c
run pingpong.sh rc -c -e
run pingpong.sh rc -c -g
run pingpong.sh ud -c
run pingpong.sh ud -c -e
run pingpong.sh ud -c -g
run pingpong.sh uc -c
run pingpong.sh uc -c -e
run pingpong.sh srq -c
run pingpong.sh srq -c -e
run rping.sh
run perftest.sh ib_send_lat RC
run perftest.sh ib_send_lat RC -R
run perftest.sh ib_send_lat UC
run perftest.sh ib_send_lat UD
run perftest.sh ib_send_lat UD -R
for tool in ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw \
	ib_atomic_lat ib_atomic_bw; do
	run perftest.sh "$tool"
done
run fi_info.sh
exit "$failed"
