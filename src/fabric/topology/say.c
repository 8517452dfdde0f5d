/* SPDX-License-Identifier: BSD-2-Clause */
/* The line about a fault; see say.h. */
#include "fabric/topology/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/plain_text.h"

int topology_say(char *why, size_t why_bytes, int err, const char *format, ...)
{
	va_list args;

	if (!why_bytes)
		return err;
	va_start(args, format);
	vsnprintf(why, why_bytes, format, args);
	va_end(args);
	plain_text(why);
	return err;
}
