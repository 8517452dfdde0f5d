#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench-servers.sh [BUILD]: what a node-type for other people's servers costs above a bare loop
# over the same library. A message goes through the server to a gateway, which sends it back
# through the server by one path, and beside it to a program that only receives and sends
# (tests/process/outside/echo.h). Both run all the time and are measured in turns, as in
# bench-udp.sh. Each server is started on a free port, with its files in a temporary folder;
# what is not installed is left out. Nodes have their default settings: a node amqp has its
# messages confirmed and acknowledged, which the bare loop of the row amqp does not, but that of
# the row amqp-confirm does. Of Kafka no server is packaged, and the mock of librdkafka holds
# messages back for 300 ms.
#
# Figures are medians of the runs; a ratio is the median of the ratios of the runs, and behind it
# stand the lowest and the highest of them.
#
# InfluxDB sends nothing back. So a gateway writes samples of a file into it, and beside it, in
# turns, a program sends the same points with libcurl, or in datagrams; and the processor time of a
# gateway that only reads the file is subtracted.
#
#   KINDS    rows of the table (zeromq nanomsg nats mqtt-0 mqtt-1 redis amqp amqp-confirm
#            influxdb-udp influxdb-http); mqtt-N: with QoS N
#   WHERE    "local" (default), or "namespaces": the server and both that answer are in one
#            network namespace and the one that asks is in another, joined by a pair of Ethernet
#            interfaces (scripts/two-hosts.sh; needs root)
#   FORMAT   "csv" (default): the gateway scans and prints text, which the bare loop does not; or
#            "raw": both only copy the eight values, so that the difference is the node-type's
#   BUSY     busy loops beside them (0), in turns on the processors of CPU and CPU_PING. They end
#            with the script, also when it is killed.
#   COUNT    messages to each in a run (4000), five times as many for the rate, fifty
#            times as many into InfluxDB
#   RUNS     runs of each row (5)
#   PORT     first to try (12200)
#   CPU      mask of those that answer and of the server (the second processor), and CPU_PING
#            of the one that asks (the first); 0: any
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build}")
BUSBAR=$build/busbar
peers=$build/tests/process/outside
KINDS=${KINDS:-zeromq nanomsg nats mqtt-0 mqtt-1 redis amqp amqp-confirm influxdb-udp influxdb-http}
WHERE=${WHERE:-local} BUSY=${BUSY:-0} FORMAT=${FORMAT:-csv}
COUNT=${COUNT:-4000} RUNS=${RUNS:-5} PORT=${PORT:-12200}
OUT=$(mktemp -d "${TMPDIR:-/tmp}/busbar-bench-servers.XXXXXX")

[ -x "$BUSBAR" ] || {
	rm -rf "$OUT"
	echo "$BUSBAR is not there; run 'make build' first" >&2
	exit 1
}
. scripts/gateways.sh
# shellcheck source=scripts/two-hosts.sh
. scripts/two-hosts.sh
at_end() {
	remove_hosts
	rm -rf "$OUT"
}
case $BUSY in
'' | *[!0-9]*) die "BUSY: $BUSY is no number" ;;
esac

case $FORMAT in
csv) format='"csv"' ;;
raw) format='{ type = "raw"; bits = 64; endianness = "little"; }' ;;
*) die "FORMAT: $FORMAT is neither csv nor raw" ;;
esac
export ECHO_FORMAT="$FORMAT"

# Of those that answer and of the one that asks: the address, and what starts a program there.
address=127.0.0.1 address_ping=127.0.0.1 in_there='' in_ping=''
case $WHERE in
local) ;;
namespaces)
	why=$(two_hosts 1500) || {
		echo "skipped: $why" >&2
		exit 77
	}
	address=10.77.0.1 in_there="ip netns exec $host_a"
	address_ping=10.77.0.2 in_ping="ip netns exec $host_b"
	;;
*) die "WHERE: $WHERE is neither local nor namespaces" ;;
esac

CPU=${CPU:-$(cpu_mask 1)} CPU_PING=${CPU_PING:-$(cpu_mask 0)}
# on MASK COMMAND...: there, instead of this shell.
on() {
	mask=$1
	shift
	[ "$mask" = 0 ] || set -- taskset "$(printf %x "$mask")" "$@"
	exec "$@"
}

# there COMMAND...: where those that answer are, instead of this shell.
there() {
	# shellcheck disable=SC2086 # words
	on "$CPU" $in_there "$@"
}

