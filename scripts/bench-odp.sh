#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-odp.sh [BUILD]: what stalls of on-demand paging cost perftest and UCX, and what is left of
# that with `busbar exec --odp-shield`. Each program runs on the adapter of PROFILE with its memory
# pinned, on demand, and on demand with the shield, in turns; the medians of their own figures
# are printed, as the time of the whole run. Time lost is that beyond pinned memory.
#
#   ROUNDS   of each (5)      PROFILE  of BUSBAR_PAGING (connectx4)      ONLY  rows that match (.)
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
ROUNDS=${ROUNDS:-5} PROFILE=${PROFILE:-connectx4} ONLY=${ONLY:-.}
OUT=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-odp.XXXXXX")
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; rm -rf "$OUT"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export BUSBAR_DEVICES=soft BUSBAR_LOG=error
# UCX asks for memory on demand where the program says that registration may come later (-B).
export UCX_TLS=rc,self UCX_NET_DEVICES=soft0:1 UCX_LOG_LEVEL=error

# Operations, how the program is made to pin, how to use memory on demand, and the program.
rows='600 : --odp ib_write_bw -s 64 -n 600 -t 600
4096 : --odp ib_read_bw -s 64 -n 64 -t 64 -q 64
20 : -B ucx_perftest -t ucp_put_bw -n 20 -w 0 -s 1048576 -O 2'

# under OPTIONS... -- PROGRAM...: by `busbar exec`.
under() {
	"$build/busbar" exec -q "$@"
}

# milliseconds OPERATIONS PROGRAM...: of the client, by its own figure; nothing if it failed.
milliseconds() {
	operations=$1
	shift
	port=$((20000 + RANDOM % 20000))
	under $shield -- timeout 60 "$@" -p $port >"$OUT/server" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		ss -Hltn "sport = :$port" | grep -q . && break
		sleep 0.05
	done
	under $shield -- timeout 60 "$@" -p $port 127.0.0.1 >"$OUT/client" 2>"$OUT/said" || cat "$OUT/said" >&2
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	server=
	# perftest: the rate in millions a second; UCX: microseconds of one.
	awk -v n="$operations" '
		/^ *[0-9]+ +[0-9]+ / && NF == 5 && $5 + 0 > 0 { print n / $5 / 1000 }
		/^Final:/ { print n * $5 / 1000 }' "$OUT/client" | tail -1
}

median() {
	sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "nan" }'
}

printf '%-62s %9s %9s %9s %9s\n' 'times in ms' pinned 'on demand' shield 'lost less'
echo "$rows" | grep -e "$ONLY" | while read -r operations pinned paged program; do
	for round in $(seq "$ROUNDS"); do
		for how in pinned paged shield; do
			shield=
			[ $how = shield ] && shield=--odp-shield
			flag=$paged
			[ $how = pinned ] && flag=
			BUSBAR_PAGING=$PROFILE UCX_IB_ODP_MAX_SIZE=inf \
				milliseconds "$operations" $program $flag >>"$OUT/$how" </dev/null
		done
	done
	printf '%s %s %s ' "$(median <"$OUT/pinned")" "$(median <"$OUT/paged")" "$(median <"$OUT/shield")" |
		awk -v what="$program $paged" '{
			left = $3 > $1 ? $3 - $1 : 0
			printf "%-62s %9.1f %9.1f %9.1f ", what, $1, $2, $3
			if (left > 0)
				printf "%8.0f%s\n", ($2 - $1) / left, "x"
			else
				printf "%9s\n", "all"
		}'
	rm -f "$OUT/pinned" "$OUT/paged" "$OUT/shield"
done
