/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a file is still the one that was read, by what stat() says. */
#ifndef UTIL_SAME_FILE_H
#define UTIL_SAME_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* The clock of files has steps, of a few milliseconds at most. */
#define SAME_FILE_YOUNG_NS 20000000

static inline bool same_file_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static inline bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       same_file_time(&a->st_mtim, &b->st_mtim) &&
	       same_file_time(&a->st_ctim, &b->st_ctim);
}

/* It was changed so shortly ago that it may change once more with the same times: then
 * same_file() tells nothing. */
static inline bool same_file_is_young(const struct stat *s)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (now.tv_sec - s->st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec -
		       s->st_ctim.tv_nsec < SAME_FILE_YOUNG_NS;
}

#endif
