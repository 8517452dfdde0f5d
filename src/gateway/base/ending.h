/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time limits for the end of the process. After a signal or a request to shut down,
 * each kind of wait gives up at one of the times below, in this order, so that a
 * thread that hangs does not keep the others from writing what they hold.
 */
#ifndef GATEWAY_BASE_ENDING_H
#define GATEWAY_BASE_ENDING_H

#include <stdbool.h>

/* Milliseconds after ending_begin(). */
enum ending_limit {
	ENDING_HOOKS_MS = 800,    /* hooks that wait for a reader or compute */
	ENDING_JOIN_MS = 1100,    /* threads that do not come out */
	ENDING_WRITERS_MS = 1400, /* files that do not take their records */
	ENDING_CHILDREN_MS = 1500, /* programs that nodes started */
	ENDING_SUMMARY_MS = 1600, /* a reader of the summary that does not read */
	ENDING_LIMIT_MS = 1850,   /* the process, whatever it does */
};

/* Starts the time limits. Any thread or signal handler; further calls do nothing. */
void ending_begin(void);
bool ending_has_begun(void);
/* Whether `limit` has passed; false when ending_begin() was not called. Any thread. */
bool ending_is_past(enum ending_limit limit);
/* Milliseconds until `limit`, at most `otherwise`; 0 when it has passed. Returns
 * `otherwise` when ending_begin() was not called. Any thread. */
int ending_left_ms(enum ending_limit limit, int otherwise);

#endif
