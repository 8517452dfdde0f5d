/* SPDX-License-Identifier: BSD-2-Clause */
/* Time stamps of reads and writes, and the file that they end in; see budget.h. */
#define LOG_ROOM "gateway/infiniband"
#include "gateway/node/infiniband/budget.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/infiniband/channel.h"
#include "util/log.h"
#include "util/spin.h"

/* Pairs of stamps from which the cost of one is taken. */
#define COST_PAIRS 4096
/* Empty polls until a reader lets others run, and until it goes home to see whether
 * somebody wants it to end. */
#define TURN_POLLS 64
#define HOME_POLLS 4096

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t picoseconds(double ticks)
{
	return (uint64_t)(ticks * 1e12 / (double)clock_state.tick_hz);
}

/*
 * Between two stamps lies the cost of one, wherever in it the time is read: the mean without
 * the tenth at either end, because a counter may move in steps that are as long as that. The
 * smallest difference of two such times is the step.
 */
static bool measure_stamps(struct ib_budget *b)
{
	const struct ib_budget_calls *c = &b->sent;
	uint64_t *pairs = calloc(COST_PAIRS, sizeof(*pairs)), step = UINT64_MAX, sum = 0;

	if (!pairs)
		return false;
	for (unsigned i = 0; i < COST_PAIRS; i++) {
		ib_stamp(&b->sent, 0);
		ib_stamp(&b->sent, 1);
		pairs[i] = c->row->at[1] - c->row->at[0];
	}
	qsort(pairs, COST_PAIRS, sizeof(*pairs), by_value);
	for (unsigned i = 1; i < COST_PAIRS; i++)
		if (pairs[i] > pairs[i - 1])
			step = MIN(step, pairs[i] - pairs[i - 1]);
	for (unsigned i = COST_PAIRS / 10; i < COST_PAIRS - COST_PAIRS / 10; i++)
		sum += pairs[i];
	free(pairs);
	b->stamp_ps = picoseconds((double)sum / (COST_PAIRS - 2 * (COST_PAIRS / 10)));
	b->step_ps = step == UINT64_MAX ? 0 : (uint32_t)MIN(picoseconds((double)step),
							    (uint64_t)UINT32_MAX);
	return true;
}

static bool calls_init(struct ib_budget_calls *c, uint64_t seed)
{
	size_t size = IB_BUDGET_ROWS * sizeof(*c->rows);

	c->rows = malloc(size);
	if (!c->rows)
		return false;
	memset(c->rows, 0, size); /* touched: no page faults later */
	c->row = c->rows;
	c->random = prng_from(seed);
	return true;
}

struct ib_budget *ib_budget_make(void)
{
	struct ib_budget *b = aligned_alloc(CACHE_LINE, sizeof(*b));

	if (!b)
		return NULL;
	memset(b, 0, sizeof(*b));
	/* Different ones: else a sample whose write has all stamps might never be one whose
	 * read has them, too. */
	if (!calls_init(&b->sent, 1) || !calls_init(&b->received, 2) || !measure_stamps(b)) {
		ib_budget_free(b);
		return NULL;
	}
	return b;
}

void ib_budget_free(struct ib_budget *b)
{
	if (!b)
		return;
	free(b->sent.rows);
	free(b->received.rows);
	free(b);
}

/* The row is complete, and the next call gets one of its own. */
static void calls_next(struct ib_budget_calls *c)
{
	c->row = &c->rows[++c->count & (IB_BUDGET_ROWS - 1)];
	c->row->whole = prng_next(&c->random) >> 63;
}

