#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# verdict.sh PROGRAM [ARGUMENTS]: runs a verbs program with busbar's adapter, keeps its packets,
# and says what went wrong on its connections:
#
#   examples/capture/verdict.sh ibv_rc_pingpong -d soft0 -g 0
set -eu
: "${BUSBAR:=busbar}"
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-verdict.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$BUSBAR" exec --capture "$dir/packets.pcapng" -- "$@"
"$BUSBAR" trace --ladder 1 "$dir/packets.pcapng"
