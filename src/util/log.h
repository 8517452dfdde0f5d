/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log to standard error: one line per message, lower case, `key value`.
 *
 * The first function that knows the cause logs it, once. Logging keeps errno.
 * A level that is off costs one load and one predicted branch.
 * If standard error has no room, a line waits 100 ms and is then dropped; when there is
 * room again, a line reports how many were. Lines to a file that is a pipe are dropped
 * without a report.
 * `BUSBAR_LOG` in the environment sets the level (off, error, warn, info, debug,
 * trace); the libraries start at warn, the command at info. A gateway's
 * configuration may add a file, the system's log, another form of the lines and
 * levels for single rooms: log_configure().
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_OFF,
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_TRACE,
};

/* The highest level of any room. */
extern atomic_int log_level_max;

/* Takes the level from BUSBAR_LOG, or `fallback` if that is unset or unknown, and the
 * prefix of each line from VILLAS_LOG_PREFIX. */
void log_init(enum log_level fallback);

/* The level of a name; "warning" is "warn", and "critical" is "off", because there are no
 * such messages. -EINVAL: unknown. */
int log_level_parse(const char *name);

/* "error" ... */
const char *log_level_name(enum log_level level);

void log_set_level(enum log_level level);

/* The level of all rooms that match the glob `room`, as a whole ("gateway/path") or
 * after the last slash ("path"). The last matching rule counts. */
struct log_rule {
	const char *room;
	enum log_level level;
};

struct log_settings {
	const char *file;    /* lines are appended to it as well; NULL: no file */
	bool syslog;         /* and are sent to the system's log */
	const char *pattern; /* form of a line, NULL: the default; log_pattern_check() */
	const struct log_rule *rules;
	size_t rule_count;
};

/*
 * Replaces the settings by a copy of `s`; NULL: by none. 0, or a negative errno: the file
 * cannot be opened, and nothing has changed.
 */
int log_configure(const struct log_settings *s);

/*
 * Checks a pattern: %v message, %n room, %l level, %L its first letter, %Y %m %d %H %M %S
 * %T date and time, %e milliseconds, %f microseconds, %F nanoseconds, %P process, %t
 * thread, %^ and %$ nothing (colours in other programs), %% a percent sign. NULL: it is
 * valid; else the position of what is not.
 */
const char *log_pattern_check(const char *pattern);

/*
 * Called with every finished line before it is printed (and instead of
 * printing when it returns true). For a live progress line that has to be
 * cleared first, and for tests. NULL removes it.
 */
void log_set_sink(bool (*sink)(enum log_level level, const char *line));

void log_write(enum log_level level, const char *room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_AT(level, ...)                                                   \
	do {                                                                 \
		int max_ = atomic_load_explicit(&log_level_max,              \
						memory_order_relaxed);       \
		if (__builtin_expect((int)(level) <= max_, 0))               \
			log_write((level), LOG_ROOM, __VA_ARGS__);           \
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
/* Logs an error and is `result`: return log_fail(-EINVAL, "..."). */
#define log_fail(result, ...)           \
	({                              \
		log_error(__VA_ARGS__); \
		(result);               \
	})

#endif
