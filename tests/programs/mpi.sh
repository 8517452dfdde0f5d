#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mpi.sh openmpi|mpich PROCESSES [THREADS]: a program of that many processes, each with
# that many threads, started by mpirun without any option about transports. That their
# messages went over the adapter is checked by what UCX says of its connections.
# mpi.sh openmpi PROCESSES openib: over that layer, which wants a port of InfiniBand; and
# mpi.sh openmpi PROCESSES ofi: over libfabric, which takes devices that UCX does not.
. "$(dirname "$0")/common.sh"
mpi=${1:?openmpi or mpich}
count=${2:?how many processes}
threads=${3:-0}
need "mpirun.$mpi" python3
# For a machine with fewer processors than processes, and for root in a container.
options="-np $count"
if [ "$mpi" = openmpi ]; then
	options="$options --oversubscribe"
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
taken="tag(.*$DEVICE:1"
if [ "$threads" = openib ]; then
	threads=0 taken="Using openib btl for send"
	options="$options --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1"
	options="$options --mca btl_base_verbose 100"
	export BUSBAR_LINK_LAYER=infiniband
fi
if [ "$threads" = ofi ]; then
	threads=0 taken="mtl:ofi:provider: $DEVICE"
	options="$options --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm"
	options="$options --mca mtl_base_verbose 100"
fi
export UCX_LOG_LEVEL=info
unset UCX_TLS UCX_NET_DEVICES UCX_USE_MT_MUTEX OMPI_MCA_pml

once() {
	alone "mpirun.$mpi $options python3 $here/mpi_exchange.py $mpi $threads"
	expect client "^$count processes exchanged their data"
	expect client "$taken"
}

repeat
