#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# live.sh PROGRAM [ARGUMENTS]: runs a verbs program with busbar's adapter and shows its
# packets while it runs, in Wireshark, or in tshark where there is no display:
#
#   examples/capture/live.sh ibv_rc_pingpong -d soft0 -g 0
#
# One process can write a pipe; for programs of several processes give a file instead:
# busbar exec --capture packets-%p.pcapng -- mpirun -n 4 ./a.out
set -eu
: "${BUSBAR:=busbar}"
dir=$(mktemp -d "${TMPDIR:-/tmp}/busbar-live.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/packets"
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v wireshark >/dev/null; then
	wireshark -k -i "$dir/packets" &
else
	tshark -i "$dir/packets" &
fi
reader=$!
"$BUSBAR" exec --capture "$dir/packets" -- "$@"
# Behind the program's end the pipe is at its end, too.
wait "$reader" || true
