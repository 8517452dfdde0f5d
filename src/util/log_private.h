/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by log.c and log_output.c. */
#ifndef UTIL_LOG_PRIVATE_H
#define UTIL_LOG_PRIVATE_H

#include <time.h>

#include "util/log.h"

struct log_output;

/* The settings of the last log_configure(); NULL: none. Never freed, because messages
 * take no lock. */
struct log_output *log_output_current(void);

/* The level of `room`; `base` if no rule matches. */
int log_output_level(const struct log_output *o, const char *room, int base);
/* The highest level in any rule. */
int log_output_level_max(const struct log_output *o);

/* Formats a line by the pattern; false: there is no pattern. */
bool log_output_format(const struct log_output *o, enum log_level level,
		       const char *room, const char *message,
		       const struct timespec *now, char *line, size_t size);

/* To file and system log; `line` ends with '\n' at line[len - 1]. */
void log_output_write(const struct log_output *o, enum log_level level,
		      const char *line, size_t len);

/* Into the ring of log_recent.h, if there is one. */
void log_recent_add(enum log_level level, const char *room, const char *message,
		    const struct timespec *now);

/* A file of its own, because <syslog.h> defines names that log.h uses. */
void log_syslog_write(int level, const char *text);

extern const char *const log_level_names[];
void log_level_update(void);

#endif
