/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to standard error, one write each so that processes do not mix. */
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/bounded_write.h"
#include "util/cancel.h"
#include "util/container_of.h"
#include "util/log_private.h"
#include "util/plain_text.h"

/* How long a line waits for a slow reader of standard error. */
#define PATIENCE_MS 100

const char *const log_level_names[] = { "off",  "error", "warn",
					"info", "debug", "trace" };

atomic_int log_level_max = LOG_WARN;
static atomic_int level_base = LOG_WARN; /* where no rule matches */
static bool (*_Atomic log_sink)(enum log_level, const char *);
static char prefix[64];
/* Lines dropped since the last one that was written to standard error. */
static atomic_uint left_out;

int log_level_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(log_level_names); i++)
		if (!strcmp(name, log_level_names[i]))
			return (int)i;
	if (!strcmp(name, "warning"))
		return LOG_WARN;
	if (!strcmp(name, "critical"))
		return LOG_OFF;
	return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
	return log_level_names[level];
}

void log_level_update(void)
{
	atomic_store(&log_level_max,
		     MAX(atomic_load(&level_base),
			 log_output_level_max(log_output_current())));
}

void log_set_level(enum log_level level)
{
	atomic_store(&level_base, (int)level);
	log_level_update();
}

void log_init(enum log_level fallback)
{
	const char *text = getenv("BUSBAR_LOG");
	const char *before = getenv("VILLAS_LOG_PREFIX");
	int level = text ? log_level_parse(text) : (int)fallback;

	if (before)
		snprintf(prefix, sizeof(prefix), "%s", before);
	log_set_level(level < 0 ? fallback : (enum log_level)level);
	if (level < 0)
		log_warn("BUSBAR_LOG='%.80s' not usable, expected off, error, warn, info, debug or trace; using %s",
			 text, log_level_names[fallback]);
}

void log_set_sink(bool (*sink)(enum log_level, const char *))
{
	atomic_store(&log_sink, sink);
}

/* The default form of a line. */
static void format_line(enum log_level level, const char *room,
			const char *message, const struct timespec *now,
			char *line, size_t size)
{
	struct tm tm;
	size_t len;

	localtime_r(&now->tv_sec, &tm);
	len = strftime(line, size, "%H:%M:%S", &tm);
	snprintf(line + len, size - len, ".%03ld %-5s %s: %s",
		 now->tv_nsec / 1000000, log_level_names[level], room, message);
}

/* Reports the number of dropped lines. False: standard error still has no room. */
static bool tell_left_out(const struct timespec *now)
{
	char text[64], line[256];
	unsigned n;
	size_t len;

	if (!bounded_write_has_room(STDERR_FILENO))
		return false;
	/* Of several threads the one that gets the number reports it. */
	n = atomic_exchange(&left_out, 0);
	if (n == 0)
		return true;
	snprintf(text, sizeof(text), "%u lines are left out here: nobody read them",
		 n);
	len = strlen(strcpy(line, prefix));
	format_line(LOG_WARN, "log", text, now, line + len,
		    sizeof(line) - 1 - len);
	len = strlen(line);
	line[len++] = '\n';
	if (bounded_write(STDERR_FILENO, line, len, 0) == len)
		return true;
	atomic_fetch_add(&left_out, n);
	return false;
}

/* A reader that has stopped must not stop the program: the line is dropped. */
static void print_line(const char *line, size_t len, const struct timespec *now)
{
	bool stuck = atomic_load(&left_out) > 0;

	if ((stuck && !tell_left_out(now)) ||
	    bounded_write(STDERR_FILENO, line, len, stuck ? 0 : PATIENCE_MS) < len)
		atomic_fetch_add(&left_out, 1);
}

void log_write(enum log_level level, const char *room, const char *fmt, ...)
{
	int saved_errno = errno;
	bool (*sink)(enum log_level, const char *) = atomic_load(&log_sink);
	const struct log_output *o = log_output_current();
	char message[1024], line[1024];
	struct timespec now;
	size_t len;
	va_list args;
	int cancel;

	if ((int)level > log_output_level(o, room, atomic_load(&level_base)))
		return;
	cancel = cancel_off();
	clock_gettime(CLOCK_REALTIME, &now);
	/* The format may contain %m, the text of errno. */
	errno = saved_errno;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	log_recent_add(level, room, message, &now);
	len = strlen(strcpy(line, prefix));
	/* The last byte is for the end of the line. */
	if (!log_output_format(o, level, room, message, &now, line + len,
			       sizeof(line) - 1 - len))
		format_line(level, room, message, &now, line + len,
			    sizeof(line) - 1 - len);
	len = strlen(line);
	plain_text(line);
	if (!sink || !sink(level, line)) {
		line[len++] = '\n';
		print_line(line, len, &now);
		log_output_write(o, level, line, len);
	}
	cancel_restore(&cancel);
	errno = saved_errno;
}
