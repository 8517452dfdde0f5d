/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a message goes on while both processes compute: MPI_Isend and MPI_Irecv, a
 * computation twice as long as the message takes alone, MPI_Wait.
 *
 *	mpirun -n 2 overlap --size 1048576 --progress none
 *
 * With --progress test the computation calls MPI_Test now and then, which many an MPI needs to
 * go on with a rendezvous. Measured is the time from the begin to the end of both processes;
 * what of the message's own time is hidden behind the computation is the overlap. The receiver
 * compares every byte, outside of the measured time. --marks has no meaning here.
 */
#include "common.h"

#include <stdlib.h>

#define TAG 1
#define CALLS 16        /* of MPI_Test in a computation */
#define LONGER 2        /* than the message alone */
#define CALIBRATION 100 /* messages alone, whose median counts */

enum progress { NONE, TEST };

static const char *const progresses[] = { "none", "test", NULL };

static const struct program program = {
	.name = "overlap",
	.summary = "Does a message go on while both processes compute?",
	.option = "progress",
	.words = progresses,
	.processes = 2,
};

struct side {
	struct run *run;
	char *buffer;
	int64_t *alone, *taken; /* ns, of each message: alone, and with a computation */
};

static void wait_ns(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

static void compute(const struct run *r, uint64_t ns, MPI_Request *request)
{
	int done;

	for (int i = 0; i < CALLS; i++) {
		wait_ns(ns / CALLS);
		if (r->word == TEST)
			MPI_Test(request, &done, MPI_STATUS_IGNORE);
	}
}

/* One message with a computation of `ns`; 0: alone. How long it took here. */
static int64_t one(struct side *s, uint64_t number, uint64_t ns)
{
	struct run *r = s->run;
	uint64_t seed = pattern_seed(0, 1, number), begin;
	MPI_Request request;
	int64_t taken;

	if (!r->rank)
		pattern_fill(s->buffer, r->size, seed);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_ns();
	if (r->rank)
		MPI_Irecv(s->buffer, (int)r->size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
	else
		MPI_Isend(s->buffer, (int)r->size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
	if (ns)
		compute(r, ns, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	taken = (int64_t)(now_ns() - begin);
	r->damaged += r->rank && !pattern_is(s->buffer, r->size, seed);
	return taken;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(int64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[(count - 1) / 2];
}

/* Of the slower process, of each message. */
static void take_slower(int64_t *values, long count)
{
	MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
}

/* What a message takes alone, for the length of the computation: the same in both processes. */
static int64_t calibrate(struct side *s)
{
	int64_t alone[CALIBRATION];

	for (long i = 0; i < s->run->warmup; i++)
		one(s, (uint64_t)i, 0);
	for (uint64_t i = 0; i < CALIBRATION; i++)
		alone[i] = one(s, i, 0);
	take_slower(alone, CALIBRATION);
	return median(alone, CALIBRATION);
}

/* What the clock adds to a computation is part of it. */
static int64_t compute_alone(uint64_t ns)
{
	int64_t taken[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++) {
		uint64_t begin = now_ns();

		for (int j = 0; j < CALLS; j++)
			wait_ns(ns / CALLS);
		taken[i] = (int64_t)(now_ns() - begin);
	}
	take_slower(taken, CALIBRATION);
	return median(taken, CALIBRATION);
}

static void report(struct side *s, int64_t computed)
{
	static const char *const names[] = { "t_begin", "t_together" };
	struct run *r = s->run;
	struct times t;
	int64_t alone;
	double hidden;

	times_new(&t, r, 2, names, (size_t)r->messages);
	for (size_t i = 0; i < t.rows; i++) {
		times_row(&t, i)[0] = 0;
		times_row(&t, i)[1] = s->taken[i];
	}
	times_write(&t, r);
	times_table(&t, r, "together", 0, 1, "message and computation together");
	alone = median(s->alone, t.rows);
	hidden = (double)(alone + computed - median(s->taken, t.rows));
	table_row(r, "alone", "ns", (double)alone, "the message alone, median");
	table_row(r, "computation", "ns", (double)computed, "the computation alone");
	table_row(r, "overlap", "%", 100 * hidden / (double)alone,
		  "of the message behind the computation");
	times_free(&t);
}

static void measure(struct run *r)
{
	struct side s = {
		.run = r,
		.buffer = new_memory(r, r->size),
		.alone = new_memory(r, (size_t)r->messages * sizeof(*s.alone)),
		.taken = new_memory(r, (size_t)r->messages * sizeof(*s.taken)),
	};
	int64_t alone = calibrate(&s), computed = compute_alone((uint64_t)alone * LONGER);

	/* In turn, as what else the machine does comes and goes. */
	for (long i = 0; i < r->messages; i++) {
		s.alone[i] = one(&s, (uint64_t)(r->warmup + i), 0);
		s.taken[i] = one(&s, (uint64_t)(r->warmup + i), (uint64_t)alone * LONGER);
	}
	take_slower(s.alone, r->messages);
	take_slower(s.taken, r->messages);
	if (!r->rank)
		report(&s, computed);
	free(s.buffer);
	free(s.alone);
	free(s.taken);
}

int main(int argc, char **argv)
{
	struct run r;

	run_begin(&r, &program, argc, argv);
	measure(&r);
	return run_end(&r);
}
