#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-servers.sh [BUILD]: what a node-type for other people's servers costs above a bare loop
# over the same library. A message goes through the server to a gateway, which sends it back
# through the server by one path, and beside it to a program that only receives and sends
# (tests/process/outside/echo.h). Both run all the time and are measured in turns, as in
# bench-udp.sh. Each server is started on a free port, with its files in a temporary folder;
# what is not installed is left out. Nodes have their default settings: a node amqp has its
# messages confirmed and acknowledged, which the bare loop does not. Of Kafka no server is
# packaged, and the mock of librdkafka holds messages back for 300 ms.
#
#   KINDS    rows of the table (zeromq mqtt-0 mqtt-1 redis amqp); mqtt-N: with QoS N
#   COUNT    messages to each in a run (4000), five times as many for the rate
#   RUNS     runs of each row (5)
#   PORT     first to try (12200)
#   CPU      mask of those that answer and of the server (the second processor), and CPU_PING
#            of the one that asks (the first); 0: any
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
BUSBAR=$build/busbar
peers=$build/tests/process/outside
KINDS=${KINDS:-zeromq mqtt-0 mqtt-1 redis amqp}
COUNT=${COUNT:-4000} RUNS=${RUNS:-5} PORT=${PORT:-12200}
OUT=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-servers.XXXXXX")

[ -x "$BUSBAR" ] || {
	rm -rf "$OUT"
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
. scripts/gateways.sh
at_end() {
	rm -rf "$OUT"
}

CPU=${CPU:-$(cpu_mask 1)} CPU_PING=${CPU_PING:-$(cpu_mask 0)}
# on MASK COMMAND...: there, instead of this shell.
on() {
	mask=$1
	shift
	[ "$mask" = 0 ] || set -- taskset "$(printf %x "$mask")" "$@"
	exec "$@"
}

# next_port: sets `port` to the next one that no socket of this host has.
next_port() {
	port=$PORT
	while grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$port") " /proc/net/tcp /proc/net/tcp6; do
		port=$((port + 1))
	done
	PORT=$((port + 1))
}

# end PID: ends a process that start() has started.
end() {
	kill -TERM "$1" 2>/dev/null || true
	wait_end "$1" 5 || kill -KILL "$1" 2>/dev/null || true
	wait "$1" || true
	pids=$(echo " $pids " | sed "s/ $1 / /")
}

# await NAME PID PATTERN: until the log has it, for a server that takes its time.
await() {
	tries=0
	until grep -q -e "$3" "$OUT/$1.log"; do
		tries=$((tries + 1))
		if ! alive "$2" || [ "$tries" -gt 600 ]; then
			show_log "$1"
			die "$1 does not start"
		fi
		sleep 0.1
	done
}

start_mosquitto() {
	next_port
	printf 'listener %d 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n' "$port" >"$OUT/mosquitto.conf"
	# Started by root it would become another user. Without nodelay it holds a message back, for
	# up to 40 ms, until the one before it is acknowledged.
	printf 'user %s\nset_tcp_nodelay true\n' "$(id -un)" >>"$OUT/mosquitto.conf"
	start server on "$CPU" "$1" -c "$OUT/mosquitto.conf"
	await server "$pid" ' running'
}

start_redis() {
	next_port
	start server on "$CPU" "$1" --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$OUT"
	await server "$pid" 'eady to accept connections'
}

# Erlang's directory of nodes is started here, because the server would start one that stays.
start_rabbitmq() {
	next_port
	directory=$port
	start epmd epmd -address 127.0.0.1 -port "$directory"
	epmd=$pid
	next_port
	dist=$port
	next_port
	mkdir -p "$OUT/rabbitmq"
	printf 'listeners.tcp.1 = 127.0.0.1:%d\ndisk_free_limit.absolute = 1MB\nlog.console = true\nlog.file = false\n' \
		"$port" >"$OUT/rabbitmq/rabbitmq.conf"
	echo '[].' >"$OUT/rabbitmq/plugins"
	# RUNNING_UNDER_SYSTEMD: no shell stands between this one and the server.
	start server on "$CPU" env HOME="$OUT/rabbitmq" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$directory" \
		ERL_CRASH_DUMP=/dev/null RUNNING_UNDER_SYSTEMD=true RABBITMQ_NODENAME=bench@localhost \
		RABBITMQ_DIST_PORT="$dist" RABBITMQ_BASE="$OUT/rabbitmq" \
		RABBITMQ_MNESIA_BASE="$OUT/rabbitmq/mnesia" RABBITMQ_LOG_BASE="$OUT/rabbitmq/log" \
		RABBITMQ_CONFIG_FILE="$OUT/rabbitmq/rabbitmq.conf" \
		RABBITMQ_CONF_ENV_FILE="$OUT/rabbitmq/none" \
		RABBITMQ_ENABLED_PLUGINS_FILE="$OUT/rabbitmq/plugins" "$1"
	await server "$pid" 'startup complete\|completed with'
}

# middle: the median of the numbers of a column.
middle() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
# column FILE LINE FIELD: of each run, which has two lines in the file.
column() {
	awk -v line="$2" -v field="$3" 'NR % 2 == line % 2 { print $field }' "$1" | middle
}

# ask PEER WHAT COUNT SERVER PAIRS...: one run.
ask() {
	peer=$1 what=$2 count=$3 server=$4
	shift 4
	(on "$CPU_PING" "$peers/echo-$peer" "$what" "$server" "$count" "$@") \
		>>"$OUT/$what" 2>"$OUT/ping.log" || {
		for log in ping bare gateway; do
			show_log "$log"
		done
		die "$peer: $what was not measured"
	}
}

# measure ROW PEER SERVER TO FROM TO FROM: of the bare loop, then of the gateway, whose nodes
# stand in OUT/nodes.
measure() {
	row=$1 peer=$2 server=$3
	shift 3
	printf 'nodes = {\n%s\n};\npaths = ( { in = "%s"; out = "x"; } );\n' "$(cat "$OUT/nodes")" \
		"$(grep -q '^y' "$OUT/nodes" && echo y || echo x)" >"$OUT/gateway.conf"
	start bare on "$CPU" "$peers/echo-$peer" echo "$server" "$1" "$2"
	bare=$pid
	start gateway on "$CPU" "$BUSBAR" run -q "$OUT/gateway.conf"
	gateway=$pid
	rm -f "$OUT/ping" "$OUT/rate"
	run=0
	while [ "$run" -lt "$RUNS" ]; do
		ask "$peer" ping "$COUNT" "$server" "$@"
		ask "$peer" rate "$((5 * COUNT))" "$server" "$@"
		run=$((run + 1))
	done
	end "$gateway"
	end "$bare"
	echo "$row $(column "$OUT/ping" 2 1) $(column "$OUT/ping" 2 2) $(column "$OUT/ping" 1 1)" \
		"$(column "$OUT/ping" 1 2) $(column "$OUT/rate" 2 1) $(column "$OUT/rate" 1 1)" |
		awk '{ printf "%-8s %9.1f %9.1f %9.1f %9.1f %8.1f %6.2f %9d %9d %6.2f\n", $1, $2, $3, $4,
			$5, $2 - $4, $2 / $4, $6, $7, $6 / $7 }'
}

