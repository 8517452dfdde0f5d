#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

cat >good.conf <<'CONF'
stats = 0; // and the gateway ends all the same
idle_stop = true;
nodes = {
	sig = { type = "signal", realtime = false, limit = 20, values = ${VALUES:-2} },
	loop = { type = "loopback", enabled = true },
	rec = { type = "file", uri = "rec.dat", out = { append = false } }
}
paths = ( { in = "sig", out = "loop", hooks = ( "stats" ) },
	{ in = [ "loop" ], out = [ "rec" ], enabled = true } )
CONF
sed 's/, hooks = ( "stats" )//; s/limit =/limt =/' good.conf >bad.conf
sed -i 's/, hooks = ( "stats" )//' good.conf

expect 0 'a good file' villas-test-config -c good.conf
expect 1 'an unknown key' "$BUSBAR" test-config bad.conf
says 'is an error with file, line and the nearest key' "error .*bad.conf:4: nodes.sig.limt: unknown key, did you mean 'limit'"
expect 0 'an unknown key by the name that laboratories know' villas-test-config bad.conf
says 'is a warning with file, line and the nearest key' "warn .*bad.conf:4: nodes.sig.limt: unknown key, passed over, did you mean 'limit'"
sed 's/limt = 20/endian = 1, remote = 2/' bad.conf >former.conf
expect 0 'keys of older versions' villas-test-config former.conf
says 'are told what is there instead' 'nodes.sig.endian: unknown key, passed over; it belongs to the format'
says 'all of them' 'nodes.sig.remote: unknown key, passed over; it is called'
sed 's/sig = { type/sig = { hooks = ( { type = "scale", signal = 0, scal = 2.0 } ), type/; s/rec.dat"/&, format = { type = "csv", delimter = "," }/' good.conf >deep.conf
expect 0 'unknown keys of hooks and formats' villas-test-config deep.conf
says 'are warnings, too' "scal: unknown key, passed over, did you mean 'scale'"
says 'are warnings, too' "delimter: unknown key, passed over, did you mean 'delimiter'"
expect 1 'are errors elsewhere' "$BUSBAR" test-config deep.conf
sed 's/limt = 20/limit = "many"/' bad.conf >wrong.conf
expect 1 'a wrong value is an error by all names' villas-test-config wrong.conf
sed 's/in = "sig", out = "loop"/in = "sig", out = "rec"/' good.conf >twice-written.conf
expect 1 'two paths into one node' villas-test-config twice-written.conf
says 'are told the rule' 'Every node must only be used by a single path as destination'
expect 1 'no such file' villas-test-config none.conf
expect 2 'no file' villas-test-config
expect 0 'a dump' villas-test-config -D good.conf
cp out dumped.json
expect 0 'is a configuration itself' villas-test-config dumped.json
expect 0 'conf2json' env VALUES=7 "$dir/bin/villas-conf2json" good.conf
says 'puts variables in' '"values": 7' out
cp out converted.json
expect 0 'JSON' villas-conf2json converted.json
cmp -s out converted.json || fail 'JSON as JSON is not the same'
villas-conf2json good.conf >/dev/full 2>log && fail 'a full disk is no failure'
echo 'nodes = {' >broken.conf
expect 1 'a syntax error' villas-conf2json broken.conf
says 'is told with its line' 'broken.conf:'

expect 0 'a gateway without statistics ends when its paths have' timeout 20 villas-node good.conf
samples 'its work is done' 20 rec.dat
# With HTTP it goes on, unless the file sets idle_stop. If the port is taken, another one is tried.
served() {
	what=$1 wanted=$2
	shift 2
	for try in 1 2 3 4; do
		port=$(shuf -i 20000-29999 -n 1)
		echo 'nodes = { sig = { type = "signal", limit = 5, realtime = false } }, paths = ( { in = "sig" } ), stats = 0' >served.conf
		[ -z "$idle" ] || echo "idle_stop = $idle" >>served.conf
		[ "$group" = - ] || echo "http = { port = $port, enabled = $group }" >>served.conf
		"$@" >out 2>log &
		pid=$!
		ended() { ! kill -0 $pid 2>/dev/null; }
		if [ "$wanted" = ends ]; then
			wait_either=ended
		else
			wait_either=nodes_have_ended
		fi
		tries=0
		until $wait_either || ended || [ $tries -gt 1000 ]; do
			tries=$((tries + 1))
			sleep 0.02
		done
		grep -q 'already in use' log || break
		wait $pid
	done
	if [ "$wanted" = ends ]; then
		ended || fail "$what: it does not end"
	else
		ended && fail "$what: it ends"
	fi
	kill -TERM $pid 2>/dev/null
	wait $pid || fail "$what: exit status $?"
}
nodes_have_ended() { "$BUSBAR" ctl -j "$dir/served" path 0 2>/dev/null | grep -q '"state": *"ended"'; }
for row in '- - ends' '- false ends' '- true goes' 'true true ends' 'false - goes'; do
	read -r idle group wanted <<-ROW
		$row
	ROW
	[ "$idle" = - ] && idle=
	served "villas-node, idle_stop '$idle', http '$group'" "$wanted" villas-node "--control=$dir/served" served.conf
