#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# oracle.sh PROGRAM LIBRARY: PROGRAM, which knows TCP sockets only, prints the same over TCP
# and under LIBRARY, which turns them into rsockets.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1" >"$tmp/tcp" || { echo "failed: over TCP"; exit 1; }
status=0
# Without this, ASan ends a program in which it is not the first library.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
# TSan must let a forked child start threads.
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:die_after_fork=0"
env LD_PRELOAD="$2" BUSBAR_DEVICES=soft BUSBAR_LOG=debug "$1" >"$tmp/rsockets" 2>"$tmp/log" ||
	status=$?
grep -v ' debug ' "$tmp/log"
[ "$status" -eq 0 ] || { echo "failed: status $status"; tail -n 3 "$tmp/rsockets"; exit 1; }
grep -q 'rep_sent -> established' "$tmp/log" || { echo "failed: the bytes went over TCP"; exit 1; }
diff -U 0 "$tmp/tcp" "$tmp/rsockets" || { echo "failed: it differs"; exit 1; }
