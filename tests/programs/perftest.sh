#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# perftest.sh TOOL OPTIONS: a program of perftest (ib_send_lat ...) from its start
# to its table of results, which must have every line that the options promise
# and figures above zero in them.
. "$(dirname "$0")/common.sh"
tool=${1:?ib_send_lat, ib_write_bw ...}
shift
need "$tool"
place_options "$@"

# Few exchanges: this is about whether it works. With UD and UC no more than
# receives are posted, because these services lose what finds none.
case " $options " in
*" -n "* | *" -D "*) ;;
*" -a "*) options="$options -n 20" ;;
*) options="$options -n 200" ;;
esac

# The sizes that the options promise: -a goes by powers of two. With
# --report-both the sum is followed by both parts.
lines=1
case " $options " in
*" -a "*) case $options in *"-c UD"*) lines=12 ;; *) lines=23 ;; esac ;;
*" --report-both "*) lines=3 ;;
esac

# The limit of a latency; -C prints cycles of the processor, up to 10 in a ns.
latency=0
case $tool in *_lat) latency=20000 ;; esac
case " $options " in *" -C "*) latency=$((latency * 10000)) ;; esac

ready() {
	tcp_listens "$port" || cm_listens "$port"
}

# Bytes, iterations, then figures; the last is the message rate of a bandwidth
# test or the 99.9th percentile of a latency. The seventh, the deviation, may
# not be a number: perftest loses it where latencies differ by much. The median of a latency, the
# fifth, is below 20 ms: it is some ms where the programs, which spin, share their processors with
# others, and more where messages wait for a look now and then. (-D prints no median.)
check_table() {
	awk -v want="$lines" -v latency="$latency" '
		/^ #bytes/ { table = 1; next }
		!table || $1 !~ /^[0-9]+$/ { next }
		{
			seen++
			for (i = 1; i <= NF; i++)
				if ($i !~ /^[0-9]+(\.[0-9]+)?$/ &&
				    !(i == 7 && $i ~ /nan$/))
					bad = $0
			if (NF < 4 || $2 < 1 || $NF <= 0 ||
			    (latency && NF > 4 && $1 <= 65536 && $5 >= latency))
				bad = $0
		}
		END {
			if (bad)
				print "not a line of results, or one of messages that wait: " bad
			else if (seen != want)
				print seen + 0 " lines of results, not " want
			else
				exit 0
			exit 1
		}' "$tmp/client.log" || fail "the table of results is not complete"
}

# --output prints one figure and no table.
check_figure() {
	awk '/^[0-9]+(\.[0-9]+)?$/ && $1 > 0 { seen++ } END { exit seen != 1 }' \
		"$tmp/client.log" || fail "there is no figure"
}

check() {
	case " $options " in
	*" --output="*) check_figure ;;
	*) check_table ;;
	esac
}

once() {
	free_port
	pair ready "$tool -d $DEVICE -F -p $port $options" \
		"$tool -d $DEVICE -F -p $port $options 127.0.0.1"
	refused || check
}

repeat
