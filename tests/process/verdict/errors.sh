#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# errors.sh ERRORS: what `busbar exec --verdict` says of programs (errors.c) that handle an error of
# RDMA well or badly, and that the status, the signals and the output of the program stay its own.
set -u
errors=${1:?the program}
: "${BUSBAR:?set it to the busbar executable}"
export BUSBAR_DEVICES=soft
tmp=$(mktemp -d "${TMPDIR:-/tmp}/busbar-verdict.XXXXXX")
# Folders of busbar exec lie here, too.
mkdir "$tmp/run"
export XDG_RUNTIME_DIR="$tmp/run"
hanging='' late=''
trap 'kill $hanging $late 2>/dev/null; rm -rf "$tmp"' EXIT
failed=0

fail() {
	echo "failed: $*"
	failed=1
}

# has FILE TEXT
has() {
	grep -qF -e "$2" "$1" || { fail "no '$2' in"; cat "$1"; }
}

# lacks FILE TEXT
lacks() {
	if grep -qF -e "$2" "$1"; then
		fail "'$2' in"
		cat "$1"
	fi
}

# verdict MODE STATUS WORD TEXT...: of one run; the report is in $tmp/said.
verdict() {
	mode=$1 expected=$2 word=$3
	shift 3
	status=0
	"$BUSBAR" exec -q --verdict -- "$errors" "$mode" >"$tmp/out" 2>"$tmp/said" || status=$?
	[ "$status" = "$expected" ] || fail "$mode ended with $status: $(cat "$tmp/out" "$tmp/said")"
	has "$tmp/said" "busbar verdict: $word: process "
	for text; do
		has "$tmp/said" "$text"
	done
}

# These take longer, so they run beside the others.
"$BUSBAR" exec -q --verdict="$tmp/hung" -- "$errors" hangs >"$tmp/hanging" 2>&1 &
hanging=$!
"$BUSBAR" exec -q --verdict="$tmp/late" -- "$errors" tells-late &
late=$!
tries=0
until grep -q waits "$tmp/hanging"; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || { fail "no waiting program"; break; }
	sleep 0.1
done
hangs_since=$(date +%s)

verdict no-error 0 'no error' 'nothing that the program was told of'
lacks "$tmp/said" 'fetched it'
verdict handles 3 handled "'remote access error' (10, vendor " 'of RDMA READ, 64 bytes, wr_id 0x2' \
	"fetched it        yes" 'was destroyed' 'exit status 3' 'hint only'
verdict hides 0 hidden 'was not destroyed, moved or disconnected' 'told by its end   no: exit status 0'
verdict leaves 0 hidden 'exit status 0'
verdict aborts 134 handled 'signal 6 (SIGABRT)'
verdict never-polls 0 'not seen' 'was in the error state when it was looked at, with 1 requests' \
	'fetched it        no: no completion with an error was fetched'
verdict posts-on 0 hidden 'posted 5 more requests to it' '5 flushes were fetched'
verdict repeats 0 recovered 'fetch and add of 8 bytes to 0x' \
	'it may have been carried out twice: nothing asked whether the first was'
verdict recovers 0 recovered 'for a READ that is harmless' 'data flowed on    yes: 1 good completions'
verdict event-first 1 handled 'asynchronous event IBV_EVENT_QP_ACCESS_ERR' \
	'an asynchronous event is the first error' 'fetched it        yes'
verdict all-at-once 1 handled \
	'one call fetched it with 4 flushes behind it; which of them the program looked at cannot be seen'
verdict others-go-on 0 handled 'stopped others    no: 3 good completions of other queue pairs'
verdict refused 1 handled "ibv_post_send() refused with 'Invalid argument' (22)"
verdict deaf 1 handled 'at the other side was told of no error and read no event of it; 3 of its receives'
# The report of the receiver.
has "$tmp/said" 'busbar verdict: no error: process '
has "$tmp/said" 'no: 3 receives were left when process '

# Nothing arrives: the code of a dead peer.
BUSBAR_FAULTS=partition=1 "$BUSBAR" exec -q --verdict=json -- "$errors" partitioned \
	>"$tmp/out" 2>"$tmp/said"
