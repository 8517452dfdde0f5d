#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# iwarp.sh PROGRAM OPTIONS: a program on the device soft1, which speaks iWARP, by the script that
# runs it on soft0: an example of librdmacm, a program of perftest, fi_pingpong and its PROVIDER,
# fi_info, mpirun.openmpi and the number of processes, or one of ibverbs-utils.
set -eu
here=$(dirname "$0")
program=${1:?rping, ib_send_lat ...}
shift
export BUSBAR_DEVICES=iwarp DEVICE=soft1
case $program in
ib_*) exec sh "$here/perftest.sh" "$program" "$@" ;;
fi_pingpong) exec sh "$here/fabric.sh" "$@" ;;
fi_info) exec sh "$here/fabric.sh" fi_info "$@" ;;
openmpi) exec sh "$here/mpi.sh" openmpi "$@" ofi ;;
ibv_*) exec sh "$here/alone.sh" "$program" "$@" ;;
*) exec sh "$here/cm.sh" "$program" "$@" ;;
esac
