/* SPDX-License-Identifier: BSD-2-Clause */
/* The random test's actions, which random.c picks from (see there). */
#ifndef ADAPTER_RANDOM_H
#define ADAPTER_RANDOM_H

#include "act.h"

/*
 * How long to wait for what has to come. Time in which this process did not run,
 * because it was stopped or the machine had no turn for it, is no time of waiting.
 */
struct patience {
	uint64_t last_ms;
	unsigned waited_ms;
};
/* Asked before each look: when it is over there has been one since. */
bool patience_is_over(struct patience *p);

/* ---- random.c ---- */
/* Posts it; it is the model's afterwards. */
void random_send(struct model *m, struct work *w);
bool random_receive(struct model *m, int s, int q);
/* Polls the completion queues that pair q uses on side s; how many came. */
int random_poll_pair(struct model *m, int s, int q);
/* Everything on its way on the pair arrives. */
void random_settle(struct model *m, int q);
/* Connects the pair anew, with areas filled anew. After RESET, or at first.
 * `timeout` is the ACK timeout: SLOW when nothing may be given up. */
enum { QUICK = 4, SLOW = 18 };
void random_connect(struct model *m, int q, uint8_t timeout);
/* Registers a side's areas of a pair anew. */
void random_register(struct model *m, int s, int q);

/* ---- random_errors.c ---- */
/* A settled pair fails in one of the ways that there are, and is repaired. */
void random_error(struct model *m, int q);

#endif
