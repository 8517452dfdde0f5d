#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# sockets.sh PROGRAM OPTIONS: programs that know TCP sockets only, over rsockets.
# Which way the bytes went stands in the log of the connection manager: whoever
# listens says that a connection is established.
. "$(dirname "$0")/common.sh"
program=${1:?nc, socat, python, iperf3}
shift
mode=$*
need sh
export EXEC_OPTIONS=--rsockets BUSBAR_LOG=debug BUSBAR_DEVICES=soft

ready() {
	cm_listens "$port" || { [ "$mode" = mixed-server ] && tcp_listens "$port"; }
}

over_rdma() {
	expect server 'rep_sent -> established'
}

over_tcp() {
	! grep -q 'rep_sent -> established' "$tmp/server.log" ||
		fail "the bytes went over RDMA"
}

# copied SERVER CLIENT: shell commands; the file of one arrives at the other.
copied() {
	head -c 4194304 /dev/urandom >"$tmp/here"
	start_server sh -c "$1"
	wait_ready ready
	run_client sh -c "$2"
	finish_server
	cmp "$tmp/here" "$tmp/there" || fail "what arrived differs"
}

nc_once() {
	need nc
	listen="exec nc -l 127.0.0.1 $port >$tmp/there"
	call="exec nc -N 127.0.0.1 $port <$tmp/here"
	plain="unset LD_PRELOAD;"
	case $mode in
	mixed-server)
		copied "$plain $listen" "$call"
		over_tcp
		;;
	mixed-client)
		copied "$listen" "$plain $call"
		over_tcp
		;;
	-v)
		copied "exec nc -v -l 127.0.0.1 $port >$tmp/there" \
			"exec nc -v -N 127.0.0.1 $port <$tmp/here"
		over_rdma
		expect client 'succeeded'
		;;
	*)
		copied "$listen" "$call"
		over_rdma
		;;
	esac
}

once() {
	free_port
	case $program in
	nc)
		nc_once
		;;
	socat)
		need socat
		copied "exec socat -u TCP4-LISTEN:$port,bind=127.0.0.1 CREATE:$tmp/there" \
			"exec socat -u OPEN:$tmp/here TCP4:127.0.0.1:$port"
		over_rdma
		;;
	python)
		need python3
		[ "$mode" != fork ] || export RDMAV_FORK_SAFE=1
		start_server python3 "$here/sockets.py" server "$port" $mode
		if [ "$mode" = fork ]; then
			wait_ready tcp_listens "$port"
		else
			wait_ready ready
		fi
		run_client python3 "$here/sockets.py" client "$port" $mode
		finish_server
		over_rdma
		;;
	iperf3)
		need iperf3
		start_server iperf3 -s -1 -B 127.0.0.1 -p "$port"
		wait_ready ready
		# shellcheck disable=SC2086 # words
		run_client iperf3 -c 127.0.0.1 -p "$port" $mode
		finish_server
		over_rdma
		expect client 'iperf Done'
		;;
	esac
}

repeat