# A loop that takes a processor as long as the process $0 is there.
# shellcheck disable=SC2016 # for another shell
busy='while kill -0 "$0" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done'

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
	wait "$1" 2>/dev/null || true # without the word of the shell about a signal
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
	printf 'listener %d %s\nallow_anonymous true\nlog_dest stderr\n' "$port" "$address" >"$OUT/mosquitto.conf"
	# Started by root it would become another user. Without nodelay it holds a message back, for
	# up to 40 ms, until the one before it is acknowledged.
	printf 'user %s\nset_tcp_nodelay true\n' "$(id -un)" >>"$OUT/mosquitto.conf"
	start server there "$1" -c "$OUT/mosquitto.conf"
	await server "$pid" ' running'
}

start_redis() {
	next_port
	# Without its protected mode it takes connections from elsewhere.
	start server there "$1" --port "$port" --bind "$address" --protected-mode no --save '' \
		--appendonly no --dir "$OUT"
	await server "$pid" 'eady to accept connections'
}

# With a database `bench`; sets `http` and `udp` to its ports.
start_influxdb() {
	next_port
	rpc=$port
	next_port
	http=$port
	next_port
	udp=$port
	cat >"$OUT/influxd.conf" <<-CONF
		reporting-disabled = true
		bind-address = "$address:$rpc"
		[meta]
		dir = "$OUT/influxdb/meta"
		[data]
		dir = "$OUT/influxdb/data"
		wal-dir = "$OUT/influxdb/wal"
		[monitor]
		store-enabled = false
		[http]
		bind-address = "$address:$http"
		log-enabled = false
		[[udp]]
		enabled = true
		bind-address = "$address:$udp"
		database = "bench"
	CONF
	start server there "$1" -config "$OUT/influxd.conf"
	await server "$pid" 'Listening for signals'
	echo 'q=CREATE DATABASE bench' >"$OUT/create"
	# shellcheck disable=SC2086 # words
	$in_ping "$peers/write-influxdb" http "http://$address:$http/query" "$OUT/create" 1 ||
		die "the server makes no database"
}

start_nats() {
	next_port
	start server there "$1" --addr "$address" --port "$port"
	await server "$pid" 'Server is ready'
}

# Erlang's directory of nodes is started here, because the server would start one that stays.
start_rabbitmq() {
	next_port
	directory=$port
	start epmd there epmd -address 127.0.0.1 -port "$directory"
	epmd=$pid
	next_port
	dist=$port
	next_port
	mkdir -p "$OUT/rabbitmq"
	printf 'listeners.tcp.1 = %s:%d\ndisk_free_limit.absolute = 1MB\nlog.console = true\nlog.file = false\n' \
		"$address" "$port" >"$OUT/rabbitmq/rabbitmq.conf"
	# The user guest is one of this host otherwise.
	echo 'loopback_users = none' >>"$OUT/rabbitmq/rabbitmq.conf"
	echo '[].' >"$OUT/rabbitmq/plugins"
	# RUNNING_UNDER_SYSTEMD: no shell stands between this one and the server.
	start server there env HOME="$OUT/rabbitmq" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$directory" \
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

# spread: of numbers in a column the median, the lowest and the highest.
spread() {
	sort -n | awk '{ v[NR] = $1 } END { printf "%.2f %.2f-%.2f", v[int((NR + 1) / 2)], v[1], v[NR] }'
}
# ratios FILE: the gateway's first field divided by the bare loop's, of each run.
ratios() {
	awk 'NR % 2 { bare = $1; next } { print $1 / bare }' "$1" | spread
}

# ask PEER WHAT COUNT SERVER PAIRS...: one run.
ask() {
	peer=$1 what=$2 count=$3 server=$4
	shift 4
	# shellcheck disable=SC2086 # words
	(on "$CPU_PING" $in_ping "$peers/echo-$peer" "$what" "$server" "$count" "$@") \
		>>"$OUT/$what" 2>"$OUT/ping.log" || {
		for log in ping bare gateway; do
			show_log "$log"
		done
		die "$peer: $what was not measured"
	}
}

# measure ROW PEER SERVER TO FROM TO FROM: of the bare loop, then of the gateway, whose nodes
# stand in OUT/nodes. `bare_server`: SERVER of the bare loop where it is another one.
measure() {
	row=$1 peer=$2 server=$3
	shift 3
	printf 'nodes = {\n%s\n};\npaths = ( { in = "%s"; out = "x"; } );\n' "$(cat "$OUT/nodes")" \
		"$(grep -q '^y' "$OUT/nodes" && echo y || echo x)" >"$OUT/gateway.conf"
	start bare there "$peers/echo-$peer" echo "${bare_server:-$server}" "$1" "$2"
	bare=$pid
	start gateway there "$BUSBAR" run -q "$OUT/gateway.conf"
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
		"$(column "$OUT/ping" 1 2) $(ratios "$OUT/ping") $(column "$OUT/rate" 2 1)" \
		"$(column "$OUT/rate" 1 1) $(ratios "$OUT/rate")" |
		awk '{ printf "%-12s %9.1f %9.1f %9.1f %9.1f %8.1f %5s %-10s %8d %8d %5s %s\n", $1, $2, $3,
			$4, $5, $2 - $4, $6, $7, $8, $9, $10, $11 }'
}

