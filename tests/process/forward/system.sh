#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# the_systems_own_library_opens_behind_ours: usage system.sh PROGRAM LIBRARY.
# Without a real device: it loads, its private functions are reached, and the
# providers that programs are linked to get through to it.
set -eu
. "$(dirname "$0")/../../abi/lib.sh"

program=$1
library=$2
theirs=$(system_library libibverbs.so.1) || skip "the system has no libibverbs.so.1"
export BUSBAR_SYSTEM_LIBIBVERBS="$theirs" BUSBAR_LOG=debug
providers=
for soname in libmlx5.so.1 libefa.so.1; do
	path=$(system_library "$soname") && providers="$providers $path"
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck disable=SC2086 # words
"$program" $providers 2>"$log" || { cat "$log"; exit 1; }

# handed_over COUNT: as many providers as were loaded are with the library.
handed_over()
{
	found=$(grep -c 'provider .* handed' "$log") || true
	if [ "$found" -ne "$1" ] || ! grep -q "system library $theirs" "$log"; then
		echo "$found providers instead of $1 came to $theirs:"
		cat "$log"
		exit 1
	fi
}
# shellcheck disable=SC2086
set -- $providers
handed_over $#

# Programs that are linked to these providers, on the drop-in library.
if nm -D "$library" | grep -Eq '__(asan|tsan)_'; then
	exit 0
fi
dir=$(dirname "$library")
for program in ibv_devices "ib_send_lat -d no-such-device"; do
	command -v "${program%% *}" >/dev/null || continue
	# shellcheck disable=SC2086
	LD_LIBRARY_PATH=$dir timeout 20 $program >"$log" 2>&1 || true
	grep -q "system library $theirs" "$log" || { cat "$log"; exit 1; }
	case $program in
	ibv_devices) grep -q soft0 "$log" || { cat "$log"; exit 1; } ;;
	*) handed_over $# ;;
	esac
done
