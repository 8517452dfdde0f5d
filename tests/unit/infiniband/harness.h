/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One infiniband node without a super-node: what the framework does to it, by
 * hand, and the lines that it logs.
 */
#ifndef TESTS_UNIT_INFINIBAND_HARNESS_H
#define TESTS_UNIT_INFINIBAND_HARNESS_H

#include <stdbool.h>

#include "gateway/config/config.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"

struct harness {
	struct config *config;
	struct node node;
	struct pool pool;
	bool started;
};

extern const struct node_type node_infiniband;

/* Unpacks, parses and checks `text`, the inside of the node's group. 0 or the
 * error; harness_close() in any case. */
int harness_open(struct harness *h, const char *text);
/* prepare, a pool, start, STARTED. 0 or the error. */
int harness_start(struct harness *h);
/* stop, and all samples are back. */
void harness_stop(struct harness *h);
void harness_close(struct harness *h);

/* How often the node asked the super-node to stop. */
extern atomic_uint harness_stops, harness_failures;
extern struct services harness_services;

/* Lines logged since the last clear that contain `text`. */
unsigned harness_logged(const char *text);
void harness_log_clear(void);

/* Waits up to ten seconds. */
#define WAIT_FOR(condition)                                             \
	do {                                                            \
		for (int tries_ = 0; !(condition) && tries_ < 20000; tries_++) \
			harness_pause();                                \
		assert_true(condition);                                 \
	} while (0)

void harness_pause(void);

#endif