# is_there ROW PEER [PROGRAM...]: whether all that a row needs is; sets `program` to the first
# PROGRAM that is.
is_there() {
	row=$1 peer=$2 bare=echo-$2
	[ "$peer" != influxdb ] || bare=write-influxdb
	[ -x "$peers/$bare" ] || {
		echo "$row: left out, the library is not there ($bare was not built)"
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

bare_server=
names='bare-to bare-from gateway-to gateway-from'
# Without a server: the one that asks and the other two publish at an address each.
# measure_direct TYPE KEY_IN KEY_OUT
measure_direct() {
	is_there "$1" "$1" || return 0
	type=$1 key_in=$2 key_out=$3
	set --
	for at in "$address_ping" "$address" "$address_ping" "$address"; do
		next_port
		set -- "$@" "$at:$port"
	done
	cat >"$OUT/nodes" <<-CONF
		x = { type = "$type"; format = $format; in = { $key_in = "tcp://$3"; signals = "8f"; };
			out = { $key_out = "tcp://$4"; }; };
	CONF
	measure "$type" "$type" tcp:// "$@"
}
measure_zeromq() {
	measure_direct zeromq subscribe publish
}
measure_nanomsg() {
	measure_direct nanomsg endpoints endpoints
}

measure_nats() {
	is_there nats nats nats-server || return 0
	start_nats "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "nats"; host = "$address"; port = $port; format = $format;
			in = { subscribe = "gateway-to"; signals = "8f"; }; out = { publish = "gateway-from"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure nats nats "$address:$port" $names
	end "$broker"
}

# measure_mqtt QOS
measure_mqtt() {
	is_there "mqtt-$1" mqtt mosquitto || return 0
	start_mosquitto "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "mqtt"; host = "$address"; port = $port; qos = $1; format = $format;
			in = { subscribe = "gateway-to"; signals = "8f"; }; out = { publish = "gateway-from"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure "mqtt-$1" mqtt "$address:$port,$1" $names
	end "$broker"
}

# Two nodes: one has the same channels in both directions, and would hear itself.
measure_redis() {
	is_there redis redis redis-server || return 0
	start_redis "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "redis"; host = "$address"; port = $port; mode = "channel"; channel = "gateway-from"; format = $format; };
		y = { type = "redis"; host = "$address"; port = $port; mode = "channel"; channel = "gateway-to"; format = $format;
			in = { signals = "8f"; }; };
	CONF
	# shellcheck disable=SC2086 # words
	measure redis redis "$address:$port" $names
	end "$broker"
}

# measure_amqp ROW WHAT: WHAT follows the port of the bare loop.
measure_amqp() {
	# The one of Debian in PATH wants to be another user.
	is_there "$1" amqp /usr/lib/rabbitmq/bin/rabbitmq-server rabbitmq-server || return 0
	start_rabbitmq "$program"
	broker=$pid
	cat >"$OUT/nodes" <<-CONF
		x = { type = "amqp"; host = "$address"; port = $port; exchange = "echo"; format = $format;
			in = { routing_key = "gateway-to"; signals = "8f"; }; out = { routing_key = "gateway-from"; }; };
	CONF
	bare_server=$address:$port$2
	# shellcheck disable=SC2086 # words
	measure "$1" amqp "$address:$port" $names
	bare_server=
	end "$broker"
	end "$epmd"
}

# cost CONFIG|udp|http ARGUMENTS...: a line "seconds, seconds of a processor" of a gateway, or of
# the bare loop, into OUT/costs.
cost() {
	case $1 in
	udp | http) set -- "$peers/write-influxdb" "$@" ;;
	*) set -- "$BUSBAR" run -q --summary=none "$1" ;;
	esac
	# shellcheck disable=SC2086 # words
	(on "$CPU_PING" $in_ping "$peers/write-influxdb" run "$@") >>"$OUT/costs" 2>"$OUT/write.log" || {
		show_log write
		die "$* was not measured"
	}
}

# measure_influxdb TRANSPORT
# shellcheck disable=SC2016 # for awk
measure_influxdb() {
	is_there "influxdb-$1" influxdb influxd || return 0
	count=$((50 * COUNT))
	start_influxdb "$program"
	broker=$pid
	awk -v count="$count" -v csv="$OUT/samples.csv" -v lines="$OUT/lines" 'BEGIN {
		for (i = 0; i < count; i++) {
			s = 1700000000 + int(i / 100000)
			ns = sprintf("%09d", i % 100000 * 10000)
			values = fields = ""
			for (k = 0; k < 8; k++) {
				v = sprintf("%d.%d", i % 1000, k + 1)
				values = values "," v
				fields = fields (k ? "," : "") "signal" k "=" v
			}
			print s "," ns ",nan," i values >csv
			print "bench " fields " " s ns >lines
		}
	}'
	if [ "$1" = udp ]; then
		server="server = \"$address:$udp\""
		set -- udp "$address:$udp" "$OUT/lines" 1 # as a node without out.vectorize
	else
		server="url = \"http://$address:$http\"; database = \"bench\""
		set -- http "http://$address:$http/write?db=bench" "$OUT/lines" 5000 # its out.batch
	fi
	for to in '' 'out = "x";'; do
		cat >"$OUT/${to:+to-}influxdb.conf" <<-CONF
			idle_stop = true;
			nodes = {
				file = { type = "file"; uri = "$OUT/samples.csv"; format = "csv";
					in = { epoch_mode = "original"; signals = "8f"; }; };
				x = { type = "influxdb"; key = "bench"; transport = "$1"; $server;
					out = { full = "block"; block_timeout = 30.0; }; };
			};
			paths = ( { in = "file"; $to } );
		CONF
	done
	rm -f "$OUT/costs"
	run=0
	while [ "$run" -lt "$RUNS" ]; do
		cost "$@"
		cost "$OUT/to-influxdb.conf"
		cost "$OUT/influxdb.conf"
		run=$((run + 1))
	done
	end "$broker"
	rm -rf "$OUT/influxdb" "$OUT/samples.csv" "$OUT/lines"
	# Fields: time and processor time of the bare loop, of the gateway, of reading alone.
	of() {
		paste - - - <"$OUT/costs" | awk -v count="$count" "{ print $1 }"
	}
	row="influxdb-$1 $(of 'count / $3' | middle) $(of 'count / $1' | middle) $(of '$1 / $3' | spread)"
	echo "$row $(of '1e6 * $4 / count' | middle) $(of '1e6 * $6 / count' | middle)" \
		"$(of '1e6 * $2 / count' | middle) $(of '($4 - $6) / $2' | spread)" |
		awk '{ printf "%-13s %8d %8d %5s %-10s %8.2f %8.2f %8.2f %5s %s\n", $1, $2, $3, $4, $5, $6,
			$7, $8, $9, $10 }'
}