[ $? = 0 ] || fail "partitioned: $(cat "$tmp/out" "$tmp/said")"
for text in '{"verdict":"hidden","pid":' '"program":"verdict-errors","exit_status":0' \
	'"error":{"channel":"completion","code":12' '"fetched":{"answer":"yes","evidence":"' \
	'gives this code where its queue pair goes first'; do
	has "$tmp/said" "$text"
done
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys; json.loads(open(sys.argv[1]).read())' "$tmp/said" ||
		fail "no JSON: $(cat "$tmp/said")"
fi

# Programs without verbs, and files.
[ "$("$BUSBAR" exec -q --verdict -- sh -c 'echo text; exit 5' 2>"$tmp/said")" = text ] ||
	fail "the output of a program is not its own"
has "$tmp/said" 'busbar verdict: no process used verbs'
"$BUSBAR" exec -q --verdict=json:"$tmp/json" -- "$errors" hides 2>"$tmp/said"
has "$tmp/json" '"verdict":"hidden"'
[ ! -s "$tmp/said" ] || fail "with a file there is something on standard error: $(cat "$tmp/said")"
"$BUSBAR" exec -q --verdict="$tmp/no/such/file" -- "$errors" hides 2>"$tmp/said"
[ $? = 1 ] || fail "a file that cannot be written is no error"
has "$tmp/said" "verdict file '$tmp/no/such/file': No such file"

# More processes, one behind the other, than descriptors that a process may have.
status=0
(
	ulimit -n 32
	exec "$BUSBAR" exec -q --verdict="$tmp/many" -- sh -c '
		i=0
		while [ $i -lt 40 ]; do "$1" no-error || exit 1; i=$((i + 1)); done
		exit 5' sh "$errors"
) >"$tmp/out" 2>"$tmp/said" || status=$?
[ $status = 5 ] || fail "a program with many processes ended with $status: $(cat "$tmp/said")"
[ "$(grep -c 'busbar verdict: no error: process ' "$tmp/many")" = 40 ] || fail "not each process has a report"

# A name is no line of the report, and steers no terminal.
ln -s "$(realpath "$errors")" "$tmp/$(printf 'a\033[31m\nbusbar verdict')"
"$BUSBAR" exec -q --verdict="$tmp/named" -- "$tmp/$(printf 'a\033[31m\nbusbar verdict')" hides
has "$tmp/named" '(a?[31m?busbar verdict), exit status 0'

# A program that makes other files in the folder does not stop the report.
timeout -s KILL 30 "$BUSBAR" exec -q --verdict="$tmp/other" -- \
	sh -c 'mkfifo "$BUSBAR_VERDICT/1.1" && exit 7' 2>"$tmp/said"
[ $? = 7 ] || fail "a FIFO among the facts stops the report"

# A program that is continued by somebody who does not know of the command.
timeout 30 setsid -w "$BUSBAR" exec -q --verdict="$tmp/stops" -- \
	sh -c '{ sleep 0.3; kill -CONT $$; } & kill -STOP $$; exit 6'
[ $? = 6 ] || fail "a program that was stopped and continued has another status"

# A timer of who became the command is the program's.
if command -v python3 >/dev/null; then
	python3 -c 'import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])' \
		"$BUSBAR" exec -q --verdict="$tmp/alarm" -- sleep 30
	[ $? = 142 ] || fail "SIGALRM does not reach the program"
fi

# A signal to `busbar exec` ends the program, and it ends as the program does.
while [ $(($(date +%s) - hangs_since)) -lt 7 ]; do
	sleep 0.2
done
kill -TERM $hanging
wait $hanging
[ $? = 143 ] || fail "a program that SIGTERM ended has another status"
hanging=
has "$tmp/hung" 'busbar verdict: hung: process '
has "$tmp/hung" 'signal 15 (SIGTERM)'
wait $late
[ $? = 1 ] || fail "a program that tells late has another status"
late=
has "$tmp/late" 'busbar verdict: told late: process '
# The keeper may need a moment for its own folder.
tries=0
while [ -n "$(ls "$tmp/run")" ]; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || { fail "left behind: $(ls -R "$tmp/run")"; break; }
	sleep 0.1
done
exit $failed
