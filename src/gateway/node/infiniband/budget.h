/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of reads and writes goes: time stamps inside of the data path, of a node that
 * has the key `budget`. Private to this folder.
 *
 * Nodes without the key pay one comparison for a call: read.c and write.c are compiled twice,
 * and only stamped.c has the stamps.
 *
 * A call takes all stamps, or those around it only, by chance, one half each. The latter
 * are ordinary calls seen from outside, and say what all parts together have to be.
 */
#ifndef GATEWAY_NODE_INFINIBAND_BUDGET_H
#define GATEWAY_NODE_INFINIBAND_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/infiniband/budget_file.h"
#include "gateway/sample/sample.h"
#include "util/clock.h"
#include "util/prng.h"

struct ib_channel;

/* Calls of a direction whose times are kept: the last ones. A power of two. */
#define IB_BUDGET_ROWS 65536

struct ib_budget_calls {
	struct ib_budget_row *row;   /* of the call in work */
	struct ib_budget_row *rows;
	uint64_t count;              /* calls so far */
	struct prng random;
};

/* Each direction belongs to the thread that is in it. */
struct ib_budget {
	cache_aligned struct ib_budget_calls sent;
	cache_aligned struct ib_budget_calls received;
	uint64_t stamp_ps;
	uint32_t step_ps;
};

/* Measures what a stamp costs. clock_init() was called. NULL: no memory. */
struct ib_budget *ib_budget_make(void);
/* Writes `path`; no thread is inside. 0 or a negative errno, logged with `name`, the node's. */
int ib_budget_write_file(const struct ib_budget *b, const char *path, const char *name);
void ib_budget_free(struct ib_budget *b);

/* As ib_channel_read() and ib_channel_write(), of a channel with a budget. A read waits by
 * polling only. */
int ib_budget_read(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		   unsigned *release);
int ib_budget_write(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		    unsigned *release);

/* stamped.c: the algorithms with stamps. */
int ib_channel_read_stamped(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
			    unsigned *release);
int ib_channel_write_stamped(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
			     unsigned *release);

static inline void ib_stamp(struct ib_budget_calls *c, unsigned point)
{
	c->row->at[point] = clock_ticks();
}

#ifdef IB_STAMPED
#define STAMP_READ(ch, point) ib_stamp(&(ch)->budget->received, point)
#define STAMP_WRITE(ch, point) ib_stamp(&(ch)->budget->sent, point)
#else
#define STAMP_READ(ch, point) ((void)0)
#define STAMP_WRITE(ch, point) ((void)0)
#endif

#endif
