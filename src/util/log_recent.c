/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of lines behind a mutex; see log_recent.h. */
#include "util/log_recent.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/container_of.h"
#include "util/log_private.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_recent_line *_Atomic ring; /* never freed: messages look without a lock */
static uint64_t last;                        /* below the lock, as the lines */

int log_recent_keep(void)
{
	struct log_recent_line *lines, *none = NULL;

	if (atomic_load(&ring))
		return 0;
	lines = calloc(LOG_RECENT_LINES, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&ring, &none, lines))
		free(lines);
	return 0;
}

/* Control characters are questions marks in lines that are printed, too. */
static void put_text(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; from[i] && i + 1 < size; i++)
		to[i] = (unsigned char)from[i] < ' ' || from[i] == 127 ? '?' : from[i];
	to[i] = '\0';
}

void log_recent_add(enum log_level level, const char *room, const char *message,
		    const struct timespec *now)
{
	struct log_recent_line *lines = atomic_load(&ring), *line;

	if (!lines)
		return;
	pthread_mutex_lock(&lock);
	line = &lines[++last % LOG_RECENT_LINES];
	line->number = last;
	line->time_ns = (uint64_t)now->tv_sec * 1000000000u + (uint64_t)now->tv_nsec;
	line->level = level;
	put_text(line->room, sizeof(line->room), room);
	put_text(line->message, sizeof(line->message), message);
	pthread_mutex_unlock(&lock);
}

uint64_t log_recent_last(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = last;
	pthread_mutex_unlock(&lock);
	return n;
}

bool log_recent_next(uint64_t after, struct log_recent_line *line)
{
	const struct log_recent_line *lines = atomic_load(&ring);
	bool found;

	pthread_mutex_lock(&lock);
	found = lines && after < last;
	if (found && last - after > LOG_RECENT_LINES)
		after = last - LOG_RECENT_LINES;
	if (found)
		*line = lines[(after + 1) % LOG_RECENT_LINES];
	pthread_mutex_unlock(&lock);
	return found;
}
