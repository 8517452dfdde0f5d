#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# programs_linked_with_bind_now_load_with_the_drop_in: usage loads.sh LIB_DIR.
# Asks each program for no more than its version or help, with every symbol
# resolved at once; what it then answers is its own business.
set -eu
. "$(dirname "$0")/lib.sh"

dir=$(cd "$1" && pwd)
skip_if_sanitized "$dir/libibverbs.so.1"
export LC_ALL=C
ran=0
failed=0

# try WANTED_OUTPUT PROGRAM [ARGUMENT...]
try()
{
	wanted=$1
	shift
	command -v "$1" >/dev/null || return 0
	ran=$((ran + 1))
	if ! LD_LIBRARY_PATH=$dir ldd "$(command -v "$1")" |
	     grep -q "libibverbs.so.1 => $dir/"; then
		echo "$1: does not load $dir/libibverbs.so.1"
		failed=1
		return 0
	fi
	status=0
	out=$(LD_BIND_NOW=1 LD_LIBRARY_PATH=$dir timeout 20 "$@" 2>&1) || status=$?
	case $out in
	*"symbol lookup error"* | *"undefined symbol"* | *"' not found"* | \
	*"no version information"*)
		echo "$*: $out"
		failed=1
		return 0 ;;
	esac
	# 124: timed out, 126 and 127: not started, 129 to 192: a signal
	case $status in
	124 | 126 | 127 | 129 | 1[3-8]? | 19[0-2])
		echo "$*: status $status"
		failed=1 ;;
	esac
	if ! printf '%s\n' "$out" | grep -q -- "$wanted"; then
		echo "$*: status $status, no \"$wanted\" in: $out"
		failed=1
	fi
}

try 'Version: ' ib_send_lat --version
try 'Version: ' ib_write_bw --version
try 'Usage:' ibv_devinfo --help
try 'Usage:' ibv_rc_pingpong --help
try 'rping -s' rping -h
try 'libfabric: ' fi_info --version

[ "$ran" -gt 0 ] || skip "none of the programs is installed"
[ "$failed" -eq 0 ] && echo "$ran programs load"
exit "$failed"