# is_there ROW PEER MODULE [PROGRAM...]: whether all that a row needs is; sets `program` to the
# first PROGRAM that is.
is_there() {
	row=$1 peer=$2
	[ -x "$peers/echo-$peer" ] || {
		echo "$row: left out, the library is not there (echo-$peer was not built)"
		return 1
	}
	"$BUSBAR" node -C | grep -q "\"$peer\"" || {
		echo "$row: left out, this gateway has no node-type $peer"
		return 1
	}
	shift 2
	[ $# -gt 0 ] || return 0
	for program in "$@"; do
		program=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$program") && return 0
	done
	echo "$row: left out, $1 is not installed"
	return 1
}

names='bare-to bare-from gateway-to gateway-from'
measure_zeromq() {
	is_there zeromq zeromq || return 0
	ports=
	for _ in 1 2 3 4; do
		next_port
		ports="$ports $port"
	done
	# shellcheck disable=SC2086 # words
	set -- $ports
	cat >"$OUT/nodes" <<-CONF
		x = { type = "zeromq"; format = "csv"; in = { subscribe = "tcp://127.0.0.1:$3"; signals = "8f"; };
			out = { publish = "tcp://127.0.0.1:$4"; }; };
	CONF
	measure zeromq zeromq tcp://127.0.0.1: "$@"
}

# measure_mqtt QOS
measure_mqtt() {
	is_there "mqtt-$1" mqtt mosquitto || return 0
	start_mosquitto "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "mqtt"; host = "127.0.0.1"; port = $port; qos = $1; format = "csv";
			in = { subscribe = "gateway-to"; signals = "8f"; }; out = { publish = "gateway-from"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure "mqtt-$1" mqtt "$port,$1" $names
	end "$broker"
}

# Two nodes: one has the same channels in both directions, and would hear itself.
measure_redis() {
	is_there redis redis redis-server || return 0
	start_redis "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "redis"; port = $port; mode = "channel"; channel = "gateway-from"; format = "csv"; };
		y = { type = "redis"; port = $port; mode = "channel"; channel = "gateway-to"; format = "csv";
			in = { signals = "8f"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure redis redis "$port" $names
	end "$broker"
}

measure_amqp() {
	# The one of Debian in PATH wants to be another user.
	is_there amqp amqp /usr/lib/rabbitmq/bin/rabbitmq-server rabbitmq-server || return 0
	start_rabbitmq "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "amqp"; host = "127.0.0.1"; port = $port; exchange = "echo"; format = "csv";
			in = { routing_key = "gateway-to"; signals = "8f"; }; out = { routing_key = "gateway-from"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure amqp amqp "$port" $names
	end "$broker"
	end "$epmd"
}

echo "8 values, csv; round trip in us, messages a second; $RUNS runs of $COUNT messages"
printf '%-8s %19s %19s %15s %26s\n' '' gateway bare 'gateway - bare' 'rate'
printf '%-8s %9s %9s %9s %9s %8s %6s %9s %9s %6s\n' server p50 p99 p50 p99 us ratio gateway bare ratio
for kind in $KINDS; do
	case $kind in
	mqtt-[012]) measure_mqtt "${kind#mqtt-}" ;;
	zeromq | redis | amqp) "measure_$kind" ;;
	*) die "KINDS: $kind is none of zeromq, mqtt-0, mqtt-1, mqtt-2, redis and amqp" ;;
	esac
done
