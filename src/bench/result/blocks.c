/* SPDX-License-Identifier: BSD-2-Clause */
/* See blocks.h. */
#include "bench/result/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/statistics.h"
#include "util/order.h"

/* Blocks are shorter only where there would be hardly any. */
#define BLOCK_VALUES_MIN 10
#define BLOCKS_MIN 10

struct blocks {
	int64_t *sorted;          /* all values */
	int64_t *values;          /* block after block, each sorted */
	size_t count, blocks;
	unsigned times[BLOCKS_COUNT]; /* how often each was drawn */
};

/* Block i is values[start_of(i)] to values[start_of(i + 1) - 1]. */
static size_t start_of(const struct blocks *b, size_t i)
{
	return (size_t)((unsigned __int128)b->count * i / b->blocks);
}

static size_t blocks_for(size_t count)
{
	size_t n = count / BLOCK_VALUES_MIN;

	if (n < BLOCKS_MIN)
		n = BLOCKS_MIN;
	if (n > BLOCKS_COUNT)
		n = BLOCKS_COUNT;
	return n < count ? n : count;
}

struct blocks *blocks_new(const int64_t *values, size_t count)
{
	struct blocks *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->sorted = malloc(count * sizeof(*values));
	b->values = malloc(count * sizeof(*values));
	if (!b->sorted || !b->values) {
		blocks_free(b);
		return NULL;
	}
	b->count = count;
	b->blocks = blocks_for(count);
	memcpy(b->sorted, values, count * sizeof(*values));
	memcpy(b->values, values, count * sizeof(*values));
	order_int64(b->sorted, count);
	for (size_t i = 0; i < b->blocks; i++)
		order_int64(b->values + start_of(b, i), start_of(b, i + 1) - start_of(b, i));
	return b;
}

void blocks_free(struct blocks *b)
{
	if (!b)
		return;
	free(b->sorted);
	free(b->values);
	free(b);
}

int64_t blocks_median(const struct blocks *b)
{
	return statistics_percentile(b->sorted, b->count, 50);
}

/* How many of the values in the blocks that were drawn are at most `limit`. */
static size_t drawn_up_to(const struct blocks *b, int64_t limit)
{
	size_t n = 0;

	for (size_t i = 0; i < b->blocks; i++) {
		size_t first = start_of(b, i), count = start_of(b, i + 1) - first;

		if (b->times[i])
			n += b->times[i] * statistics_up_to(b->values + first, count, limit);
	}
	return n;
}

int64_t blocks_draw(struct blocks *b, struct prng *prng)
{
	return blocks_draw_percentile(b, 50, prng);
}

int64_t blocks_draw_percentile(struct blocks *b, double percent, struct prng *prng)
{
	size_t low = 0, high = b->count - 1, drawn = 0, rank;

	memset(b->times, 0, sizeof(b->times));
	for (size_t i = 0; i < b->blocks; i++) {
		size_t which = prng_below(prng, b->blocks);

		b->times[which]++;
		drawn += start_of(b, which + 1) - start_of(b, which);
	}
	/* The smallest value that this share of the drawn ones do not exceed. */
	rank = (size_t)ceil((double)drawn * percent / 100);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (drawn_up_to(b, b->sorted[middle]) >= rank)
			high = middle;
		else
			low = middle + 1;
	}
	return b->sorted[low];
}
