/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last lines of the log, kept in memory for those who look at a running program. Off
 * until log_recent_keep(); then a line costs a short lock and one copy more than the write
 * that prints it. Old lines make room for new ones.
 */
#ifndef UTIL_LOG_RECENT_H
#define UTIL_LOG_RECENT_H

#include <stdint.h>

#include "util/log.h"

#define LOG_RECENT_LINES 512
#define LOG_RECENT_ROOM 40      /* longer names and messages are cut */
#define LOG_RECENT_MESSAGE 960

struct log_recent_line {
	uint64_t number;        /* from 1, without gaps */
	uint64_t time_ns;       /* since 1970 */
	enum log_level level;
	char room[LOG_RECENT_ROOM];
	char message[LOG_RECENT_MESSAGE];
};

/* From now on lines are kept, until the process ends. 0 or -ENOMEM. */
int log_recent_keep(void);

/* The number of the last line; 0: none. */
uint64_t log_recent_last(void);

/* The first line that is still there behind number `after` in *line. True: there is one. */
bool log_recent_next(uint64_t after, struct log_recent_line *line);

#endif
