#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# cm.sh PROGRAM OPTIONS: the examples of librdmacm, a server and a client; the
# names of those that have one for each side stand for both (rdma_server). For
# `rping -P` there are four clients, for `mckey mckey` two members of the group.
. "$(dirname "$0")/common.sh"
program=${1:?rping, ucmatose, udaddy ...}
shift
need "$program" stdbuf
place_options "$@"

ready() {
	if [ "$program" = mckey ]; then # it has joined
		grep -q '^receiving' "$tmp/server.log"
		return
	fi
	cm_listens "$port" || tcp_listens "$port"
}

# The address of this host in the form that -f asks for.
host=127.0.0.1
case " $options " in
*" -f gid "*) host=::ffff:127.0.0.1 ;;
*" -f ipv6 "*) host=::1 ;;
*" -f name "*) host=localhost ;;
esac

# One server for many clients, which has no end of its own. Each calls when the
# one before it is served: of two requests at the same moment rping forgets one.
many_clients() {
	# shellcheck disable=SC2086
	start_server stdbuf -oL rping -s -a 127.0.0.1 -p "$port" -v $options
	wait_ready ready
	pids=
	for client in 1 2 3 4; do
		# Of an earlier run it must say nothing any more.
		: >"$tmp/client$client.log"
		(on_busbar stdbuf -oL rping -c -a 127.0.0.1 -p "$port" -C 200 -v -V) \
			>"$tmp/client$client.log" 2>&1 &
		pid=$!
		pids="$pids $pid"
		until grep -q 'rdma-ping-0' "$tmp/client$client.log"; do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.01
		done
	done
	for pid in $pids; do
		wait "$pid" || fail "a client ended with status $?"
	done
	for client in 1 2 3 4; do
		expect "client$client" 'ping data: rdma-ping-199'
	done
	server_alive || fail "the server did not outlive its clients"
	stop_server
	[ "$(grep -c 'server ping data: rdma-ping-199' "$tmp/server.log")" -eq 4 ] ||
		fail "the server did not serve all clients to their end"
}

# The port of programs that have one only, and that no other row has meanwhile.
one_port() {
	port=7174
	exec 9<"$here/cm.sh"
	flock 9
}

# Two members and one who sends to their group.
two_members() {
	one_port
	: >"$tmp/member.log"
	# shellcheck disable=SC2086
	(on_busbar stdbuf -oL mckey -m 239.1.1.1 -b 127.0.0.1 $options) \
		>"$tmp/member.log" 2>&1 &
	member=$!
	until grep -q '^receiving' "$tmp/member.log"; do
		kill -0 "$member" 2>/dev/null || fail "the first member ended"
		sleep 0.01
	done
	pair ready "stdbuf -oL mckey -m 239.1.1.1 -b 127.0.0.1 $options" \
		"stdbuf -oL mckey -s -m 239.1.1.1 -b 127.0.0.1 $options"
	wait "$member" || fail "the first member ended with status $?"
	for log in member server client; do
		expect "$log" 'return status 0'
	done
}

# A file of so many bytes (300000), copied, and nothing else left behind.
rcopy_once() {
	head -c "${options:-300000}" /dev/urandom >"$tmp/here"
	mkdir -p "$tmp/folder"
	start_server stdbuf -oL rcopy -p "$port"
	wait_ready ready
	run_client rcopy "$tmp/here" "127.0.0.1:$tmp/folder/there" -p "$port"
	stop_server
	cmp "$tmp/here" "$tmp/folder/there" || fail "the copy differs"
	[ "$(ls "$tmp/folder")" = there ] || fail "something was left behind"
}

# `-b ADDRESS` in front of the options: where the server is. It has no end of its own.
udpong_once() {
	listen=127.0.0.1
	rest=${options# }
	case $rest in
	"-b "*)
		rest=${rest#-b }
		listen=${rest%% *}
		rest=${rest#* }
		;;
	esac
	case $listen in
	::*) there=::1 ;;
	*) there=127.0.0.1 ;;
	esac
	# shellcheck disable=SC2086
	start_server stdbuf -oL udpong -b $listen -p "$port" $rest
	wait_ready ready
	# shellcheck disable=SC2086
	run_client udpong -s $there -p "$port" $rest
	stop_server
	expect client '^custom .* [1-9]'
	expect server "^client login from $there"
}

# Server and client of each, and what both must have printed at the end.
once() {
	free_port
	done_line=
	case "$program $options " in
	"rping "*" -P "*)
		many_clients
		return
		;;
	"mckey  mckey "*)
		save=$options
		options=${options# mckey}
		two_members
		options=$save
		return
		;;
	esac
	case $program in
	rping)
		server="rping -s -a 127.0.0.1 -p $port -C 10 -v $options"
		client="rping -c -a 127.0.0.1 -p $port -C 10 -v -V $options"
		done_line='ping data: rdma-ping-9'
		;;
	ucmatose)
		server="ucmatose -b $host -p $port $options"
		client="ucmatose -s $host -p $port $options"
		done_line='return status 0'
		;;
	udaddy)
		one_port
		server="udaddy -b $host $options"
		client="udaddy -s $host $options"
		done_line='return status 0'
		;;
	rdma_server)
		server="rdma_server -p $port $options"
		client="rdma_client -s 127.0.0.1 -p $port $options"
		done_line='end 0'
		;;
	rdma_xserver)
		server="rdma_xserver -p $port $options"
		client="rdma_xclient -s 127.0.0.1 -p $port $options"
		done_line='end 0'
		;;
	mckey)
		one_port
		# Who only sends would wait for ever.
		server="mckey -m 239.1.1.1 -b 127.0.0.1 $(echo "$options" | sed 's/ -o//')"
		client="mckey -s -m 239.1.1.1 -b 127.0.0.1 $options"
		done_line='return status 0'
		;;
	cmtime)
		# The server has no end of its own.
		# shellcheck disable=SC2086
		start_server stdbuf -oL cmtime -b 127.0.0.1 -p "$port" $options
		wait_ready ready
		# shellcheck disable=SC2086
		run_client cmtime -s 127.0.0.1 -p "$port" $options
		stop_server
		expect client '^disconnect  *: .*[1-9]'
		return
		;;
	rcopy)
		rcopy_once
		return
		;;
	udpong)
		udpong_once
		return
		;;
	rstream | riostream)
		server="$program -b 127.0.0.1 -p $port $options"
		client="$program -s 127.0.0.1 -p $port $options"
		done_line='^[0-9a-z_]* .* [0-9.]* *[0-9.]*$'
		;;
	*)
		server="$program -b 127.0.0.1 -p $port $options"
		client="$program -s 127.0.0.1 -p $port $options"
		;;
	esac
	# Lines, because an end by a signal would lose them.
	pair ready "stdbuf -oL $server" "stdbuf -oL $client"
	refused || [ -z "$done_line" ] || {
		expect client "$done_line"
		expect server "$done_line"
	}
}

repeat
