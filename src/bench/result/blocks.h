/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bootstrap of a median for values that are not independent: neighbours in time share what
 * disturbs them (a burst, another program, the frequency of the processor). Blocks of
 * consecutive values are drawn instead of single ones, so the medians vary as much as those of
 * repeated measurements of that length would (Künsch, 1989).
 *
 * It cannot know what changes between two runs, such as another placement of memory, or a
 * virtual machine that has got slower: repeat runs to see that.
 */
#ifndef BENCH_RESULT_BLOCKS_H
#define BENCH_RESULT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "util/prng.h"

#define BLOCKS_COUNT 50

struct blocks;

/* Of `values` in the order in which they were measured, copied; count > 0. BLOCKS_COUNT
 * blocks, fewer of few values. NULL without memory. */
struct blocks *blocks_new(const int64_t *values, size_t count);
void blocks_free(struct blocks *b);

int64_t blocks_median(const struct blocks *b);
/* The median of as many blocks as there are, drawn with replacement. Takes some ten
 * microseconds for 100,000 values. */
int64_t blocks_draw(struct blocks *b, struct prng *prng);
/* The same of another percentile; 100: the largest value. */
int64_t blocks_draw_percentile(struct blocks *b, double percent, struct prng *prng);

#endif
