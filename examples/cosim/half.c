/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One half of the network in real time. At the time of each step it takes what the
 * other half sent for a step before, computes, and sends its own quantity; the
 * sequence number of a sample is the step that it belongs to. A step for which it
 * comes too late is computed at once, none is left out.
 *
 * Which step before is fixed (`behind`), though a newer sample may have come: a
 * delay that changes from step to step hides or repeats a value now and then, and
 * an inductance answers with a voltage impulse. When the wanted one has not come the
 * newest before it is used.
 *
 * The log is written at the end: for each step the step that the input was of (-1:
 * none had come), input and output, then the time that the sample was under way.
 */
#include <busbar/shmem.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "options.h"

#define NSEC 1000000000.0
/* Steps of which samples are kept; a power of two. */
#define KEPT 256
/* How long the other half may take to appear, and to take the last sample. */
#define CONNECT_S 20.0

struct row {
	int64_t used;
	double input, output;
	int64_t latency_ns;    /* of the newest sample; -1: none has come */
};

struct half {
	const struct options *o;
	struct busbar_shmem *shmem;
	struct source_half source;
	struct load_half load;
	bool is_source;
	int64_t used;          /* step that the input is of, -1: none */
	double input;
	struct {
		int64_t step;
		double value;
	} kept[KEPT];
	int64_t latency_ns;
	uint64_t late;         /* steps that began a step or more too late */
	struct row *rows;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NSEC;
}

static void take(struct half *h, const struct busbar_shmem_sample *s)
{
	struct timespec now;

	if (!s->length)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	h->kept[s->sequence % KEPT].step = (int64_t)s->sequence;
	h->kept[s->sequence % KEPT].value = s->values[0].f;
	h->latency_ns = (now.tv_sec - s->origin.tv_sec) * 1000000000 +
			(now.tv_nsec - s->origin.tv_nsec);
}

/* Until `due`, taking what comes; at least one look. -1: nobody is there. */
static int wait_step(struct half *h, double due)
{
	union busbar_shmem_value value;
	struct busbar_shmem_sample s = { .capacity = 1, .values = &value };

	for (;;) {
		double left = due - now_s();
		int ret = busbar_shmem_read(h->shmem, &s, 1,
					    left > 0 ? (int64_t)(left * NSEC) : 0);

		if (ret == -ENOTCONN)
			return -1;
		if (ret > 0)
			take(h, &s);
		else if (left <= 0)
			return 0;
	}
}

/* The input of step k. */
static void choose(struct half *h, uint64_t k)
{
	int64_t want = (int64_t)(k - h->o->behind), last = want - KEPT;

	if (k < h->o->behind)
		return;
	for (int64_t j = want; j > h->used && j > last && j >= 0; j--) {
		if (h->kept[j % KEPT].step != j)
			continue;
		h->used = j;
		h->input = h->kept[j % KEPT].value;
		return;
	}
}

static void step(struct half *h, uint64_t k)
{
	union busbar_shmem_value value;
	struct busbar_shmem_sample s = {
		.sequence = k, .length = 1, .values = &value,
		.flags = BUSBAR_SHMEM_HAS_SEQUENCE | BUSBAR_SHMEM_HAS_ORIGIN |
			 BUSBAR_SHMEM_HAS_DATA,
	};

	choose(h, k);
	value.f = h->is_source ? source_step(&h->source, k, h->input) :
				 load_step(&h->load, k, h->input);
	clock_gettime(CLOCK_REALTIME, &s.origin);
	busbar_shmem_write(h->shmem, &s, 1);
	h->rows[k] = (struct row){ h->used, h->input, value.f, h->latency_ns };
}

static int run(struct half *h)
{
	uint64_t steps = options_steps(h->o);
	double start = h->o->start_s > 0 ? h->o->start_s : now_s();
	double give_up = now_s() + CONNECT_S;

	while (!busbar_shmem_connected(h->shmem)) {
		struct timespec pause = { .tv_nsec = 1000000 };

		if (now_s() > give_up) {
			fprintf(stderr, "cosim: no gateway came\n");
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	if (now_s() > start + h->o->net.step_s && h->o->start_s > 0) {
		fprintf(stderr, "cosim: connected only after the start; start later\n");
		return -1;
	}
	for (uint64_t k = 0; k < steps; k++) {
		double due = start + network_time(&h->o->net, k);

		if (wait_step(h, due)) {
			fprintf(stderr, "cosim: the gateway has gone in step %llu\n",
				(unsigned long long)k);
			return -1;
		}
		h->late += now_s() > due + h->o->net.step_s;
		step(h, k);
	}
	/* The last one is on its way, and our last is to arrive. */
	wait_step(h, now_s() + 0.1);
	return 0;
}

static int write_log(const struct half *h)
{
	FILE *f = fopen(h->o->log, "w");
	uint64_t steps = options_steps(h->o);

	if (!f) {
		fprintf(stderr, "cosim: %s: %s\n", h->o->log, strerror(errno));
		return -1;
	}
	fprintf(f, "%llu %llu\n", (unsigned long long)steps,
		(unsigned long long)h->late);
	for (uint64_t k = 0; k < steps; k++)
		fprintf(f, "%lld %.17g %.17g %lld\n",
			(long long)h->rows[k].used, h->rows[k].input,
			h->rows[k].output, (long long)h->rows[k].latency_ns);
	if (fclose(f)) {
		fprintf(stderr, "cosim: %s: %s\n", h->o->log, strerror(errno));
		return -1;
	}
	return 0;
}

int half_run(bool source, const char *write_name, const char *read_name,
	     const struct options *o)
{
	struct busbar_shmem_options options = {
		.mode = o->polling ? BUSBAR_SHMEM_POLLING : BUSBAR_SHMEM_PTHREAD,
		.queuelen = 1024, .values = 1,
	};
	struct half h = { .o = o, .is_source = source, .used = -1,
			  .latency_ns = -1 };
	int ret = 1;

	if (!o->log) {
		fprintf(stderr, "cosim: log=FILE is missing\n");
		return 2;
	}
	/* Sleeps that end 50 us late would be steps that begin 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	h.rows = calloc(options_steps(o), sizeof(*h.rows));
	if (!h.rows)
		return 1;
	for (int i = 0; i < KEPT; i++)
		h.kept[i].step = -1;
	source_init(&h.source, &o->net);
	load_init(&h.load, &o->net);
	if (busbar_shmem_open(&h.shmem, write_name, read_name, &options)) {
		fprintf(stderr, "cosim: %s\n", busbar_shmem_error());
		goto out_rows;
	}
	if (!run(&h) && !write_log(&h))
		ret = 0;
	busbar_shmem_close(h.shmem);
out_rows:
	free(h.rows);
	return ret;
}
