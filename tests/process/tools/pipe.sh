#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/process/tools/lib.sh
. "${0%/*}/lib.sh"

cat >lab.conf <<'CONF'
nodes = {
	loop = { type = "loopback", queuelen = 8192 },
	sig = { type = "signal", signal = "counter", realtime = false, limit = 50 },
	endless = { type = "signal", signal = "sine", rate = 1000 },
	rec = { type = "file", uri = "rec.dat", out = { append = false } },
	two = { type = "file",
		in = { uri = "one.dat", epoch_mode = "original" },
		out = { uri = "other.dat", append = false } },
	broken = { type = "no-such-type" },
	source = { type = "file", in = { uri = "one.dat" } }
}
paths = ( { in = "sig", out = "rec" } )
CONF
pipe='timeout 20 villas-pipe'
pages=$(cat /proc/sys/vm/nr_hugepages)

# Nothing of a long stream is lost, and its end is the end.
villas-signal -n -l 5000 -v 8 mixed >in 2>log
expect_in 0 'through a loopback' $pipe lab.conf loop
cp out back
expect 0 'all comes back' villas-compare -e 0 in back
expect_in 0 'sending only ends with standard input' $pipe -s lab.conf rec
expect 0 'all was sent' villas-compare -e 0 in rec.dat
expect 0 'receiving only' $pipe -r lab.conf sig
samples 'ends with the node' 50 out
expect 0 'a node that can only be read' $pipe lab.conf sig
expect 1 'a node that cannot start' $pipe -r -o in.uri=none.dat lab.conf two
says 'says why' "cannot open 'none.dat'"

# Ends that are asked for.
expect 0 'a number of samples received' $pipe -r -l 20 lab.conf endless
samples 'is kept' 20 out
expect_in 0 'a number of samples sent' $pipe -s -L 33 lab.conf rec
samples 'is kept' 33 rec.dat
expect_in 0 'both' $pipe -L 100 -l 7 lab.conf loop
samples 'the received ones are waited for' 7 out
expect 0 'a time' $pipe -r -T 1 lab.conf endless
grep -q '^[0-9]' out || fail 'a time: nothing was received in it'

# Settings, formats, types.
expect 0 'a setting of the command line' $pipe -r -o limit=5 -o values=3 lab.conf sig
samples 'counts' 5 out
says 'and the other one' '(4).*4.0.*4.0.*4.0' out
expect_in 0 'a dotted key' $pipe -s -o out.uri=dotted.dat lab.conf rec
samples 'leads into a group' 5000 dotted.dat
cp in one.dat
expect_in 0 'swapped sides' $pipe -x -s -o in.uri=swapped.dat lab.conf two
samples 'what was for reading is written' 5000 swapped.dat
cp in other.dat
expect 0 'swapped sides' $pipe -x -r lab.conf two
samples 'what was for writing is read' 5000 out
# With one side there is nothing to swap a socket with; a queue is used the other way.
cat >one.conf <<CONF
nodes = {
	hears = { type = "socket", in = { address = "127.0.0.1:1" } },
	talks = { type = "socket", out = { address = "127.0.0.1:1" } },
	reads = { type = "shmem", in = { name = "/busbar-shmem-pipe-test-$$" } },
	writes = { type = "shmem", out = { name = "/busbar-shmem-pipe-test-$$" } }
}
CONF
if has nodes socket; then
	for node in hears talks; do
		for only in '' -s -r; do
			expect 2 "$node, swapped $only" $pipe -x $only -T 5 one.conf $node
		done
		expect 2 "$node, swapped" $pipe -x -T 5 one.conf $node
		says 'says why' "address is required"
	done
fi
if has nodes shmem; then
	expect 2 'no writer that is swapped writes' $pipe -x -s one.conf writes
	expect 2 'no reader that is swapped reads' $pipe -x -r one.conf reads
	says 'says why' 'reads: cannot be read'
fi
for values in 100 512; do
	villas-signal -n -l 50 -v $values mixed >in 2>log
	expect_in 0 "$values values" $pipe lab.conf loop
	cp out back
	expect 0 "$values values come back" villas-compare -e 0 in back
	cp in one.dat
	expect 0 "$values values of a file" $pipe -r lab.conf two
	cp out back
	expect 0 "$values values of a file are all there" villas-compare -e 0 in back
done
villas-signal -n -l 50 -v 600 mixed >in 2>log
expect_in 0 'more values, as -t says' $pipe -t 600f lab.conf loop
cp out back
expect 0 'come back' villas-compare -e 0 in back
expect_in 1 'more values than -t says' $pipe -t 599f lab.conf loop
says 'are refused' 'more than 599 values'
printf '1,0,nan,4,-7,1,2.5\n2,0,nan,5,9007199254740993,0,3.5\n' >in
expect_in 0 'another format and types' $pipe -f '{"type": "csv", "offset": false}' -t 1i1b1f lab.conf loop
sed 's/^\([12]\),0,/\1,000000000,/' in >wanted
equal 'are kept' wanted out
villas-signal -n -l 100 sine >in 2>log
expect_in 3 'a node that takes less' $pipe -s -o queuelen=16 lab.conf loop
says 'is told' 'did not take 84 samples'
printf '1.0\t1\n2.0\t2\n' >in
expect_in 0 'without sequence numbers' $pipe -s lab.conf rec
says 'they are counted' '^2.*(1).2.0$' rec.dat

