/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a plan, and reads the adapter's counters at the marks of its program. */
#ifndef BENCH_MPI_LAUNCH_H
#define BENCH_MPI_LAUNCH_H

#include <stdatomic.h>

#include "bench/mpi/counters.h"
#include "bench/mpi/plan.h"

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
