/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to standard error, one write each so that processes do not mix. */
#include "util/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/container_of.h"

static const char *const level_names[] = { "error", "warn", "info", "debug",
					   "trace" };

int log_level_max = LOG_WARN;
static bool (*_Atomic log_sink)(enum log_level, const char *);

int log_level_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (!strcmp(name, level_names[i]))
			return (int)i;
	if (!strcmp(name, "warning"))
		return LOG_WARN;
	return -EINVAL;
}

void log_set_level(enum log_level level)
{
	log_level_max = (int)level;
}

void log_init(enum log_level fallback)
{
	const char *text = getenv("BUSBAR_LOG");
	int level = text ? log_level_parse(text) : (int)fallback;

	log_level_max = level < 0 ? (int)fallback : level;
	if (level < 0)
		log_warn("BUSBAR_LOG='%.80s' not usable, expected error, warn, info, debug or trace; using %s",
			 text, level_names[fallback]);
}

void log_set_sink(bool (*sink)(enum log_level, const char *))
{
	atomic_store(&log_sink, sink);
}

void log_write(enum log_level level, const char *room, const char *fmt, ...)
{
	int saved_errno = errno;
	bool (*sink)(enum log_level, const char *) = atomic_load(&log_sink);
	char line[1024];
	struct timespec now;
	struct tm tm;
	size_t len;
	va_list args;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	len = strftime(line, sizeof(line), "%H:%M:%S", &tm);
	len += (size_t)snprintf(line + len, sizeof(line) - len, ".%03ld %-5s %s: ",
				now.tv_nsec / 1000000, level_names[level], room);
	va_start(args, fmt);
	len += (size_t)vsnprintf(line + len, sizeof(line) - len, fmt, args);
	va_end(args);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len] = '\0';
	/* What was put in from outside must not make more lines of one. */
	for (char *c = line; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	if (!sink || !sink(level, line)) {
		line[len++] = '\n';
		if (write(STDERR_FILENO, line, len) < 0) {
			/* Nowhere left to report it. */
		}
	}
	errno = saved_errno;
}
