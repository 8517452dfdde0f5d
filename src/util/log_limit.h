/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit for log lines that other processes or hosts can cause at will: LOG_LIMIT_LINES lines are
 * written within LOG_LIMIT_NS, and the first line after that time says how many were left out.
 */
#ifndef UTIL_LOG_LIMIT_H
#define UTIL_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "util/log.h"

#define LOG_LIMIT_LINES 10u
#define LOG_LIMIT_NS (10 * NSEC_PER_SEC)

/* One for each kind of line; all zeros at first. */
struct log_limit {
	_Atomic uint64_t since_ns; /* of any clock that never goes back */
	atomic_uint asked;         /* since then */
};

/* May a line be written now? *left_out: the number of lines left out before it. */
static inline bool log_limit_take(struct log_limit *l, uint64_t now_ns, unsigned *left_out)
{
	uint64_t since_ns = atomic_load(&l->since_ns);
	unsigned asked;

	*left_out = 0;
	if ((since_ns && now_ns - since_ns <= LOG_LIMIT_NS) ||
	    !atomic_compare_exchange_strong(&l->since_ns, &since_ns, now_ns))
		return atomic_fetch_add(&l->asked, 1) < LOG_LIMIT_LINES;
	asked = atomic_exchange(&l->asked, 1);
	if (asked > LOG_LIMIT_LINES)
		*left_out = asked - LOG_LIMIT_LINES;
	return true;
}

/* As log_warn() and log_info(): log_limited(LOG_WARN, &limit, now_ns, "...", ...). */
#define log_limited(level, limit, now_ns, ...)                                        \
	do {                                                                          \
		unsigned left_out_;                                                   \
                                                                                      \
		if (!log_limit_take((limit), (now_ns), &left_out_))                   \
			break;                                                        \
		LOG_AT(level, __VA_ARGS__);                                           \
		if (left_out_)                                                        \
			LOG_AT(level, "%u lines like the last one were left out before it", \
			       left_out_);                                            \
	} while (0)

#endif
