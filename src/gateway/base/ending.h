/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of the process has a limit in time once a person has asked for it (a
 * signal, a request to shut down): who waits for somebody else gives up at the
 * times below, one after the other, so that what can still be written is.
 */
#ifndef GATEWAY_BASE_ENDING_H
#define GATEWAY_BASE_ENDING_H

#include <stdbool.h>

/* Milliseconds after ending_begin(). */
enum ending_limit {
	ENDING_HOOKS_MS = 800,    /* hooks that wait for a reader or compute */
	ENDING_JOIN_MS = 1100,    /* threads that do not come out */
	ENDING_WRITERS_MS = 1400, /* files that do not take their records */
	ENDING_SUMMARY_MS = 1600, /* who reads the summary */
	ENDING_LIMIT_MS = 1850,   /* the process, whatever it does */
};

/* From any thread or signal handler; only the first call counts. */
void ending_begin(void);
bool ending_has_begun(void);
/* So much time has passed since then; false when it has not begun. */
bool ending_is_past(enum ending_limit limit);
/* Milliseconds until then, 0 when it is past, at most `otherwise`, which it also is
 * when the end has not begun. */
int ending_left_ms(enum ending_limit limit, int otherwise);

#endif
