/* SPDX-License-Identifier: BSD-2-Clause */
/* See fail.h. */
#include "virtual/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void (*virtual_failing)(void);

void virtual_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (virtual_failing)
		virtual_failing();
	_exit(1);
}
