#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# pyverbs.sh TEST-PYVERBS BUSBAR [TESTS...]: in the guest (guest.sh), rdma-core's own
# tests of its Python bindings on soft0, with huge pages, which the host may not have.
# All of TESTS must be good.
set -eu

run=$1
busbar=$2
shift 2
echo 32 >/proc/sys/vm/nr_hugepages
[ "$(cat /proc/sys/vm/nr_hugepages)" -gt 0 ] || {
	echo "the guest gave no huge pages"
	exit 1
}
out=$("$run" "$busbar" soft0 "$@") || {
	echo "$out"
	exit 1
}
echo "$out"
case $out in
*skipped:*)
	echo "failed: one was skipped"
	exit 1
	;;
esac
