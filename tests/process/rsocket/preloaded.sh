#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# preloaded.sh PROGRAM LIBRARY: PROGRAM, which knows TCP sockets only, works under LIBRARY,
# which turns them into rsockets, and its bytes go over them. LIBRARY "system": that of the
# system's librdmacm, over ours (LD_LIBRARY_PATH).
set -u
program=$1
library=$2
set --
[ "$library" = system ] || set -- sendfile
if [ "$library" = system ]; then
	library=
	for found in /usr/lib/*/rsocket/librspreload.so /usr/lib64/rsocket/librspreload.so; do
		[ -e "$found" ] && library=$found && break
	done
	[ -n "$library" ] || { echo "skipped: the system has no librspreload.so"; exit 77; }
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# Without this, ASan ends a program in which it is not the first library.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
env LD_PRELOAD="$library" BUSBAR_DEVICES=soft BUSBAR_LOG=debug "$program" "$@" \
	>"$log" 2>&1 || status=$?
grep -v debug "$log"
[ "$status" -eq 0 ] || { echo "failed: status $status"; exit 1; }
grep -q 'rep_sent -> established' "$log" || { echo "failed: the bytes went over TCP"; exit 1; }
