#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Two gateways with ripc nodes, short messages as MODE says. The sender comes first and waits
# for the service; every sample that it accepted arrives, in order and equal, several in a
# message; over connections and over datagrams, which lose none here. Then the receiver is killed
# and comes back, and samples flow again. A second gateway cannot take the service's name.
FOLDER=gateway-ripc
. "$(dirname "$0")/../gateways.sh"
"$BUSBAR" devices 2>/dev/null | grep -q soft0 || skip "no adapter soft0"
# Ours alone: other tests run at the same time.
port=$((20000 + $$ % 12000))

# node GROUP: the keys that both sides have.
node() {
	echo "type = \"ripc\"; format = \"csv\"; address = \"127.0.0.1\"; resolver_port = $port; short = \"$MODE\"; $1"
}

# sender NAME REALTIME LIMIT: to the service, and a copy of what was written to a file.
sender() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = {
				type = "signal"; signal = "mixed"; values = 8;
				realtime = $2; rate = 200; limit = $3;
			};
			out = {
				$(node "out = { name = \"far-$port\"; reconnect_interval = 50; vectorize = 16; };")
			};
			copy = { type = "file"; format = "csv"; uri = "$tmp/$1.csv"; out = { }; };
		};
		paths = ( { in = "g"; out = ( "out", "copy" ); } );
	CONF
	run "$1" -q
}

# receiver NAME: the service to a file.
receiver() {
	cat >"$tmp/$1.conf" <<-CONF
		nodes = {
			in = {
				$(node "in = { name = \"far-$port\"; id = 77; signals = \"8f\"; vectorize = 8; };")
			};
			f = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "in"; out = "f"; } );
	CONF
	run "$1" -q
}

# Nothing is lost: the receiver is there first.
receiver first
first_pid=$last
until_true logged first 1 'receiving as service 0x4d far-'
# A busy host may not find it at once, and nobody takes the first samples; then once more.
for try in 1 2 3 4 5 6 7 8; do
	rm -f "$tmp/whole.log" "$tmp/whole.csv"
	if [ "$MODE" = connection ]; then
		sender whole false 5000 # as fast as the receiver takes them
	else
		sender whole true 200
	fi
	ends "$last"
	logged whole 1 'for a peer that is not there' || break
done
# A generator in real time leaves steps out on a busy host.
sent=$(rows whole)
[ "$sent" -gt 20 ] || fail "only $sent samples were sent"
data whole >"$tmp/sent"
came() {
	data first | tail -n "$sent" | cmp -s "$tmp/sent" -
}
until_true came
have=$(rows first)

# The name is taken.
receiver second
ends "$last" 1
logged second 1 'far-.* taken' || fail "it was not said that the name is taken"

# It dies, and comes back; the sender goes on.
sender again true 1000000
sender_pid=$last
until_true has_rows first $((have + 20))
kill -KILL "$first_pid"
wait "$first_pid" 2>/dev/null || true
if [ "$MODE" = connection ]; then
	until_true logged again 1 'the service is lost'
	receiver third
	third_pid=$last
	until_true has_rows third 20
	until_true logged again 2 'connected, service'
	stops "$third_pid"
fi
kill -INT "$sender_pid"
until_true has_ended "$sender_pid"

# The other way round: the sender waits for the service.
sender early true 1000000
early_pid=$last
until_true logged early 1 'waiting for service'
receiver late
late_pid=$last
until_true has_rows late 20
kill -INT "$early_pid"
until_true has_ended "$early_pid"
stops "$late_pid"
