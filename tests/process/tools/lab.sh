#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What laboratories do with VILLASnode, as they do it: nodes without `in` and `out`,
# one file, object or socket as its own peer, older names, scripts that wait for the
# end of the daemon.
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

# A gateway that ends with its generators; signals by their shapes' names.
cat >hook.json <<'CONF'
{	// as people write JSON
	"nodes": {
		"sig": { "type": "signal", "signal": "mixed", "realtime": 0, "limit": 10, "rate": 100, "values": 5, },
		"rec": { "type": "file", "uri": "made/for/it.dat" }
	},
	"paths": [ { "in": "sig", "out": "rec", "hooks": [
		{ "type": "average", "signals": [ "random", "sine", "square", "triangle", "ramp" ], "offset": 0 },
		{ "type": "skip_first", "samples": 5 },
		{ "type": "print", "output": "printed.dat", "prefix": "unused" },
	] } ]
}
CONF
expect 0 'a daemon whose paths have ended' timeout 20 villas-node "file://$PWD/hook.json"
samples 'writes the file that a path names' 5 made/for/it.dat
says 'signals are called by their shapes' 'average.random.sine.square.triangle.ramp' made/for/it.dat
samples 'prints to the file, too' 5 printed.dat
grep -q unused printed.dat && fail 'the prefix is in the file'
sed 's/"nodes"/"idle_stop": false, "nodes"/' hook.json >stay.json
expect 124 'idle_stop = false goes on' timeout 1 villas-node stay.json

cat >map.conf <<'CONF'
name = "lab"
nodes = {
	one = { type = "signal.v2", limit = 1, initial_sequenceno = 99,
		in = { signals = ( { name = "a", signal = "constant", amplitude = 3 } ) } }
	two = { type = "signal", signal = "counter", values = 2, offset = 7, limit = 1 }
	rec = { type = "file", uri = "map.dat" }
}
paths = (
	{ in = [ "one.hdr.sequence", "one.data[a]", "two.data[counter]" ], out = "rec", mode = "all" },
)
CONF
expect 0 'mappings by name' timeout 20 villas-node map.conf
says 'give the values' '99.3\.0.7\.0' map.dat

# Several sources: the numbers count all samples that come, an output is as long as the
# sources that have delivered, and the first end is the end.
cat >mux.conf <<'CONF'
nodes = {
	fast = { type = "signal", signal = "counter", rate = 50, limit = 10, catch_up = 100 }
	slow = { type = "signal", signal = "counter", rate = 25, limit = 50, offset = 100, catch_up = 100 }
	rec = { type = "file", uri = "mux.dat" }
}
paths = ( { in = [ "fast", "slow" ], out = "rec" } )
CONF
expect 0 'several sources' timeout 20 villas-node mux.conf
grep -v '^#' mux.dat | sed 's/.*(\([0-9]*\))F\{0,1\}/\1/' >numbers
awk '$1 != NR - 1 { exit 1 }' numbers || fail 'the numbers of several sources have gaps'
[ "$(awk '{ print NF - 1 }' numbers | uniq | tr '\n' ' ')" = '1 2 ' ] ||
	fail "the outputs do not grow from one value to two: $(cat mux.dat)"
[ "$(awk '{ print $2 }' numbers | tail -n 1)" = 9.0 ] || fail 'the last value of the first end is not there'
[ "$(wc -l <numbers)" -lt 60 ] || fail 'the path goes on behind the first end'

# A group that holds hooks only does not have the file opened: it is not there yet.
hooked() {
	rm -rf hooked.dat
	cat >hooked.conf <<-CONF
		nodes = {
			sig = { type = "signal", signal = "counter", realtime = false, limit = 5 },
			rec = { type = "file", uri = "$3", $2 }
		}
		paths = ( { in = "$4", out = "$5" } )
	CONF
	expect "$6" "$1" timeout 20 villas-node hooked.conf
}
hooks='hooks = ( { type = "shift_seq", offset = 10 } )'
hooked 'in has hooks only' "in = { $hooks }" hooked.dat sig rec 0
samples 'in has hooks only: it is written' 5 hooked.dat
hooked 'in has hooks only beside out' "in = { $hooks }, out = { flush = true }" hooked.dat sig rec 0
samples 'in has hooks only beside out: it is written' 5 hooked.dat
echo '{ "nodes": { "f": { "type": "file", "uri": "/dev/full", "in": { "uri": "map.dat" }, "out": { "hooks": [ "dump" ] } } }, "paths": [ { "in": "f" } ] }' >read.json
expect 0 'out has hooks only' timeout 20 villas-node read.json
sed 's/"in": { "uri": "map.dat" }/"in": { "uri": "none.dat" }/' read.json >none.json
expect 1 'what is to be read has to be there' timeout 20 villas-node none.json

# Nodes that are their own peers.
villas-signal -n -l 40 -v 4 random >in 2>log
loop() {
	what=$1 node=$2
	shift 2
	printf '{ "nodes": { "node1": %s } }\n' "$node" >loop.json
	expect_in 0 "$what" timeout 20 villas-pipe -l 40 loop.json node1
	cp out back
	expect 0 "$what: what comes back" villas-compare "$@" in back
}
loop 'a file that is written and read' \
	'{ "type": "file", "uri": "f.dat", "in": { "epoch_mode": "original", "eof": "wait" }, "out": { "flush": true } }'
for mode in polling pthread; do
	loop "one shared memory object ($mode)" \
		'{ "type": "shmem", "in": { "name": "/busbar-shmem-lab-'$$'" }, "out": { "name": "/busbar-shmem-lab-'$$'" }, "vectorize": 5, "mode": "'$mode'" }'
done
signals='"signals": { "count": 4, "type": "float" }'
for format in villas.human villas-human protobuf gtnet.fake raw.64.be; do
	case $format in
	gtnet*) how='-Ts -e 1e-5' ;;
	raw*) how=-Ts ;;
	*) how='-e 0' ;;
	esac
	# shellcheck disable=SC2086
	loop "one unix socket ($format)" \
		'{ "type": "socket", "layer": "unix", "format": "'$format'", "vectorize": 10, "out": { "address": "s.sock" }, "in": { "address": "s.sock", '"$signals"' } }' $how
done

# Older names of tools.
ln -s "$BUSBAR" bin/villas-test-cmp
expect 0 'the former name of compare' villas-test-cmp in in
expect 0 'in the wrapper' villas test-cmp in in
ls /dev/shm/*busbar-lab-$$ >/dev/null 2>&1 && fail 'shared memory is left'
exit "$failed"