done
idle='' group=-
served 'villas-node --http' goes villas-node "--control=$dir/served" --http=0 served.conf
group=true
served 'run' goes "$BUSBAR" run "--control=$dir/served" served.conf
served 'run --idle-stop' ends "$BUSBAR" run --idle-stop "--control=$dir/served" served.conf
expect 2 'a gateway with an unknown key' "$BUSBAR" node bad.conf
rm -f log # what is there shall be new
villas-node bad.conf >out 2>log &
pid=$!
wait_for $pid grep -qs 'is running' log
kill -TERM $pid
wait $pid || fail "the other name starts it, and SIGTERM ends it: exit status $?"
says 'and warns' 'warn .*limt: unknown key'
# Errors of keys, of signals and of what a format can hold: all in one round, and
# none of what only follows from another one (l.x, k.y, the path without `in`).
cat >many.conf <<'CONF'
nodes = {
	a = { type = "signal"; signal = "sine"; limt = 5; };
	s = { type = "socket"; in = { address = "127.0.0.1:5000"; signals = "f"; hooks = ( { type = "scale"; signal = "u"; } ); }; };
	t = { type = "socket"; in = { address = "127.0.0.1:5001"; signals = "f"; }; };
	q = { type = "socket"; in = { address = "127.0.0.1:5002"; signals = "c"; format = "villas.binary"; }; };
	l = { type = "loopback"; };
	k = { type = "loopback"; };
	f = { type = "file"; uri = "y"; format = "villas.binary"; out = {}; };
};
paths = ( { in = "s"; out = "l"; }, { in = "l.x"; }, { in = "a"; out = "k"; }, { in = "k.y"; },
	{ in = "q"; hooks = ( { type = "rms"; window_size = 3; signal = 0; } ); },
	{ in = "t.volt"; },
	{ in = "t"; out = "f"; hooks = ( { type = "cast"; signal = 0; new_type = "boolean"; } ); },
	{ out = "nothing"; } );
CONF
expect 2 'errors of many kinds' "$BUSBAR" check many.conf
for error in '2: nodes.a.limt: unknown key' '3: nodes.s.in.hooks\[0\].signal: no signal' \
	'5: nodes.q.in.format: the signal .* is complex' '8: nodes.f: the signal .* is boolean' \
	'12: paths\[5\].in: .*no signal .volt' '14: paths\[7\].in: missing' "14: paths\\[7\\].out: no node 'nothing'"; do
	says 'each is told' "many.conf:$error"
done
says 'and nothing else' 'many.conf: 7 errors'
# What VILLASnode has and this has not: what is recommended in its place has to speak
# the same protocol, which only opal.async has in common with socket.
for type in advio amqp api c37.118 can comedi ethercat fmu fpga influxdb iec60870-5-104 kafka modbus \
	mqtt nanomsg ngsi opal.async redis rtp webrtc zeromq; do
	echo "nodes = { n = { type = \"$type\" } }" >other.conf
	"$BUSBAR" check -q other.conf 2>log && continue
	# It is there, and lacks its keys; or the build had no library for it.
	grep -q 'no node-type' log || continue
	grep -q 'built without it' log && continue
	says "a node-type that is not here ($type)" "VILLASnode has it; ."
	[ $type != opal.async ] && grep -q 'use socket\|or socket' log && fail "$type: socket is recommended"
done
cp "$BUSBAR" alone
sed 's/paths = (/paths = ( { in = "sig", hooks = ( "lua" ) },/' good.conf >modules.conf
expect 2 'a hook whose module is not there' ./alone check modules.conf
says 'is no misspelt one' "the module of hook 'lua' cannot be loaded"
grep -q 'did you mean' log && fail 'the name itself is proposed'
expect 2 'silent' villas-node -d off wrong.conf
[ -s log ] && fail 'off is not silent'
expect 2 'an unknown level' villas-node -d loud good.conf
says 'is told' 'trace, debug, info'
expect 0 'capabilities' villas-node -C
mv out capabilities.json
expect 0 'are JSON' villas-conf2json capabilities.json
for list in build hooks apis nodes formats; do
	says 'capabilities' "^  \"$list\":" out
