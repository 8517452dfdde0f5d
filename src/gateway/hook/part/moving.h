/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hooks ma and rms share: selected signals, each replaced by a figure
 * of its last `window_size` values.
 */
#ifndef GATEWAY_HOOK_PART_MOVING_H
#define GATEWAY_HOOK_PART_MOVING_H

#include "gateway/plugin/hook.h"
#include "gateway/hook/part/select.h"
#include "gateway/hook/part/window.h"

struct moving {
	struct hook_select select;
	int64_t window_size;
	unsigned length_min;     /* values that a sample must have */
	struct window_sum *sums; /* one per selected signal */
};

int moving_parse(struct hook *h, struct config *c, json_t *cfg);
/* Selected integers and booleans come out as floating point numbers. */
int moving_signals(struct hook *h, struct signal_list *in,
		   struct signal_list **out);
int moving_start(struct hook *h);
int moving_stop(struct hook *h);
void moving_restart(struct hook *h);
/* Asked before any window gets its value: all signals see the same samples. */
static inline bool moving_fits(const struct moving *m, const struct sample *s)
{
	return likely(s->length >= m->length_min);
}

void moving_destroy(struct hook *h);

#endif