loop=0
while [ "$loop" -lt "$BUSY" ]; do
	[ $((loop % 2)) -eq 0 ] && mask=$CPU || mask=$CPU_PING
	start busy on "$mask" sh -c "$busy" $$
	loop=$((loop + 1))
done
echo "8 values; $RUNS runs of $COUNT messages; $WHERE, $BUSY busy loops"
of_echo() {
	echo "$FORMAT; round trip in us, messages a second"
	printf '%-12s %19s %19s %-25s %s\n' '' gateway bare '  gateway - bare' 'rate'
	printf '%-12s %9s %9s %9s %9s %8s %-16s %8s %8s %s\n' server p50 p99 p50 p99 us 'ratio (runs)' \
		gateway bare 'ratio (runs)'
}
of_influxdb() {
	echo 'samples a second, and us of a processor for a sample; ratio: gateway - reading, to bare'
	printf '%-13s %-34s %s\n' '' rate 'processor time'
	printf '%-13s %8s %8s %-16s %8s %8s %8s %s\n' server gateway bare 'ratio (runs)' gateway reading bare \
		'ratio (runs)'
}
table=
for kind in $KINDS; do
	case $kind in
	influxdb-*) this=of_influxdb ;;
	*) this=of_echo ;;
	esac
	[ "$table" = "$this" ] || "$this"
	table=$this
	case $kind in
	mqtt-[012]) measure_mqtt "${kind#mqtt-}" ;;
	influxdb-udp | influxdb-http) measure_influxdb "${kind#influxdb-}" ;;
	amqp) measure_amqp "$kind" '' ;;
	amqp-confirm) measure_amqp "$kind" ,confirm ;;
	zeromq | nanomsg | nats | redis) "measure_$kind" ;;
	*)
		die "KINDS: $kind is none of zeromq, nanomsg, nats, mqtt-0, mqtt-1, mqtt-2, redis, amqp," \
			"amqp-confirm, influxdb-udp and influxdb-http"
		;;
	esac
done
