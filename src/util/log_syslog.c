/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines to the system's log. */
#include <syslog.h>

void log_syslog_write(int level, const char *text);

void log_syslog_write(int level, const char *text)
{
	/* Index: enum log_level. */
	static const int priorities[] = { LOG_CRIT, LOG_ERR,   LOG_WARNING,
					  LOG_INFO, LOG_DEBUG, LOG_DEBUG };

	syslog(LOG_DAEMON | priorities[level], "%s", text);
}