int ib_budget_write(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		    unsigned *release)
{
	struct ib_budget_calls *c = &ch->budget->sent;
	struct ib_budget_row *row = c->row;
	struct timespec taken, now;
	bool known;
	int ret;

	*release = cnt;
	if (cnt == 0)
		return 0;
	/* Ahead of the call, which may give the sample away. */
	row->sequence = smps[0]->sequence;
	taken = smps[0]->received;
	known = smps[0]->flags & SAMPLE_HAS_RECEIVED;
	ib_stamp(c, IB_WRITE_CALL);
	ret = row->whole ? ib_channel_write(ch, smps, cnt, release) :
			   ib_channel_write_stamped(ch, smps, cnt, release);
	ib_stamp(c, IB_WRITE_RETURNED);
	if (unlikely(ret != (int)cnt))
		return ret;
	/* Behind it, when the sample is on its way: nothing here makes it late. */
	now = clock_realtime();
	row->age_ns = (int64_t)(timespec_to_ns(now) - timespec_to_ns(taken)) -
		      (int64_t)clock_ticks_to_ns(clock_ticks() - row->at[IB_WRITE_CALL]);
	if (!known)
		row->age_ns = INT64_MIN;
	row->samples = cnt;
	calls_next(c);
	return ret;
}

/* Polls once. True: the call moved samples, or cannot go on. */
static bool read_once(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		      unsigned *release, int *ret)
{
	struct ib_budget_calls *c = &ch->budget->received;
	struct ib_budget_row *row = c->row;

	ib_stamp(c, IB_READ_CALL);
	*ret = row->whole ? ib_channel_read(ch, smps, cnt, release) :
			    ib_channel_read_stamped(ch, smps, cnt, release);
	ib_stamp(c, IB_READ_RETURNED);
	if (*ret > 0) {
		row->sequence = smps[0]->sequence;
		row->samples = (uint32_t)*ret;
		row->age_ns = INT64_MIN;
		calls_next(c);
	}
	return *ret || *release < cnt ||
	       !(atomic_load_explicit(&ch->control, memory_order_relaxed) & IB_RX_OPEN);
}

int ib_budget_read(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		   unsigned *release)
{
	bool awaited = ch->awaited;
	int ret;

	/* Another thread waits for descriptors: not the calls that are meant. */
	if (!awaited && atomic_load_explicit(&ch->polled, memory_order_relaxed))
		return ib_channel_read(ch, smps, cnt, release);
	/* The waiting stays outside of what is measured. */
	ch->awaited = true;
	for (unsigned polls = 1;; polls++) {
		if (read_once(ch, smps, cnt, release, &ret) || awaited ||
		    polls == HOME_POLLS)
			break;
		cpu_relax();
		if (polls % TURN_POLLS == 0)
			sched_yield();
	}
	ch->awaited = awaited;
	return ret;
}

/* The rows that are there, the oldest first. */
static bool write_rows(const struct ib_budget_calls *c, FILE *f)
{
	uint64_t n = MIN(c->count, (uint64_t)IB_BUDGET_ROWS);
	size_t first = (size_t)((c->count - n) & (IB_BUDGET_ROWS - 1));
	size_t head = MIN((size_t)n, IB_BUDGET_ROWS - first);

	return fwrite(c->rows + first, sizeof(*c->rows), head, f) == head &&
	       fwrite(c->rows, sizeof(*c->rows), (size_t)n - head, f) == n - head;
}

int ib_budget_write_file(const struct ib_budget *b, const char *path, const char *name)
{
	struct ib_budget_header h = {
		.row_bytes = sizeof(struct ib_budget_row),
		.step_ps = b->step_ps,
		.sent = MIN(b->sent.count, (uint64_t)IB_BUDGET_ROWS),
		.received = MIN(b->received.count, (uint64_t)IB_BUDGET_ROWS),
		.tick_hz = clock_state.tick_hz,
		.stamp_ps = b->stamp_ps,
	};
	FILE *f;
	bool done;

	memcpy(h.magic, IB_BUDGET_MAGIC, sizeof(h.magic));
	errno = 0;
	f = fopen(path, "we");
	done = f && fwrite(&h, sizeof(h), 1, f) == 1 && write_rows(&b->sent, f) &&
	       write_rows(&b->received, f);
	if (f && fclose(f))
		done = false;
	if (done)
		return 0;
	log_error("%s: the budget cannot be written to '%s': %s", name, path,
		  strerror(errno ? errno : EIO));
	return errno ? -errno : -EIO;
}
