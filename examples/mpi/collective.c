/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of all processes together: how long they take, and that every byte of their
 * results is right.
 *
 *	mpirun -n 4 collective --operation allreduce --size 64
 *
 * An operation takes as long as in the process where it took longest; all begin together behind
 * a barrier that does not count. Between the marks (--marks) the operation is repeated without
 * those barriers, so that the adapter's counters show its own messages and no others.
 *
 * What is reduced is the product of numbers that each contain a prime of its rank: a factor that
 * is missing, or is there twice, shows whose contribution was lost or taken twice.
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define COUNTED 100

enum operation { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL };

static const char *const operations[] = { "barrier", "bcast", "reduce", "allreduce", "gather",
					  "scatter", "allgather", "alltoall", NULL };

static const struct program program = {
	.name = "collective",
	.summary = "An operation of all processes together, checked.\n"
		   "--size is what each process gives or gets; of reduce and allreduce it is a\n"
		   "multiple of 8.",
	.option = "operation",
	.words = operations,
};

struct collective {
	struct run *run;
	char *out, *in;            /* a part of `size` bytes for each process */
	uint64_t *primes, product; /* of each rank, and of them all */
	int64_t *entered, *left;   /* of this process, for each operation that is measured */
};

static bool reduces(const struct run *r)
{
	return r->word == REDUCE || r->word == ALLREDUCE;
}

static void find_primes(struct collective *c)
{
	int found = 0;

	c->product = 1;
	for (uint64_t n = 2; found < c->run->ranks; n++) {
		uint64_t d = 2;

		while (d * d <= n && n % d)
			d++;
		if (d * d <= n)
			continue;
		c->primes[found++] = n;
		c->product *= n;
	}
}

/* Without the prime; odd, so no product of them is 0 modulo 2^64. */
static uint64_t element(uint64_t number, size_t i)
{
	return (number * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u) | 1;
}

static uint64_t reduced(const struct collective *c, uint64_t number, size_t i)
{
	uint64_t one = element(number, i), all = c->product;

	for (int rank = 0; rank < c->run->ranks; rank++)
		all *= one;
	return all;
}

static char *part(const struct collective *c, char *all, int rank)
{
	return all + (size_t)rank * c->run->size;
}

/* What this process gives to operation `number`. */
static void fill(struct collective *c, uint64_t number)
{
	const struct run *r = c->run;
	int parts = r->word == ALLTOALL || r->word == SCATTER ? r->ranks : 1;

	for (size_t i = 0; reduces(r) && i < r->size / 8; i++) {
		uint64_t value = c->primes[r->rank] * element(number, i);

		memcpy(c->out + 8 * i, &value, sizeof(value));
	}
	if (reduces(r) || r->word == BARRIER || (r->word == BCAST && r->rank))
		return;
	for (int to = 0; to < parts; to++)
		pattern_fill(part(c, c->out, to), r->size, pattern_seed(r->rank, to, number));
}

static void operate(struct collective *c)
{
	const struct run *r = c->run;
	int size = (int)r->size, count = size / 8;
	MPI_Comm all = MPI_COMM_WORLD;

	switch ((enum operation)r->word) {
	case BARRIER: MPI_Barrier(all); break;
	case BCAST: MPI_Bcast(c->out, size, MPI_BYTE, 0, all); break;
	case REDUCE:
		MPI_Reduce(c->out, c->in, count, MPI_UINT64_T, MPI_PROD, 0, all);
		break;
	case ALLREDUCE:
		MPI_Allreduce(c->out, c->in, count, MPI_UINT64_T, MPI_PROD, all);
		break;
	case GATHER: MPI_Gather(c->out, size, MPI_BYTE, c->in, size, MPI_BYTE, 0, all); break;
	case SCATTER: MPI_Scatter(c->out, size, MPI_BYTE, c->in, size, MPI_BYTE, 0, all); break;
	case ALLGATHER:
		MPI_Allgather(c->out, size, MPI_BYTE, c->in, size, MPI_BYTE, all);
		break;
	case ALLTOALL:
		MPI_Alltoall(c->out, size, MPI_BYTE, c->in, size, MPI_BYTE, all);
		break;
	}
}