done
says 'capabilities' '"villas.human"' out
for name in capabilities node node/stats node/restart path/stop restart; do
	says 'requests have names without their method' "^    \"$name\",*$" out
done
grep -qE 'GET|POST|[*]' out && fail 'a request has a method or a placeholder'

# Without a configuration, or without an active path, it waits to be given one.
provision() {
	what=$1 socket=$2
	shift 2
	rm -f log rec.dat
	"$@" >out 2>log &
	pid=$!
	wait_for $pid "$BUSBAR" ctl "$socket" status >/dev/null 2>&1
	"$BUSBAR" ctl "$socket" restart good.conf >/dev/null || fail "$what: is not given a configuration"
	wait $pid || fail "$what: exit status $?"
	samples "$what: does what it was told" 20 rec.dat
}
provision 'no configuration' "$dir/socket" villas-node "--control=$dir/socket"
says 'no configuration is told' 'no configuration: the gateway waits for one'
sed 's/idle_stop = true;//; s/enabled = true }$/enabled = false }/; s/{ in = "sig", out = "loop" }/{ in = "sig", out = "loop", enabled = false }/' good.conf >inactive.conf
provision 'no active path' "$dir/socket" villas-node "--control=$dir/socket" inactive.conf
provision 'run without a configuration' "$dir/socket" "$BUSBAR" run --summary=none "--control=$dir/socket"
expect 2 'run without a configuration that nobody could give one' "$BUSBAR" run
rm -f log
villas-node >out 2>log &
pid=$!
wait_for $pid "$BUSBAR" ctl "@villas-node-$pid" status >/dev/null 2>&1
"$BUSBAR" ctl "@villas-node-$pid" reload >reloaded 2>&1 && fail 'reloads a file that there is not'
says 'reload without a file is refused' 'name one' reloaded
kill -TERM $pid
wait $pid || fail "waits for a configuration and is ended: exit status $?"
expect 0 'help' villas-node -h
for name in signal drop villas.human node/start; do
	says 'help lists what there is' "^ - $name" out
done
for title in 'node-types' 'IO formats' hooks 'API commands'; do
	says 'help has a title for each kind' "^Supported $title:$" out
done

# timeout(1) and some scripts signal the process and its group: one request, twice.
# Ending takes a while, as messages are under way.
cat >twice.conf <<-CONF
	nodes = {
		s = { type = "signal"; rate = 100.0; };
		late = {
			type = "socket"; layer = "unix"; in = { address = "$dir/a"; };
			out = { address = "$dir/b"; netem = { delay = 700000.0; }; };
		};
	};
	paths = ( { in = "s"; out = "late"; } );
CONF
rm -f log # what is there shall be new
villas-node twice.conf >out 2>log &
pid=$!
wait_for $pid grep -qs 'is running' log
sleep 0.1
kill -INT $pid
kill -INT $pid 2>/dev/null
wait $pid || fail "asked twice at once: exit status $?"
says 'the summary is there all the same' '^s  *signal ' out
expect 0 'a graph' villas-graph good.conf
says 'has nodes' '^	"sig" \[label="sig"' out
says 'and paths' '^	"sig" -> "path:0"' out
sed 's/in = "sig"/in = "sig.data[0-1]"/' good.conf >mapped.conf
expect 0 'a graph of parts of nodes' villas-graph mapped.conf
says 'has the nodes' '^	"sig" -> "path:0"' out
sed 's/out = "loop"/out = "nowhere"/' good.conf >lost.conf
expect 1 'a graph of a path to nowhere' villas-graph lost.conf
says 'is told' "no node 'nowhere'"
# What draws is another program; here one that shows what it is given.
mkdir fake
printf '#!/bin/sh\necho "$@" >arguments\ncat >given\n' >fake/dot
chmod +x fake/dot
real_path=$PATH
PATH=$dir/fake:$PATH
expect 0 'a picture' villas-graph -T svg -o 'a picture.svg' -G size=4 good.conf
says 'arguments are passed on' '^-T svg -o a picture.svg -G size=4$' arguments
says 'and the graph' '^digraph' given
printf '#!/bin/sh\nexit 3\n' >fake/dot
expect 1 'a picture that cannot be drawn' villas-graph -T svg good.conf
PATH=$dir/bin
expect 1 'no program to draw' villas-graph -T svg good.conf
PATH=$real_path
says 'is told' 'install graphviz'
if command -v dot >/dev/null; then
	expect 0 'a real picture' villas-graph -T svg good.conf
	says 'is one' '<svg' out
	expect 0 'every name' sh -c 'villas-graph good.conf | dot -T canon'
fi
exit "$failed"
