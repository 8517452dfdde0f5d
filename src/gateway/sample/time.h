/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arithmetic with the timestamps of samples. A peer or a file may send any number of
 * seconds, before 1970 and beyond what 64 bits of nanoseconds can count, and
 * nanoseconds that are not below a second. So these functions are defined for all
 * values: results beyond the range of their type become its limit.
 */
#ifndef GATEWAY_SAMPLE_TIME_H
#define GATEWAY_SAMPLE_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "util/num.h"

#define SAMPLE_TIME_SECOND INT64_C(1000000000)

/* The nanoseconds of a time to be written; 0 if they are not below a second. */
static inline uint32_t sample_time_nsec(struct timespec t)
{
	return t.tv_nsec >= 0 && t.tv_nsec < SAMPLE_TIME_SECOND ?
		       (uint32_t)t.tv_nsec : 0;
}

#define SAMPLE_TIME_TEXT 40
/* Decimal seconds, terminated: "-0.500000000"; returns `text`. */
static inline const char *sample_time_print(char text[SAMPLE_TIME_TEXT], struct timespec t)
{
	*num_print_seconds(text, t.tv_sec, sample_time_nsec(t)) = '\0';
	return text;
}

static inline bool sample_time_is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Not INT64_MIN, so that the result can be negated. */
static inline int64_t sample_time_limit(__int128 ns)
{
	return ns > INT64_MAX ? INT64_MAX : ns < -INT64_MAX ? -INT64_MAX : (int64_t)ns;
}

/* Nanoseconds since 1970; negative before. */
static inline int64_t sample_time_to_ns(struct timespec t)
{
	return sample_time_limit((__int128)t.tv_sec * SAMPLE_TIME_SECOND + t.tv_nsec);
}

static inline struct timespec sample_time_from_ns(int64_t ns)
{
	int64_t sec = ns / SAMPLE_TIME_SECOND, nsec = ns % SAMPLE_TIME_SECOND;

	return (struct timespec){
		.tv_sec = (time_t)(sec - (nsec < 0)),
		.tv_nsec = (long)(nsec < 0 ? nsec + SAMPLE_TIME_SECOND : nsec),
	};
}

/* Nanoseconds from `earlier` to `later`. */
static inline int64_t sample_time_since_ns(struct timespec later,
					   struct timespec earlier)
{
	__int128 sec = (__int128)later.tv_sec - earlier.tv_sec;
	__int128 nsec = (__int128)later.tv_nsec - earlier.tv_nsec;

	return sample_time_limit(sec * SAMPLE_TIME_SECOND + nsec);
}

/* The nanoseconds of the result are below a second, whatever those of `t` were. */
static inline struct timespec sample_time_add_ns(struct timespec t, int64_t ns)
{
	struct timespec own = sample_time_from_ns(t.tv_nsec);
	struct timespec add = sample_time_from_ns(ns);
	int64_t nsec = own.tv_nsec + add.tv_nsec;
	int64_t sec = own.tv_sec + add.tv_sec + (nsec >= SAMPLE_TIME_SECOND);

	nsec -= nsec >= SAMPLE_TIME_SECOND ? SAMPLE_TIME_SECOND : 0;
	if (__builtin_add_overflow(t.tv_sec, sec, &sec)) {
		sec = t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
		nsec = t.tv_sec < 0 ? 0 : SAMPLE_TIME_SECOND - 1;
	}
	return (struct timespec){ .tv_sec = (time_t)sec, .tv_nsec = (long)nsec };
}

/* Sum of two numbers of nanoseconds. */
static inline int64_t sample_time_sum_ns(int64_t a, int64_t b)
{
	return sample_time_limit((__int128)a + b);
}

#endif
