# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Two gateways, each a process, with a socket node between them. A test sources
# this; see ../gateways.sh.
LIMIT_S=${LIMIT_S:-20} FOLDER=socket
. "$(dirname "$0")/../gateways.sh"

# Runs the test again in a network of its own, where only it is root.
own_network() {
	[ "${IN_NETWORK:-}" ] && return
	command -v ip >/dev/null || skip "no ip (iproute2)"
	unshare -n true 2>/dev/null || skip "no right to make a network namespace"
	rm -rf "$tmp"
	IN_NETWORK=1 exec unshare -n "$0" "$@"
}

# Two free ports of our own; other tests run at the same time.
port=$((20000 + $$ % 6000 * 2))

# A gateway with a log of its own, whatever ran by that name before.
fresh() {
	rm -f "$tmp/$1.log"
	run "$1"
}

# sender NAME NODE: a generator to the node `s`, whose settings are given, and a
# copy to a file. What the copy has was given to the node.
sender() {
	cat >"$tmp/$1.conf" <<-CONF
		idle_stop = true;
		nodes = {
			g = {
				type = "signal"; signal = "${SIGNAL:-mixed}"; values = ${VALUES:-4};
				rate = ${RATE:-2000}; limit = ${LIMIT:-2000};
				realtime = ${REALTIME:-true}; vectorize = ${VECTORIZE:-1};
			};
			s = { type = "socket"; $2 };
			copy = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "g"; out = ( "s", "copy" ); } );
	CONF
	fresh "$1"
}

# receiver NAME NODE: the node to a file.
receiver() {
	cat >"$tmp/$1.conf" <<-CONF
		nodes = {
			s = {
				type = "socket"; vectorize = ${VECTORIZE:-1};
				signals = "${VALUES:-4}f"; $2
			};
			f = {
				type = "file"; format = "csv"; uri = "$tmp/$1.csv";
				out = { flush = true; };
			};
		};
		paths = ( { in = "s"; out = "f"; } );
	CONF
	fresh "$1"
}

# same SENDER RECEIVER: all samples, in order and unchanged.
same() {
	data "$1" >"$tmp/sent"
	data "$2" >"$tmp/received"
	[ -s "$tmp/sent" ] || fail "nothing was sent"
	cmp "$tmp/sent" "$tmp/received" || fail "what was received is not what was sent"
}
