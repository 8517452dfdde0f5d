/* SPDX-License-Identifier: BSD-2-Clause */
/* Between log.c and what the settings of a gateway add to it. */
#ifndef UTIL_LOG_PRIVATE_H
#define UTIL_LOG_PRIVATE_H

#include <time.h>

#include "util/log.h"

struct log_output;

/* What log_configure() made last; NULL: nothing. Never freed while it may be in
 * use, because a message takes no lock. */
struct log_output *log_output_current(void);

/* The level that `room` shows at most; `base` where no rule matches. */
int log_output_level(const struct log_output *o, const char *room, int base);
/* The most that any rule shows. */
int log_output_level_max(const struct log_output *o);

/* The line as the pattern says; false when there is no pattern. */
bool log_output_format(const struct log_output *o, enum log_level level,
		       const char *room, const char *message,
		       const struct timespec *now, char *line, size_t size);

/* To file and system log; `line` ends with '\n' at line[len - 1]. */
void log_output_write(const struct log_output *o, enum log_level level,
		      const char *line, size_t len);

/* In a file of its own: <syslog.h> has names of ours. */
void log_syslog_write(int level, const char *text);

extern const char *const log_level_names[];
void log_level_update(void);

#endif
