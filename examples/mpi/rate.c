/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many messages a second go one way: windows of MPI_Isend, each answered by one small
 * message when all of it has been received.
 *
 *	mpirun -n 2 rate --size 8 --window 64
 *
 * The receiver compares every byte behind its answer, outside of the measured time, and posts
 * the receives of the next window before that one begins.
 */
#include "common.h"

#include <stdlib.h>

#define DATA 1
#define ANSWER 2

static const struct program program = {
	.name = "rate",
	.summary = "Messages a second in one direction, checked.",
	.has_window = true,
	.processes = 2,
};

struct side {
	struct run *run;
	char *memory;
	MPI_Request *requests;
};

static char *at(const struct side *s, long i)
{
	return s->memory + (size_t)i * s->run->size;
}

static uint64_t seed_of(const struct run *r, long window, long i)
{
	return pattern_seed(0, 1, (uint64_t)(window * r->window + i));
}

static void send_window(struct side *s, long window, int64_t *row)
{
	struct run *r = s->run;
	uint64_t begin;

	for (long i = 0; i < r->window; i++)
		pattern_fill(at(s, i), r->size, seed_of(r, window, i));
	/* The receives of this window are posted. */
	MPI_Recv(NULL, 0, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	begin = now_ns();
	for (long i = 0; i < r->window; i++)
		MPI_Isend(at(s, i), (int)r->size, MPI_BYTE, 1, DATA, MPI_COMM_WORLD,
			  &s->requests[i]);
	MPI_Waitall((int)r->window, s->requests, MPI_STATUSES_IGNORE);
	MPI_Recv(NULL, 0, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (row) {
		row[0] = (int64_t)begin;
		row[1] = (int64_t)now_ns();
	}
}

static void receive_window(struct side *s, long window)
{
	struct run *r = s->run;

	for (long i = 0; i < r->window; i++)
		MPI_Irecv(at(s, i), (int)r->size, MPI_BYTE, 0, DATA, MPI_COMM_WORLD,
			  &s->requests[i]);
	MPI_Send(NULL, 0, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
	MPI_Waitall((int)r->window, s->requests, MPI_STATUSES_IGNORE);
	MPI_Send(NULL, 0, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
	for (long i = 0; i < r->window; i++)
		r->damaged += !pattern_is(at(s, i), r->size, seed_of(r, window, i));
}

/* From all windows together: a single one is too short for a rate. */
static void print_rate(const struct run *r, const struct times *t)
{
	double seconds = 0, messages = (double)r->messages * (double)r->window;

	for (size_t i = 0; i < t->rows; i++)
		seconds += (double)(times_row(t, i)[1] - times_row(t, i)[0]) / 1e9;
	table_row(r, "message_rate", "1/s", messages / seconds, "messages a second");
	table_row(r, "bandwidth", "MiB/s", messages * (double)r->size / seconds / (1 << 20),
		  "bandwidth");
	/* Of each window its messages, and two answers. */
	table_row(r, "counted", "-",
		  (double)((r->messages + r->warmup) * (r->window + 2)),
		  "messages between the marks, answers too");
}

static void measure(struct run *r)
{
	static const char *const names[] = { "t_begin", "t_answer" };
	long windows = r->warmup + r->messages;
	struct times t = { .at = NULL };
	struct side s = {
		.run = r,
		.memory = new_memory(r, r->size * (size_t)r->window),
		.requests = new_memory(r, (size_t)r->window * sizeof(*s.requests)),
	};

	if (!r->rank)
		times_new(&t, r, 2, names, (size_t)r->messages);
	MPI_Barrier(MPI_COMM_WORLD);
	mark_begin(r);
	for (long i = 0; i < windows; i++) {
		if (r->rank)
			receive_window(&s, i);
		else
			send_window(&s, i, i < r->warmup ? NULL :
						   times_row(&t, (size_t)(i - r->warmup)));
	}
	mark_end(r);
	if (!r->rank) {
		times_write(&t, r);
		times_table(&t, r, "window", 0, 1, "a window until its answer");
		print_rate(r, &t);
	}
	times_free(&t);
	free(s.memory);
	free(s.requests);
}

int main(int argc, char **argv)
{
	struct run r;

	run_begin(&r, &program, argc, argv);
	measure(&r);
	return run_end(&r);
}
