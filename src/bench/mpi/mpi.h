/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kind "mpi": one of the programs of examples/mpi under mpirun of Open MPI or MPICH, over
 * busbar's adapter by `busbar exec` with the MPI's default settings, over the MPI's own shared
 * memory, or over TCP. What the adapter's counters say of the measured part becomes figures:
 * how many of its messages a message of MPI is.
 */
#ifndef BENCH_MPI_MPI_H
#define BENCH_MPI_MPI_H

#include "bench/kind/kind.h"

extern const struct bench_kind bench_kind_mpi;

#endif
