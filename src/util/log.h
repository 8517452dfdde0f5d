/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log to standard error: one line per message, lower case, `key value`.
 *
 * The first function that knows the cause logs it, once. Logging keeps errno.
 * A level that is off costs one load and one predicted branch.
 * `BUSBAR_LOG` in the environment sets the level (error, warn, info, debug,
 * trace); the libraries start at warn, the command at info.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_TRACE,
};

extern int log_level_max;

/* Takes the level from BUSBAR_LOG, `fallback` when that is unset or unknown. */
void log_init(enum log_level fallback);

/* Level from its name ("info"); -EINVAL when unknown. */
int log_level_parse(const char *name);

void log_set_level(enum log_level level);

/*
 * Called with every finished line before it is printed (and instead of
 * printing when it returns true). For a live progress line that has to be
 * cleared first, and for tests. NULL removes it.
 */
void log_set_sink(bool (*sink)(enum log_level level, const char *line));

void log_write(enum log_level level, const char *room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_AT(level, ...)                                             \
	do {                                                           \
		if (__builtin_expect((int)(level) <= log_level_max, 0)) \
			log_write((level), LOG_ROOM, __VA_ARGS__);     \
	} while (0)

/* A file defines LOG_ROOM ("hca", "gateway/path") before it includes this. */
#ifndef LOG_ROOM
#define LOG_ROOM "busbar"
#endif

#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_trace(...) LOG_AT(LOG_TRACE, __VA_ARGS__)

#endif
