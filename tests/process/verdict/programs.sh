#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# programs.sh: what `busbar exec --verdict` says of other people's programs whose peer is killed; the
# rows of docs/verdicts.md.
set -u
: "${BUSBAR:?set it to the busbar executable}"
for program in ib_send_bw ib_write_bw rping stdbuf; do
	command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
# Messages in shared memory: a killed peer is known at once where there is a connection manager.
export BUSBAR_DEVICES=soft BUSBAR_TRANSPORTS=shm
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-verdicts.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
port=$((20000 + $$ % 10000))
failed=0

# The two programs of a call. VICTIM is killed when CLIENT's output has a line with READY.
cat >"$tmp/pair" <<'END'
folder=$1 port=$2 victim=$3 listens=$4 ready=$5
server='' client=''
trap 'kill -KILL $server $client 2>/dev/null; exit 9' TERM
# wait_for COMMAND...: until it succeeds, for 20 s.
wait_for() {
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { echo "waited in vain: $*"; exit 9; }
		sleep 0.1
	done
}
listening() {
	if [ "$listens" = tcp ]; then
		cat /proc/net/tcp /proc/net/tcp6 | grep -qE ":$(printf %04X "$port") 0+:0000 0A "
	else
		grep -q "$listens" "$folder/server"
	fi
}
stdbuf -oL sh -c "exec $SERVER" >"$folder/server" 2>&1 &
server=$!
wait_for listening
stdbuf -oL sh -c "exec $CLIENT" >"$folder/client" 2>&1 &
client=$!
wait_for grep -q "$ready" "$folder/client"
case $victim in
server) kill -KILL $server ;;
client) kill -KILL $client ;;
esac
wait $client
wait $server
exit 0
END

# Other tests listen as well.
is_taken() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$(printf %04X "$1") "
}

# pair VICTIM LISTENS READY SERVER CLIENT: the reports are in $tmp/said.
pair() {
	port=$((port + 1))
	while is_taken $port; do
		port=$((port + 1))
	done
	rm -f "$tmp/server" "$tmp/client"
	SERVER=$(echo "$4" | sed "s/PORT/$port/") CLIENT=$(echo "$5" | sed "s/PORT/$port/") \
		timeout 50 "$BUSBAR" exec -q --verdict=json:"$tmp/said" -- \
		sh "$tmp/pair" "$tmp" $port "$1" "$2" "$3" || {
		echo "failed: $4: $(cat "$tmp/server" "$tmp/client")"
		failed=1
	}
}

# row NAME WHO TEXT...: the report of the process that was killed, or of the one that lived.
row() {
	name=$1 who=$2
	shift 2
	if [ "$who" = killed ]; then
		report=$(grep '"signal":9,' "$tmp/said")
	else
		report=$(grep -v '"signal":9,' "$tmp/said")
	fi
	echo "$name: $report" | cut -c -400
	for text; do
		case $report in
		*"$text"*) ;;
		*)
			echo "failed: $name, $who: no $text in"
			cat "$tmp/said"
			failed=1
			;;
		esac
	done
}

pair server tcp '#bytes' 'ib_send_bw -p PORT -D 8' 'ib_send_bw -p PORT -D 8 127.0.0.1'
row 'ib_send_bw, server killed' lived '"verdict":"handled"' '"code":12,' '"opcode":"SEND"' \
	'"told":{"answer":"yes"'
row 'ib_send_bw, server killed' killed '"verdict":"no_error"'

pair client tcp '#bytes' 'ib_send_bw -p PORT -D 2' 'ib_send_bw -p PORT -D 2 127.0.0.1'
row 'ib_send_bw, client killed' lived '"verdict":"no_error"' '"exit_status":0' \
	'"other_side_heard":{"answer":"no"' 'when a signal ended process'

pair server tcp '#bytes' 'ib_write_bw -p PORT -D 8' 'ib_write_bw -p PORT -D 8 127.0.0.1'
row 'ib_write_bw, server killed' lived '"verdict":"handled"' '"code":12,' '"opcode":"RDMA WRITE"' \
	'"exit_status":1' '"reacted":{"answer":"no"'

pair server rdma_listen 'ping data' 'rping -s -d -a 127.0.0.1 -p PORT' \
	'rping -c -v -a 127.0.0.1 -p PORT'
row 'rping, server killed' lived '"verdict":"no_error"' 'it read RDMA_CM_EVENT_DISCONNECTED'

# Nobody listens.
"$BUSBAR" exec -q --verdict=json:"$tmp/said" -- rping -c -a 127.0.0.1 -p $((port + 1)) \
	>"$tmp/client" 2>&1
row 'rping, no server' lived '"verdict":"handled"' '"channel":"connection"' \
	'RDMA_CM_EVENT_REJECTED' '"exit_status":255'
exit $failed
