/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a plan, and reads the adapter's counters at the marks of its program. */
#ifndef BENCH_MPI_LAUNCH_H
#define BENCH_MPI_LAUNCH_H

#include <jansson.h>
#include <stdatomic.h>

#include "bench/mpi/plan.h"

/* What processes have sent over the adapter, from `busbar devices --json`. */
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

struct mpi_marks {
	struct mpi_counters at[2]; /* before and behind what was measured */
	size_t count;              /* of those that were read */
	uint64_t when_ns[2];       /* CLOCK_REALTIME; 0: the program did not come so far */
	bool hung;                 /* it has measured all, and was ended because it did not end */
};

/* The process ids that a file of --marks holds, one a line, at most `max`; what is no number
 * ends it, and so does a line without its end. */
size_t mpi_marks_parse(const char *text, pid_t *pids, size_t max);

/* 0, also of a program that wrote its whole table and does not end within some seconds then;
 * -EINTR: `stop`; -ETIMEDOUT; -EIO: the program failed; or another negative errno. Logged
 * but for -EINTR. No process is left. */
int mpi_launch(const struct mpi_plan *plan, double seconds_max, const atomic_bool *stop,
	       struct mpi_marks *marks);

#endif
