#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# fio.sh VERB OPTIONS: the rdma engine of fio; a job that receives and one that
# sends by VERB (write, read, send), both as threads of their fio: a process of
# its own would outlive the time limit.
. "$(dirname "$0")/common.sh"
verb=${1:?write, read or send}
shift
need fio
place_options "$@"
size=16m
job="--ioengine=rdma --thread --bs=64k --size=$size"

# fio asks that no SEND be repeated when no receive is posted. So the server
# posts one for each from the start, as its authors advise.
depth=16
[ "$verb" != send ] || depth=256

ready() {
	cm_listens "$port"
}

check() {
	for side in client server; do
		expect "$side" 'err= 0'
	done
	# bytes in all
	expect client 'io=16.0MiB'
}

once() {
	free_port
	pair ready "fio --name=server $job --port=$port --rw=read --iodepth=$depth" \
		"fio --name=client $job --port=$port --hostname=127.0.0.1 --rw=write
			--verb=$verb $options"
	refused || check
}

repeat
