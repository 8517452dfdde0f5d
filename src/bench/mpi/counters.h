/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes have sent over the adapter, from `busbar devices --json`. */
#ifndef BENCH_MPI_COUNTERS_H
#define BENCH_MPI_COUNTERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mpi_counters {
	uint64_t sends, writes, reads, atomics; /* messages, by operation */
	uint64_t bytes;                         /* of all of them */
};

/* Adds up the processes `pids` in what the command printed. -ENOENT: one of them is not there,
 * so it has no queue pair; -EBADMSG: its counters cannot be read. Not logged. */
int mpi_counters_sum(const json_t *devices, const pid_t *pids, size_t count,
		     struct mpi_counters *out);
/* Runs the command, with its output in `file`, which is removed. As above, or another negative
 * errno; logged as a warning. */
int mpi_counters_read(const char *file, const pid_t *pids, size_t count,
		      struct mpi_counters *out);

#endif
