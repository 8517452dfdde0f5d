/* SPDX-License-Identifier: BSD-2-Clause */
/* The random test's actions, which random.c picks from (see there). */
#ifndef ADAPTER_RANDOM_H
#define ADAPTER_RANDOM_H

#include "act.h"

/*
 * How long to wait for an event that has to come. Time in which this process did not run,
 * because it was stopped or not scheduled, does not count.
 */
struct patience {
	uint64_t last_ms;
	unsigned waited_ms;
};
/* To be called before each check, so that there is one more check after the time is over. */
bool patience_is_over(struct patience *p);

/* ---- random.c ---- */
/* Posts the request, which belongs to the model afterwards. */
void random_send(struct model *m, struct work *w);
bool random_receive(struct model *m, int s, int q);
/* Polls the completion queues that pair q uses on side s; how many came. */
int random_poll_pair(struct model *m, int s, int q);
/* Everything on its way on the pair arrives. */
void random_settle(struct model *m, int q);
/* Connects the pair anew, with areas filled anew. After RESET, or at first.
 * `timeout` is the ACK timeout: SLOW when nothing may be given up, LOSSY when that has to
 * be seen within WAIT_MS. */
enum { QUICK = 4, LOSSY = 16, SLOW = 18 };
void random_connect(struct model *m, int q, uint8_t timeout);
/* Registers a side's areas of a pair anew. */
void random_register(struct model *m, int s, int q);

/* ---- random_errors.c ---- */
/* A settled pair fails in one of the ways that there are, and is repaired. */
void random_error(struct model *m, int q);

/* ---- random_streams.c ---- */
/* Connects the pair, which is in INIT, over a stream. */
void random_join(struct model *m, int q);
/* No connection has ended with a TERMINATE: both ends keep the rules. */
void random_check_terminates(struct model *m);

#endif
