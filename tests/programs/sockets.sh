#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# sockets.sh PROGRAM OPTIONS: programs that know TCP sockets only, over rsockets.
# Which way the bytes went stands in the log of the connection manager: whoever
# listens says that a connection is established.
. "$(dirname "$0")/common.sh"
program=${1:?nc, socat, python, iperf3, redis, memcached, nginx, node}
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

redis_once() {
	need redis-server redis-benchmark redis-cli
	start_server redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no
	wait_ready ready
	case $mode in
	mixed-client) plain="env -u LD_PRELOAD" ;;
	*) plain= ;;
	esac
	# shellcheck disable=SC2086 # words
	run_client $plain redis-benchmark -p "$port" -n 2000 -c 20 -q \
		-t set,get,lpush,lrange_100
	expect client 'LRANGE_100.*requests per second'
	# A child saves what there is, and has the server's sockets.
	# shellcheck disable=SC2086
	run_client $plain redis-cli -p "$port" bgsave
	expect client 'Background saving started'
	# shellcheck disable=SC2086
	run_client $plain redis-cli -p "$port" set key value
	# shellcheck disable=SC2086
	run_client $plain redis-cli -p "$port" shutdown nosave
	finish_server
	case $mode in
	mixed-client) over_tcp ;;
	*) over_rdma ;;
	esac
}

memcached_once() {
	need memcached python3
	start_server memcached -p "$port" -U 0 -l 127.0.0.1 -u "$(id -un)" -t 4
	wait_ready ready
	run_client python3 "$here/sockets.py" memcached "$port"
	stop_server
	over_rdma
}

node_once() {
	need node
	cat >"$tmp/echo.js" <<-'END'
	const net = require('net'), [side, port] = process.argv.slice(2), calls = 5;
	let ended = 0;
	function serve(socket) {
	    socket.pipe(socket);
	    socket.on('close', () => ++ended === calls && server.close());
	}
	function call(number) {
	    const bytes = Buffer.alloc(300000, number), got = [];
	    const socket = net.connect(port, '127.0.0.1');
	    socket.on('data', (part) => got.push(part));
	    socket.on('end', () => {
	        if (!Buffer.concat(got).equals(bytes))
	            throw new Error('other bytes arrived');
	        if (++ended === calls)
	            console.log('all came back');
	    });
	    socket.end(bytes);
	}
	const server = side === 'server' && net.createServer({ allowHalfOpen: true }, serve);
	if (server)
	    server.listen(port, '127.0.0.1');
	for (let i = 0; !server && i < calls; i++)
	    call(i);
	END
	start_server node "$tmp/echo.js" server "$port"
	wait_ready ready
	run_client node "$tmp/echo.js" client "$port"
	finish_server
	expect client 'all came back'
	over_rdma
}

nginx_once() {
	need nginx curl
	head -c 4194304 /dev/urandom >"$tmp/here"
	chmod -R a+rX "$tmp"
	processes="master_process off;"
	if [ "$mode" = fork ]; then
		processes="worker_processes 2; user $(id -un) $(id -gn);"
		export RDMAV_FORK_SAFE=1
	fi
	cat >"$tmp/nginx.conf" <<-END
	daemon off;
	$processes
	pid $tmp/pid;
	error_log stderr info;
	events { use epoll; }
	http {
		access_log off;
		client_body_temp_path $tmp/body;
		proxy_temp_path $tmp/proxy;
		fastcgi_temp_path $tmp/fastcgi;
		uwsgi_temp_path $tmp/uwsgi;
		scgi_temp_path $tmp/scgi;
		server { listen 127.0.0.1:$port; root $tmp; }
	}
	END
	start_server nginx -e stderr -c "$tmp/nginx.conf"
	if [ "$mode" = fork ]; then
		wait_ready tcp_listens "$port"
	else
		wait_ready ready
	fi
	# Three at once, then three by one connection.
	set -- -o "$tmp/there1" "http://127.0.0.1:$port/here" \
		-o "$tmp/there2" "http://127.0.0.1:$port/here" \
		-o "$tmp/there3" "http://127.0.0.1:$port/here"
	for parallel in --parallel --no-parallel; do
		run_client curl -sS --fail $parallel "$@"
		for there in "$tmp"/there?; do
			cmp "$tmp/here" "$there" || fail "what arrived differs"
			rm "$there"
		done
	done
	stop_server
	over_rdma
}

once() {
	free_port
	case $program in
	nc | redis | memcached | nginx | node)
		"${program}_once"
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