# What is wrong is said, and what came before it is not lost.
printf '1.0(0)\t1\n2.0(1)\t2\nnonsense\n3.0(2)\t3\n' >in
expect_in 1 'a bad line' $pipe -s lab.conf rec
says 'is named' 'stdin:3: '
samples 'what came before was sent' 2 rec.dat
expect_in 2 'an unknown node' $pipe lab.conf lop
says 'gets the nearest' "did you mean 'loop'"
expect_in 2 'an unknown setting' "$BUSBAR" pipe -o qeuelen=5 lab.conf loop
says 'is an error of the node' 'nodes.loop.qeuelen: unknown key'
expect_in 2 'a node of an unknown type' $pipe lab.conf broken
says 'is an error with its line' 'lab.conf:9: nodes.broken.type'
expect_in 2 'writing what can only be read' $pipe -s lab.conf sig
expect_in 2 'writing what has only the group in' $pipe -s lab.conf source
says 'is told' 'nodes.source: cannot be written'
expect_in 2 'reading what has only the group out does not wait for ever' $pipe -r lab.conf rec
says 'is told' 'nodes.rec: cannot be read'
expect_in 2 'both ways at once' $pipe -s -r lab.conf loop
expect_in 2 'no node' $pipe lab.conf
expect_in 2 'no file' $pipe none.conf loop

# Samples on standard input for a node that cannot be written are lost, which is reported.
printf '1.0(0)\t1\n2.0(1)\t2\n' >in
expect_in 3 'input for a node that can only be read' $pipe lab.conf sig
says 'is told' 'sig cannot be written: 2 samples of standard input are lost'
samples 'what it generates is there all the same' 50 out
# What stands ready when the node ends is counted, however short the node's life.
villas-signal -n -l 20000 -v 8 mixed >many 2>log
cp in two-samples
mv many in
expect_in 3 'much input for a node that can only be read' $pipe lab.conf sig
says 'is counted' 'sig cannot be written: 20000 samples of standard input are lost;'
mv two-samples in
expect_in 0 'not with -r' $pipe -r lab.conf sig
printf '1.0(0)\t1\nnonsense\n' >in
expect_in 1 'nor is a bad line passed over' $pipe lab.conf sig

# Clients of a node `websocket` reach it: two pipes, and a gateway's configuration.
if has nodes websocket; then
	villas-signal -n -l 60 -v 3 mixed >in 2>log
	serve() {
		port=$(shuf -i 20000-29999 -n 1)
		cat >web.conf <<-CONF
			http = { port = $port }
			nodes = {
				ws = { type = "websocket" },
				far = { type = "websocket", wait_connected = true,
					destinations = ( "http://127.0.0.1:$port/ws.villas.human" ) },
				self = { type = "websocket", wait_connected = true,
					destinations = ( "ws://127.0.0.1:$port/self" ) }
			}
		CONF
		: >served # what is there shall be new
		villas-pipe -r -l 60 web.conf ws >out 2>served &
		pid=$!
		wait_for_either() { grep -qs -e 'serves requests' -e 'already in use' served; }
		wait_for $pid wait_for_either
		grep -qs 'serves requests' served
	}
	serve || { wait $pid; serve; } || { wait $pid; serve; }
	expect_in 0 'a pipe to another one' $pipe -s web.conf far
	wait $pid || fail "the pipe that is connected to: exit status $?"
	cp out back
	expect 0 'all arrives' villas-compare -T in back
	expect_in 0 'a node that connects to itself' $pipe -l 60 web.conf self
	samples 'what is sent comes back' 60 out
	sed -i 's/port/enabled = false, port/' web.conf
	expect_in 1 'no server' $pipe -T 9 web.conf ws
	says 'is told' "http: is not enabled, so nobody can connect to node 'ws'"
fi

# Nothing of the machine is needed or changed.
(ulimit -l 0 && villas-pipe -s lab.conf rec <in >out 2>log)
grep -q lock log && fail 'without locked memory: it is asked for'
[ "$pages" = "$(cat /proc/sys/vm/nr_hugepages)" ] || fail 'huge pages were reserved'

# The end by a signal while both ends wait, and by a reader that has gone.
mkfifo fifo
rm out # what is there shall be new
villas-pipe lab.conf loop <fifo >out 2>log &
pid=$!
exec 3>fifo
printf '1.0(0)\t1\n' >&3
wait_for $pid grep -qs '(0)' out
kill -INT $pid
wait $pid || fail "interrupted: exit status $?"
exec 3>&-
samples 'what was received is there' 1 out
{ $pipe -r lab.conf endless 2>log; echo $? >status; } | head -n 3 >out
says 'a reader that has gone is no error' '^0$' status
exit "$failed"