/* How many parts of what this process received are wrong. */
static uint64_t wrong_parts(struct collective *c, uint64_t number)
{
	const struct run *r = c->run;
	bool has_all = r->word == ALLGATHER || r->word == ALLTOALL ||
		       (r->word == GATHER && !r->rank);
	uint64_t wrong = 0, value;

	if (r->word == BCAST)
		return !pattern_is(c->out, r->size, pattern_seed(0, 0, number));
	if (r->word == SCATTER)
		return !pattern_is(c->in, r->size, pattern_seed(0, r->rank, number));
	for (int from = 0; has_all && from < r->ranks; from++)
		wrong += !pattern_is(part(c, c->in, from), r->size,
				     pattern_seed(from, r->word == ALLTOALL ? r->rank : 0,
						  number));
	if (!reduces(r) || (r->word == REDUCE && r->rank))
		return wrong;
	for (size_t i = 0; i < r->size / 8; i++) {
		memcpy(&value, c->in + 8 * i, sizeof(value));
		wrong |= value != reduced(c, number, i);
	}
	return wrong;
}

/* Operations `first` to `first + count`; the times of those from `first_timed` on are kept. */
static void repeat(struct collective *c, uint64_t first, long count, long first_timed,
		   bool together)
{
	for (long i = 0; i < count; i++) {
		int64_t entered;

		fill(c, first + (uint64_t)i);
		if (together)
			MPI_Barrier(MPI_COMM_WORLD);
		entered = (int64_t)now_ns();
		operate(c);
		if (i >= first_timed) {
			c->entered[i - first_timed] = entered;
			c->left[i - first_timed] = (int64_t)now_ns();
		}
		c->run->damaged += wrong_parts(c, first + (uint64_t)i);
	}
}

/* Nobody may leave a barrier before the last one has entered it; there is one clock. */
static void check_barriers(struct collective *c)
{
	struct run *r = c->run;
	int count = (int)r->messages;
	int64_t *last = new_memory(r, (size_t)count * sizeof(*last));
	int64_t *first = new_memory(r, (size_t)count * sizeof(*first));

	MPI_Allreduce(c->entered, last, count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(c->left, first, count, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
	for (int i = 0; !r->rank && i < count; i++)
		r->damaged += first[i] < last[i];
	free(last);
	free(first);
}

static void report(struct collective *c)
{
	static const char *const names[] = { "t_begin", "t_end" };
	struct run *r = c->run;
	int count = (int)r->messages;
	int64_t *longest = new_memory(r, (size_t)count * sizeof(*longest));
	struct times t;

	for (int i = 0; i < count; i++)
		c->left[i] -= c->entered[i];
	MPI_Reduce(c->left, longest, count, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (!r->rank) {
		times_new(&t, r, 2, names, (size_t)count);
		for (size_t i = 0; i < (size_t)count; i++) {
			times_row(&t, i)[0] = c->entered[i];
			times_row(&t, i)[1] = c->entered[i] + longest[i];
		}
		times_write(&t, r);
		times_table(&t, r, "operation", 0, 1, "the operation, slowest process");
		times_free(&t);
	}
	if (r->marks)
		table_row(r, "counted", "-", COUNTED, "operations between the marks");
	free(longest);
}

static void measure(struct run *r)
{
	size_t room = r->size * (size_t)r->ranks;
	struct collective c = {
		.run = r,
		.out = new_memory(r, room),
		.in = new_memory(r, room),
		.primes = new_memory(r, (size_t)r->ranks * sizeof(*c.primes)),
		.entered = new_memory(r, (size_t)r->messages * sizeof(*c.entered)),
		.left = new_memory(r, (size_t)r->messages * sizeof(*c.left)),
	};

	find_primes(&c);
	repeat(&c, 0, r->warmup + r->messages, r->warmup, true);
	if (r->marks) {
		uint64_t next = (uint64_t)(r->warmup + r->messages);

		mark_begin(r);
		repeat(&c, next, COUNTED, COUNTED, false);
		mark_end(r);
	}
	if (r->word == BARRIER)
		check_barriers(&c);
	report(&c);
	free(c.out);
	free(c.in);
	free(c.primes);
	free(c.entered);
	free(c.left);
}

int main(int argc, char **argv)
{
	struct run r;

	run_begin(&r, &program, argc, argv);
	if (reduces(&r) && r.size % 8)
		run_fail(&r, "--size: reduce and allreduce need a multiple of 8");
	measure(&r);
	return run_end(&r);
}
